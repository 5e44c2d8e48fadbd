"""Retention reviews: at set times a person decides whether raw records of a workspace still live for as long.

The law: no review moves an existing deadline later, and an overdue one extends nothing: it alarms, and blocks what
asks `require_reviewed` first. A shortening needs a second person; it holds for new rows at once, for old ones when
its job ends. An app registers a subject, and any app inputs of it:

    reviews.register_subject(reviews.Subject("observations", starts=…, shorten=…, carry_out=…))
    reviews.register_inputs("observations", "arrivals", lambda workspace_id: {"distinct_a_week": 12})
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from apps.core import audit, clock
from apps.core.db.sessions import current_staff
from apps.core.problems import Forbidden, InvalidRequest, NotFound, StateConflict
from apps.core.reasons import check_reason
from apps.operations import alarms
from apps.operations.models import RetentionReview
from apps.operations.models.reviews import Decision

FIRST_AFTER = timedelta(hours=720)
LONGEST_AHEAD = timedelta(days=92)
OVERDUE = "review_overdue"
GRANT = "review_retention"
DECIDED = ~Q(decision=Decision.SHORTEN) | Q(approved_at__isnull=False)
Inputs = Callable[[UUID], Mapping[str, Any]]


class ReviewOverdue(StateConflict):
    code, title = "retention_review_overdue", "The retention review of this workspace is overdue"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is reviewed.

    starts: when keeping began, by workspace, for those where it did; outside of sessions. starts_of: the same of
    the given workspaces, in a staff session that sees them.
    check: raises InvalidRequest for limits that are not shorter than now; shorten: publishes them, in the approver's
    staff session, with the reason; carry_out: moves old rows' deadlines, outside of sessions, and may be repeated.
    """

    name: str
    starts: Callable[[], Mapping[UUID, datetime]]
    start_of: Callable[[UUID], datetime | None]
    check: Callable[[UUID, Mapping[str, int]], None]
    shorten: Callable[[UUID, Mapping[str, int], str], None]
    carry_out: Callable[[UUID, Mapping[str, int]], None]
    starts_of: Callable[[Collection[UUID]], Mapping[UUID, datetime]]


_subjects: dict[str, Subject] = {}
_inputs: dict[tuple[str, str], Inputs] = {}


def register_subject(subject: Subject) -> None:
    _subjects[subject.name] = subject


def subjects() -> list[str]:
    """Names of what is reviewed."""
    return sorted(_subjects)


def register_inputs(subject: str, name: str, inputs: Inputs) -> None:
    """Have `inputs(workspace_id)`, read in the reviewer's session, frozen with each decision under the name."""
    _inputs[subject, name] = inputs


def gather(subject: str, workspace_id: UUID) -> dict[str, Any]:
    """The inputs as they are now, by name. In a staff session."""
    return {
        name: dict(inputs(workspace_id))
        for (of, name), inputs in sorted(_inputs.items(), key=lambda item: item[0])
        if of == subject
    }


def due_at(subject: str, workspace_id: UUID, start: datetime | None) -> datetime | None:
    """When the next review is due; None where nothing was ever kept. `start`: when keeping began."""
    last = (
        RetentionReview.objects.filter(DECIDED, workspace_id=workspace_id, subject=subject)
        .order_by("-made_at", "-id")
        .values_list("next_due_at", flat=True)
        .first()
    )
    return last or (start + FIRST_AFTER if start else None)


def due_by_workspace(subject: str, workspace_ids: Collection[UUID]) -> dict[UUID, datetime]:
    """When the next review of each workspace is due, for those where something was ever kept; two reads.

    In a staff session that sees the workspaces.
    """
    decided = RetentionReview.objects.filter(DECIDED, workspace_id__in=workspace_ids, subject=subject)
    newest = decided.order_by("workspace_id", "-made_at", "-id").distinct("workspace_id")
    due = dict(newest.values_list("workspace_id", "next_due_at"))
    starts = _subjects[subject].starts_of([key for key in workspace_ids if key not in due])
    return {key: start + FIRST_AFTER for key, start in starts.items()} | due


