"""Legal holds: a held record is not deleted, superseded away or edited, by anyone, retention jobs included.

The law: whoever deletes asks `require_free` (or, in SQL, `operations_hold_check` or `operations_hold_lock`) in
the deleting transaction. It takes a shared lock on the kinds; placing a hold takes it alone, so a hold is either
seen by the deletion or waits for its end. When the answer cannot be had, nothing is deleted. A hold stops
deletion, not hiding. Placer and releaser are two persons, each with `review_retention`. Rows stay after release.

    holds.register_kind(HoldKind("traces.trace", "a trace", locate=workspace_of_trace))
    holds.register_kind(HoldKind("observations.observation", "an observation", raw=True))
    holds.require_free(("traces.trace", trace.pk), ("traces.principal", trace.principal_id))
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg
import structlog
from django.db import DatabaseError, connection, transaction

from apps.core import audit, clock
from apps.core.db.sessions import current_staff
from apps.core.problems import Forbidden, InvalidRequest, NotFound, StateConflict, Unavailable, Unprocessable
from apps.core.reasons import check_reason
from apps.operations import alarms
from apps.operations.models import HoldItem, LegalHold

logger = structlog.get_logger(__name__)

Item = tuple[str, UUID]
LONGEST_REASON = 500
LONGEST_REFERENCE = 100
MOST_ITEMS = 1000
_CHECK = "SELECT operations_hold_check(%s, %s)"
_FUNCTIONS = re.compile(r"\boperations_(?:hold_lock|hold_check|held|held_ids)\b")
"""What is asked about holds in SQL; PostgreSQL names the function in what it says of a failure inside."""


class LegalHoldInPlace(StateConflict):
    code, title = "legal_hold", "A legal hold keeps this"


class HoldCheckFailed(Unavailable):
    code, title = "hold_check_failed", "Holds cannot be read, so nothing is deleted"


class HoldCannotCoverRawData(Unprocessable):
    code, title = "hold_cannot_cover_raw_data", "Nothing may keep raw data beyond its deadline"


class UnknownHoldKind(Unprocessable):
    code, title = "unknown_hold_kind", "No such kind of record can be held"


class HoldReleased(StateConflict):
    code, title = "hold_released", "This hold is released"


class FourEyes(Forbidden):
    code, title = "four_eyes", "Another person must do that"


@dataclass(frozen=True, slots=True)
class HoldKind:
    """A kind of object. `locate(id)`: its workspace as the staff session sees it, None when there is none.

    raw: raw data, which no hold may cover; registered so that the refusal says why.
    """

    name: str
    title: str
    locate: Callable[[UUID], UUID | None] | None = None
    raw: bool = False


_kinds: dict[str, HoldKind] = {}


def register_kind(kind: HoldKind) -> None:
    if not kind.raw and kind.locate is None:
        raise ValueError(f"{kind.name}: a kind that can be held says where its objects are")
    _kinds[kind.name] = kind


def unregister_kind(name: str) -> None:
    """For tests that register kinds of their own."""
    _kinds.pop(name, None)


def kinds() -> list[HoldKind]:
    """Every kind that can be held, by name."""
    return sorted((kind for kind in _kinds.values() if not kind.raw), key=lambda kind: kind.name)


def place(*, workspace_id: UUID, reference: str, reason: str, items: Sequence[Item]) -> LegalHold:
    """Place a hold on the items, in a staff session with `review_retention` on the workspace.

    Raises HoldCannotCoverRawData, UnknownHoldKind, NotFound (an item that is not in the workspace).
    """
    staff = current_staff()
    _check_texts(reference, reason)
    _check_items(workspace_id, items)
    with transaction.atomic():
        hold = LegalHold.objects.create(
            workspace_id=workspace_id,
            reference=reference,
            reason=reason,
            placed_by_id=staff.user_id,
            placed_at=clock.now(),
        )
        _add(hold, items)
        _audit("place_hold", hold, reason, len(items))
    return hold


def extend(*, hold_id: UUID, items: Sequence[Item], reason: str) -> LegalHold:
    """Add items to a hold that is in place."""
    current_staff()
    with transaction.atomic():
        hold = _find(hold_id)
        _check_texts(hold.reference, reason)
        _check_items(hold.workspace_id, items)
        _add(hold, items)
        _audit("extend_hold", hold, reason, len(items))
    return hold


def release(*, hold_id: UUID, reason: str) -> LegalHold:
    """End a hold, by another person than its placer. Ordinary rules apply from the next scheduled run on."""
    staff = current_staff()
    with transaction.atomic():
        hold = _find(hold_id)
        _check_texts(hold.reference, reason)
        if hold.placed_by_id == staff.user_id:
            raise FourEyes("Who placed a hold cannot release it.")
        hold.released_by_id, hold.released_at = staff.user_id, clock.now()
        hold.release_reason = reason
        hold.save(update_fields=["released_by", "released_at", "release_reason"])
        _audit("release_hold", hold, reason, hold.items.count())
    return hold


def require_free(*items: Item) -> None:
    """In the deleting transaction: raises LegalHoldInPlace, or HoldCheckFailed when holds cannot be read."""
    if _check(items):
        raise LegalHoldInPlace


def covers(kind: str, object_id: UUID) -> bool:
    """Whether a hold covers the object, asked under the lock. Raises HoldCheckFailed."""
    return _check(((kind, object_id),))


def held_ids(kind: str) -> list[UUID]:
    """Every held object of a kind, asked under the lock, for deletions of many. In a maintenance session.

    Raises HoldCheckFailed.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT operations_held_ids(%s)", [kind])
            return [row[0] for row in cursor.fetchall()]
    except DatabaseError:
        logger.error("hold_check_failed", code="hold_check_failed")
        raise HoldCheckFailed from None


