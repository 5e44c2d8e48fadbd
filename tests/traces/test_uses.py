"""Uses climb one stage at a time, all of a batch or none."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.core.problems import Problem
from apps.traces.activation import read_activation
from apps.traces.models import ActionReceipt, Activation, Trace, Use
from apps.traces.schemas import UseEntry
from apps.traces.services.uses import record_uses
from tests.support.factories import make_world
from tests.support.traces import issue, ranked, save

pytestmark = pytest.mark.django_db
LADDER = ("selected", "validated", "used")


def entries(source_id, *stages):
    return [UseEntry(source_id=source_id, stage=stage) for stage in stages or LADDER]


def source_of(saved):
    return next(iter(saved.activation))


def test_a_ladder_adds_up_and_a_replay_under_a_new_key_changes_nothing() -> None:
    world = make_world()
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        source = source_of(saved)
        receipt = record_uses(trace_id=saved.id, idempotency_key="k1", uses=entries(source))
        assert [change["applied"] for change in receipt["changes"]] == [True, True, True]
        assert receipt["changes"][-1]["activation"]["usage"] == pytest.approx(1.7)
        again = record_uses(trace_id=saved.id, idempotency_key="k2", uses=entries(source))
        assert [change["applied"] for change in again["changes"]] == [False, False, False]
        assert again["non_applied_reason"] is None
        usage = Activation.objects.get(source_id=source).usage
    assert usage == pytest.approx(1.7)
