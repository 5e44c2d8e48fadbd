"""What a model declares about who may touch its rows; the source of policies, grants and their verification.

A policy's SQL reads the session's settings inside a scalar sub-select, so that it is evaluated once a query and
the comparison stays a plain, leakproof `=` that can use an index.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Literal, Protocol

from django.utils.deconstruct import deconstructible

Command = Literal["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"]

API, STAFF, MAINTENANCE, MONITOR, APP, OWNER = (
    "memory_api",
    "memory_staff",
    "memory_maintenance",
    "memory_monitor",
    "memory_app",
    "memory_owner",
)

OWN = "(SELECT nullif(current_setting('memory.principal_id', true), '')::uuid)"
SHARED = "(SELECT nullif(current_setting('memory.shared_principal_id', true), '')::uuid)"
WORKSPACE = "(SELECT nullif(current_setting('memory.workspace_id', true), '')::uuid)"
SUPERUSER = "(SELECT public.accounts_is_superuser())"


def granted(*grants: str) -> str:
    """SQL: the workspace of the row is one on which the session's user holds one of the grants."""
    names = ", ".join(f"'{grant}'" for grant in grants)
    return f"workspace_id = ANY ((SELECT public.accounts_granted_workspaces(ARRAY[{names}]))::uuid[])"


@dataclass(frozen=True, slots=True)
class Policy:
    """One row policy as PostgreSQL knows it. `using` and `check` are SQL or None."""

    name: str
    command: Command
    role: str
    using: str | None = None
    check: str | None = None

    def sql(self, table: str) -> str:
        using = f" USING ({self.using})" if self.using else ""
        check = f" WITH CHECK ({self.check})" if self.check else ""
        return (
            f'CREATE POLICY "{self.name}" ON "{table}" AS PERMISSIVE '
            f"FOR {self.command} TO {self.role}{using}{check}"
        )

    def digest(self, table: str) -> str:
        """Names the declaration, so that the database can tell which one a policy was made from."""
        return hashlib.sha256(self.sql(table).encode()).hexdigest()[:32]


Rights = dict[str, frozenset[str]]


class RowPolicy(Protocol):
    """What `ApplyRowPolicy`, the grants and their verification ask of a declaration."""

    def policies(self, table: str) -> tuple[Policy, ...]: ...

    def rights(self) -> Rights: ...


READ = frozenset({"SELECT"})
APPEND = frozenset({"SELECT", "INSERT"})
WRITE = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})


def _both(*conditions: str | None) -> str:
    return " AND ".join(f"({condition})" for condition in conditions if condition)


def _owner(table: str) -> Policy:
    # Definer functions run as the owner; FORCE would make them touch no row at all, silently.
    return Policy(f"{table}_owner", "ALL", OWNER, "true", "true")


@deconstructible
@dataclass
class OwnerPolicy:
    """Rows of one principal.

    staff: the grant with which staff read rows of their workspaces; None hides them from staff.
    shared: rows owned by the workspace's shared principal are read by every principal of it.
    append_only: no runtime role may UPDATE or DELETE.
    visible: SQL on the row; where false it is hidden from principals and staff, whatever they own.
    staff_visible: the same for staff alone, in place of `visible`.
    """

    staff: str | tuple[str, ...] | None = None
    shared: bool = False
    append_only: bool = False
    visible: str | None = None
    staff_visible: str | None = None

    def policies(self, table: str) -> tuple[Policy, ...]:
        own = f"principal_id = {OWN}"
        found = [_owner(table), Policy(f"{table}_api", "ALL", API, _both(own, self.visible), own)]
        if self.shared:
            shared = _both(f"principal_id = {SHARED}", self.visible)
            found.append(Policy(f"{table}_api_shared", "SELECT", API, shared))
        if self.staff:
            grants = (self.staff,) if isinstance(self.staff, str) else self.staff
            seen = _both(granted(*grants), self.staff_visible or self.visible)
            found.append(Policy(f"{table}_staff", "SELECT", STAFF, seen))
        return tuple(found)

    def rights(self) -> Rights:
        rights = {API: APPEND if self.append_only else WRITE}
        if self.staff:
            rights[STAFF] = READ
        return rights


@deconstructible
@dataclass
class WorkspacePolicy:
    """Rows of a workspace as a whole: staff read and write by grant, principals read where `api` says so.

    defaults: rows without a workspace are the installation's defaults, read by everyone.
    superuser: superusers read and write too (accounts; never data).
    """

    read: tuple[str, ...] | str
    write: tuple[str, ...] | str | None = None
    api: bool = False
    append_only: bool = False
    defaults: bool = False
    superuser: bool = False

    def policies(self, table: str) -> tuple[Policy, ...]:
        found = [_owner(table)]
        default = "workspace_id IS NULL" if self.defaults else None
        found.append(Policy(f"{table}_staff", "SELECT", STAFF, self._any(self._granted(self.read), default)))
        if self.write:
            allowed = self._any(self._granted(self.write), None)
            if self.append_only:
                found.append(Policy(f"{table}_staff_append", "INSERT", STAFF, None, allowed))
            else:
                found.append(Policy(f"{table}_staff_write", "ALL", STAFF, allowed, allowed))
        if self.api:
            found.append(
                Policy(
                    f"{table}_api",
                    "SELECT",
                    API,
                    self._any(f"workspace_id = {WORKSPACE}", default, superuser=False),
                )
            )
        return tuple(found)

    def _granted(self, grants: tuple[str, ...] | str) -> str:
        return granted(*((grants,) if isinstance(grants, str) else grants))

    def _any(self, condition: str, default: str | None, superuser: bool = True) -> str:
        parts = [condition, default, SUPERUSER if self.superuser and superuser else None]
        return " OR ".join(f"({part})" for part in parts if part)

    def rights(self) -> Rights:
        staff = READ if not self.write else APPEND if self.append_only else WRITE
        return {STAFF: staff} | ({API: READ} if self.api else {})


@deconstructible
@dataclass
class CustomPolicy:
    """Policies written out, where neither kind fits. `rules` lack the owner's own policy, which is added."""

    rules: tuple[tuple[str, Command, str, str | None, str | None], ...]
    allow: dict[str, str] = field(default_factory=dict)

    def policies(self, table: str) -> tuple[Policy, ...]:
        written = tuple(Policy(f"{table}_{name}", *rest) for name, *rest in self.rules)  # type: ignore[arg-type]
        return (_owner(table), *written)

    def rights(self) -> Rights:
        return {role: letters(text) for role, text in self.allow.items()}


@deconstructible
@dataclass
class Unowned:
    """A table without an owner: no row policy, the rights of each role as letters out of `r a w d`."""

    reason: str
    app: str = ""
    api: str = ""
    staff: str = ""
    maintenance: str = ""
    monitor: str = ""

    def policies(self, table: str) -> tuple[Policy, ...]:
        return ()

    def rights(self) -> Rights:
        given = {
            APP: self.app,
            API: self.api,
            STAFF: self.staff,
            MAINTENANCE: self.maintenance,
            MONITOR: self.monitor,
        }
        return {role: letters(text) for role, text in given.items() if text}


def letters(text: str) -> frozenset[str]:
    """`r a w d` → SELECT, INSERT, UPDATE, DELETE."""
    names = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}
    return frozenset(names[letter] for letter in text)