def require_reviewed(subject: str, workspace_id: UUID) -> None:
    """Raises ReviewOverdue. In the staff session of whoever may enrol or promote there, who need not see reviews."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT operations_review_due(%s, %s)", [workspace_id, subject])
        due = cursor.fetchone()[0]
    if due is None:
        start = _subjects[subject].start_of(workspace_id)
        due = start + FIRST_AFTER if start else None
    if due is not None and due <= clock.now():
        raise ReviewOverdue


def decide(
    *,
    subject: str,
    workspace_id: UUID,
    decision: Decision,
    next_due_at: datetime,
    reason: str,
    limits: Mapping[str, int] | None = None,
) -> RetentionReview:
    """Record a decision with its inputs, in the staff session of a holder of `review_retention`.

    `limits` are those of a shortening, which waits for `approve`. Raises NotFound, Forbidden, InvalidRequest.
    """
    staff = current_staff()
    check_reason(reason)
    _require_grant(workspace_id)
    kind = _subjects[subject]
    if not timedelta(days=1) <= next_due_at - clock.now() <= LONGEST_AHEAD:
        raise InvalidRequest("The next review is 1 to 92 days ahead", pointer="/next_due_at")
    if (decision == Decision.SHORTEN) != bool(limits):
        raise InvalidRequest("A shortening says what to, nothing else does", pointer="/limits")
    start = kind.start_of(workspace_id)
    due = due_at(subject, workspace_id, start)
    if due is None:
        raise StateConflict("Nothing was ever kept here", code="nothing_to_review")
    if limits:
        kind.check(workspace_id, limits)
    with transaction.atomic():
        row = RetentionReview.objects.create(
            workspace_id=workspace_id,
            subject=subject,
            decision=decision,
            due_at=due,
            next_due_at=next_due_at,
            limits=dict(limits or {}),
            inputs=gather(subject, workspace_id),
            reason=reason,
            made_by_id=staff.user_id,
        )
        _audit("decide_review", row, reason)
    return row


def approve(*, review_id: UUID, reason: str) -> RetentionReview:
    """Another person lets a shortening take effect: for new rows now, for old ones by the job sent on commit.

    Raises NotFound, Forbidden for the person who made it, StateConflict, InvalidRequest where limits moved since.
    """
    from apps.operations.tasks import carry_out_reviews

    staff = current_staff()
    check_reason(reason)
    with transaction.atomic():
        row = RetentionReview.objects.select_for_update().filter(pk=review_id).first()
        if row is None or row.decision != Decision.SHORTEN:
            raise NotFound(code="unknown_review")
        _require_grant(row.workspace_id)
        if row.made_by_id == staff.user_id:
            raise Forbidden("Another person approves a shortening")
        if row.approved_at is not None:
            raise StateConflict("It is approved already", code="review_approved")
        kind = _subjects[row.subject]
        kind.check(row.workspace_id, row.limits)
        kind.shorten(row.workspace_id, row.limits, reason)
        row.approved_by_id, row.approved_at = staff.user_id, clock.now()
        row.save(update_fields=["approved_by", "approved_at"])
        _audit("approve_review", row, reason)
    transaction.on_commit(lambda: carry_out_reviews.delay(), robust=True)  # the daily look finds it otherwise
    return row


def carry_out() -> int:
    """Move the deadlines of old rows for every approved shortening; how many. Outside of any session."""
    done = 0
    for row in RetentionReview.objects.filter(approved_at__isnull=False, carried_out_at=None):
        _subjects[row.subject].carry_out(row.workspace_id, row.limits)
        RetentionReview.objects.filter(pk=row.pk).update(carried_out_at=clock.now())
        done += 1
    return done


def check_due() -> int:
    """Alarm on every overdue review; how many there are. Outside of any session."""
    overdue = 0
    for subject in _subjects.values():
        for workspace_id, start in subject.starts().items():
            due = due_at(subject.name, workspace_id, start)
            late = due is not None and due <= clock.now()
            readings = (
                {OVERDUE: {"hours": int((clock.now() - due) / timedelta(hours=1))}} if late and due else {}
            )
            alarms.settle(source=f"reviews:{subject.name}", readings=readings, workspace=workspace_id)
            overdue += late
    return overdue


def _audit(act: str, row: RetentionReview, reason: str) -> None:
    audit.record(
        f"operations.{act}",
        RetentionReview._meta.label_lower,
        row.pk,
        workspace=row.workspace_id,
        reason=reason,
        details={"decision": str(row.decision), **row.limits},
    )


def _require_grant(workspace_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s = ANY (accounts_granted_workspaces(%s))", [workspace_id, [GRANT]])
        if not cursor.fetchone()[0]:
            raise Forbidden
