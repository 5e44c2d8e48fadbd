"""The pointer to the active profile of one principal and scope set: what each command makes of it. Pure.

The law: a pointer is at base until a command moves it, and what it points to is the result of its newest
transition. A command names the state that its author saw, and counts only while that is the state. A profile
becomes active from the baseline that it was measured against, and one goes back only to where the pointer has
been, or to base. Whatever is accepted is a transition, also when it changes nothing; a transition is never older
than the one before it, whatever the clock says.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from apps.learning.exceptions import NeverActive, StaleState, WrongBaseline

# Order within a pointer is by time alone, so that two transitions never share one.
LEAST_STEP = timedelta(microseconds=1)

ALL_SCOPES = "*"
_SEPARATOR = ","


class TransitionKind(StrEnum):
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    ROLLBACK = "rollback"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a pointer stands. `active` is the profile, None at base; `moved_at` is when it last had a transition."""

    active: UUID | None = None
    moved_at: datetime | None = None

    def moment(self, now: datetime) -> datetime:
        """The time of a next transition: now, or just after the last one where the clock went back."""
        return now if self.moved_at is None else max(now, self.moved_at + LEAST_STEP)


@dataclass(frozen=True, slots=True)
class Step:
    """What an accepted command does: from `expected` to `resulting`, None being base."""

    kind: TransitionKind
    expected: UUID | None
    resulting: UUID | None

    @property
    def moves(self) -> bool:
        """Whether the state changes; a step that does not is recorded all the same."""
        return self.expected != self.resulting


def activate(pointer: Pointer, *, profile: UUID, baseline: UUID | None, expected: UUID | None) -> Step:
    """Make a profile active that was measured against `baseline` (None: base).

    Raises StaleState, or WrongBaseline where something else is active than what it improved upon.
    """
    _as_expected(pointer, expected)
    if pointer.active != profile and pointer.active != baseline:
        raise WrongBaseline
    return Step(TransitionKind.ACTIVATE, expected, profile)


def deactivate(pointer: Pointer, *, expected: UUID | None) -> Step:
    """Return to base scoring. Raises StaleState."""
    _as_expected(pointer, expected)
    return Step(TransitionKind.DEACTIVATE, expected, None)


def roll_back(pointer: Pointer, *, to: UUID | None, has_been_active: bool, expected: UUID | None) -> Step:
    """Go back to a profile that was active before on this pointer, or (None) to base.

    Raises StaleState, or NeverActive.
    """
    _as_expected(pointer, expected)
    if to is not None and not has_been_active:
        raise NeverActive
    return Step(TransitionKind.ROLLBACK, expected, to)


def expire(pointer: Pointer, *, profile: UUID) -> Step | None:
    """The end of a profile's term; None where it is no longer what is active."""
    return Step(TransitionKind.EXPIRE, profile, None) if pointer.active == profile else None


def _as_expected(pointer: Pointer, expected: UUID | None) -> None:
    if pointer.active != expected:
        raise StaleState(active=str(pointer.active) if pointer.active else None)


def scope_key_of(scopes: tuple[str, ...] | None) -> str:
    """The text by which a pointer is found: sorted distinct scopes, joined; all scopes are a set of their own.

    Slugs hold neither the separator nor the sign for all, so that no two sets share a text.
    """
    return ALL_SCOPES if scopes is None else _SEPARATOR.join(sorted(set(scopes)))