def is_held(kind: str, object_id: UUID) -> bool:
    """The same for display: without a lock, so it may be outdated at once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT operations_held(%s, %s)", [[kind], [object_id]])
        return bool(cursor.fetchone()[0])


def _check(items: Sequence[Item]) -> bool:
    if not connection.in_atomic_block:
        raise RuntimeError("holds are checked in the deleting transaction")
    names, ids = [kind for kind, _ in items], [object_id for _, object_id in items]
    try:
        # A savepoint, so that the failure can be told from what the caller has done.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_CHECK, [names, ids])
            return bool(cursor.fetchone()[0])
    except DatabaseError:
        logger.error("hold_check_failed", code="hold_check_failed")
        raise HoldCheckFailed from None


def is_failed_check(error: DatabaseError) -> bool:
    """Whether a function in PostgreSQL deleted nothing because it could not ask about holds.

    A statement that ran out of its time says nothing about the question it was at.
    """
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error) or isinstance(cause, psycopg.errors.QueryCanceled):
        return False
    told = (cause.diag.context, cause.diag.message_primary)
    return any(_FUNCTIONS.search(words) for words in told if words)


def alarm_failed_check(source: str) -> None:
    """For tasks that met HoldCheckFailed, or a failed check in SQL, outside of the session that it ended."""
    alarms.raise_alarm(source=source, reason=HoldCheckFailed.code)


def _check_texts(reference: str, reason: str) -> None:
    check_reason(reference, pointer="/reference", longest=LONGEST_REFERENCE)
    check_reason(reason, longest=LONGEST_REASON)


def _check_items(workspace_id: UUID, items: Sequence[Item]) -> None:
    if not 1 <= len(items) <= MOST_ITEMS:
        raise InvalidRequest(f"1 to {MOST_ITEMS} items.", pointer="/items")
    for index, (name, object_id) in enumerate(items):
        pointer = f"/items/{index}"
        kind = _kinds.get(name)
        if kind is None:
            raise UnknownHoldKind(pointer=pointer)
        if kind.raw or kind.locate is None:
            raise HoldCannotCoverRawData(pointer=pointer)
        if kind.locate(object_id) != workspace_id:
            raise Unprocessable("No such object in this workspace.", pointer=pointer, code="unknown_object")


def _add(hold: LegalHold, items: Sequence[Item]) -> None:
    known = set(hold.items.values_list("kind", "object_id"))
    HoldItem.objects.bulk_create(
        HoldItem(workspace_id=hold.workspace_id, hold=hold, kind=kind, object_id=object_id)
        # In one order, so that two holds on the same kinds cannot block each other.
        for kind, object_id in sorted(set(items) - known)
    )


def _find(hold_id: UUID) -> LegalHold:
    hold = LegalHold.objects.select_for_update().filter(pk=hold_id).first()
    if hold is None:
        raise NotFound(code="unknown_hold")
    if hold.released_at is not None:
        raise HoldReleased
    return hold


def _audit(action: str, hold: LegalHold, reason: str, items: int) -> None:
    audit.record(
        f"operations.{action}",
        "operations.legalhold",
        hold.pk,
        workspace=hold.workspace_id,
        reason=reason,
        details={"items": items},
    )
