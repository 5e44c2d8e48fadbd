"""What may be a stored policy: the registry that the owning apps fill at start-up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.problems import NotFound
from apps.core.schemas import StrictModel


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One value that differs: JSON pointer into the document, value before and after (None: absent)."""

    pointer: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """A version that somebody wants to publish. `workspace_id` None is the default of the installation;
    `effective_from` None is at once."""

    workspace_id: UUID | None
    before: StrictModel
    after: StrictModel
    fields: tuple[FieldChange, ...]
    effective_from: datetime | None

    def changes(self, *prefixes: str) -> tuple[FieldChange, ...]:
        """The changes at or below the pointers."""
        return tuple(
            found for found in self.fields if any(under(found.pointer, prefix) for prefix in prefixes)
        )


def _no_refusal(change: Change) -> None:
    return None


def _no_preview(change: Change) -> None:
    return None


@dataclass(frozen=True)
class Kind:
    """A kind of policy.

    model: the document. default: what the migration wrote. permission: the grant that publishing needs;
    field_permissions: pointer → grant for the fields below it, in its place. lock: taken before anything is read,
    so that nobody acts under the old version while the new one is checked. refusal: raises a Problem where the
    present state forbids the change. preview: what the change would do, as JSON values or a part of a page.
    scheduled: whether a version may take effect later.
    """

    name: str
    model: type[StrictModel]
    default: StrictModel
    permission: str
    field_permissions: Mapping[str, str] = field(default_factory=dict)
    refusal: Callable[[Change], None] = _no_refusal
    preview: Callable[[Change], Any] = _no_preview
    lock: Callable[[], None] | None = None
    scheduled: bool = True
    title: str = ""

    def grant_for(self, pointer: str) -> str:
        """The grant that changing the field needs; the longest pointer decides."""
        fitting = [prefix for prefix in self.field_permissions if under(pointer, prefix)]
        return self.field_permissions[max(fitting, key=len)] if fitting else self.permission


_kinds: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Called in the owning app's `ready`. Registering the same name again replaces (a reload), a clash raises."""
    known = _kinds.get(kind.name)
    if known is not None and known.model is not kind.model:
        raise ValueError(f"two apps register the policy kind {kind.name}")
    _kinds[kind.name] = kind


def unregister_kind(name: str) -> None:
    """For tests that bring a kind of their own."""
    _kinds.pop(name, None)


def registered_kinds() -> tuple[Kind, ...]:
    return tuple(_kinds[name] for name in sorted(_kinds))


def kind_named(name: str) -> Kind:
    """Raises NotFound (`unknown_policy_kind`)."""
    if name not in _kinds:
        raise NotFound(code="unknown_policy_kind")
    return _kinds[name]


def under(pointer: str, prefix: str) -> bool:
    """Whether a JSON pointer is at or below another."""
    return pointer == prefix or pointer.startswith(prefix + "/")
