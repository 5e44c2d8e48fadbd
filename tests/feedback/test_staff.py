"""Staff reverse outcomes and reveal queries by the principal's own services, with an audit entry."""

from datetime import timedelta

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.models import AuditEntry
from apps.core.problems import Problem
from apps.feedback.selectors import strengths, trace_detail
from apps.feedback.services.staff import preview_reversal, reverse_outcome
from apps.traces.models import ReceiptKind, Trace
from apps.traces.services.staff import erase_trace_of_principal, reveal_query
from tests.feedback.test_outcomes import confirm, walked
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(world):
    return make_staff(world.workspace, groups=("Curator",))


@pytest.fixture
def confirmation(world):
    with principal_session(world.principal):
        trace, source = walked()
        return trace, confirm(trace, source)["receipt_id"]


def entries(world, action):
    auditor = make_staff(world.workspace, "audit")
    with staff_session(auditor):
        return list(AuditEntry.objects.filter(action=action))


def reverse(receipt, version, reason="the page was outdated", kind=ReceiptKind.CORRECTED):
    return reverse_outcome(receipt_id=receipt, kind=kind, reason=reason, version=version)


def test_a_reversal_does_what_its_preview_showed_and_is_audited_once(world, curator, confirmation) -> None:
    trace, receipt = confirmation
    with clock.frozen(clock.now() + timedelta(minutes=20)), staff_session(curator):
        preview = preview_reversal(receipt_id=receipt)
        answer = reverse(receipt, preview.version)
    removed = [change["reversed_delta"] for change in answer["changes"]]
    assert removed == [pytest.approx(edge.removed) for edge in preview.edges]
    assert len(removed) == 2
    with principal_session(world.principal):
        found = strengths([edge.edge_key for edge in preview.edges], as_of=preview.as_of, half_life_s=3600.0)
        assert found == {edge.edge_key: pytest.approx(edge.after) for edge in preview.edges}
        audit = trace_detail(trace, limit=10, cursor=None)["audit"]
        assert (audit[-1]["kind"], audit[-1]["actor"]) == ("corrected", "staff")
    (entry,) = entries(world, "feedback.reverse_outcome")
    assert entry.object_id == str(receipt)


@pytest.mark.parametrize("reason", ["", "   ", "password: hunter2hunter2"])
def test_a_reversal_needs_a_reason_that_may_be_kept(world, curator, confirmation, reason) -> None:
    _, receipt = confirmation
    with staff_session(curator):
        version = preview_reversal(receipt_id=receipt).version
        with pytest.raises(Problem) as refused:
            reverse(receipt, version, reason)
    assert refused.value.document()["pointer"] == "/reason"
    assert entries(world, "feedback.reverse_outcome") == []


def test_a_stale_preview_is_refused(world, curator, confirmation) -> None:
    _, receipt = confirmation
    with staff_session(curator):
        version = preview_reversal(receipt_id=receipt).version
    with principal_session(world.principal):
        confirm(*walked())
    with staff_session(curator):
        with pytest.raises(Problem) as refused:
            reverse(receipt, version)
        assert refused.value.shown_code == "stale_version"


def test_without_the_grant_there_is_nothing_to_reverse(world, confirmation) -> None:
    _, receipt = confirmation
    viewer, stranger = (
        make_staff(world.workspace, "view_traces"),
        make_staff(make_world().workspace, "curate"),
    )
    for user, code in ((viewer, "forbidden"), (stranger, "unknown_confirmation")):
        with staff_session(user), pytest.raises(Problem) as refused:
            preview_reversal(receipt_id=receipt)
        assert refused.value.shown_code == code


def test_revealing_a_query_is_audited_and_says_when_it_was_erased(world, curator) -> None:
    with principal_session(world.principal), clock.frozen(clock.now() - timedelta(days=31)):
        trace, _ = walked()
    with staff_session(curator):
        assert reveal_query(trace_id=trace, reason="a complaint").text == "how do pages mention each other"
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT traces_erase_text(1000, now())")
    with staff_session(curator):
        revealed = reveal_query(trace_id=trace, reason="a complaint")
        assert (revealed.text, revealed.state) == (None, "erased")
    assert len(entries(world, "traces.reveal_query")) == 2
    viewer = make_staff(world.workspace, "view_traces")
    with staff_session(viewer), pytest.raises(Problem) as refused:
        reveal_query(trace_id=trace, reason="curious")
    assert refused.value.shown_code == "forbidden"


def test_a_reviewer_erases_a_trace_with_a_reason(world, confirmation) -> None:
    trace, _ = confirmation
    reviewer = make_staff(world.workspace, groups=("Retention reviewer",))
    with staff_session(reviewer):
        erase_trace_of_principal(trace_id=trace, reason="asked by its owner")
        assert not Trace.objects.defer("query").exists()
    assert len(entries(world, "traces.erase")) == 1
