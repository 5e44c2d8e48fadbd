"""Numbers that stored values were made under are fixed while such values exist."""

from copy import deepcopy

import pytest

from apps.core.db.sessions import principal_session, staff_session
from apps.core.policies import followed, publish_policy
from apps.core.problems import Problem
from apps.traces.policy import MemoryPolicy, policy_in_effect
from apps.traces.services.erase import erase_trace
from tests.feedback.test_outcomes import confirm, walked
from tests.support.factories import make_staff
from tests.support.traces import issue, ranked, save, source_of

pytestmark = pytest.mark.django_db

CHANGES = [
    ("half_life_s", 7200.0),
    ("edge_delta", 0.2),
    ("edge_cap", 4.0),
    ("increments", {"retrieved": 0.2, "selected": 0.2, "validated": 0.5, "used": 1.0}),
    ("caps", {"retrieved": 9.0, "usage": 10.0}),
]


def document(**changes):
    return deepcopy(MemoryPolicy().model_dump(mode="json")) | changes


def publish(workspace_id, **changes):
    version = followed(workspace_id, "memory").hash
    return publish_policy(
        workspace_id=workspace_id,
        kind="memory",
        document=document(**changes),
        if_match=version,
        reason="we looked at the numbers",
    )


@pytest.fixture
def manager(world):
    return make_staff(world.workspace, "manage_profiles", "review_retention", "view_traces")


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_with_one_activation_a_fixed_number_is_refused_and_says_why(world, manager, name, value) -> None:
    with principal_session(world.principal):
        save([ranked(issue(7))])
    with staff_session(manager):
        with pytest.raises(Problem) as refused:
            publish(world.workspace.pk, **{name: value})
        assert refused.value.shown_code == "policy_fixed"
        assert refused.value.document()["held_by"] == ["activation"]
    with principal_session(world.principal):
        assert policy_in_effect(world.workspace.pk).version == 1


def test_one_credit_fixes_as_activation_does(world, manager, admin_connection) -> None:
    from apps.traces.models import Activation

    with principal_session(world.principal):
        confirm(*walked())
        Activation.objects.all().delete()
    with staff_session(manager), pytest.raises(Problem) as refused:
        publish(world.workspace.pk, edge_delta=0.2)
    assert refused.value.document()["held_by"] == ["credits"]


def test_retention_days_change_at_any_time(world, manager) -> None:
    with principal_session(world.principal):
        save([ranked(issue(7))])
    days = {"trace": 10, "trace_text": 5, "activation": 30}
    with staff_session(manager):
        publish(world.workspace.pk, retention_days=days)
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        assert (saved.expires_at - saved.recorded_at).days == 10


def test_with_neither_a_change_is_accepted_at_once(world, manager) -> None:
    with staff_session(manager):
        publish(world.workspace.pk, half_life_s=60.0)
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        assert saved.policy.document.half_life_s == 60
        assert saved.policy.version == 1


def test_the_default_is_fixed_by_a_workspace_that_follows_it(world, manager) -> None:
    with principal_session(world.principal):
        save([ranked(issue(7))])
    with staff_session(world.superuser):
        with pytest.raises(Problem) as refused:
            publish(None, half_life_s=60.0)
        assert refused.value.shown_code == "policy_fixed"
    with principal_session(world.principal):
        from apps.traces.models import Activation

        Activation.objects.all().delete()
    with staff_session(world.superuser):
        publish(None, half_life_s=60.0)


def test_a_text_is_not_kept_longer_than_its_trace(world, manager) -> None:
    with staff_session(manager), pytest.raises(Problem) as refused:
        publish(world.workspace.pk, retention_days={"trace": 10, "trace_text": 30, "activation": 30})
    assert refused.value.shown_code == "invalid_request"


def test_a_trace_keeps_the_policy_under_which_it_was_made(world, manager) -> None:
    from apps.feedback.selectors import trace_detail

    with principal_session(world.principal):
        saved = save([])
    with staff_session(manager):
        publish(world.workspace.pk, half_life_s=60.0)
    with principal_session(world.principal):
        assert trace_detail(saved.id, limit=1, cursor=None)["policy"]["half_life_s"] == 3600
        erase_trace(trace_id=saved.id)
    assert source_of(issue(7))
