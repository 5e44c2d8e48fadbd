"""Database sessions: closed by default.

The law of this module: the login of web and workers reads no owned row. Work happens in a *session*, one
transaction that takes one identity by transaction-local settings, so a pooled connection carries nothing over.
Another identity inside raises; the one exception is `act_for`, by which staff write a principal's rows.
Querysets that outlive their session see nothing: evaluate inside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction
from psycopg import IsolationLevel

from apps.core.db import cursors
from apps.core.db.identity import (
    Identity,
    MaintenanceIdentity,
    MonitorIdentity,
    PrincipalIdentity,
    StaffIdentity,
)

P = ParamSpec("P")
R = TypeVar("R")

_current: ContextVar[Identity | None] = ContextVar("database_identity", default=None)
_actor: ContextVar[StaffIdentity | None] = ContextVar("database_actor", default=None)

# Every setting that an identity may set. A session writes all of them, so none is left from what came before.
SETTINGS = ("memory.principal_id", "memory.workspace_id", "memory.shared_principal_id", "memory.user_id")


class SessionError(RuntimeError):
    """A session was used against its rules. A programming error, never shown to callers."""


class NestedSession(SessionError):
    """Another identity was asked for inside a session."""


class UnknownPrincipal(LookupError):
    """No such principal, or it is disabled."""


class GrantMissing(PermissionError):
    """The staff user holds no such grant on the workspace of that principal (or there is no such principal)."""


def current() -> Identity | None:
    """The identity of the running session, or None."""
    return _current.get()


def current_principal() -> PrincipalIdentity:
    """The principal of the running session. Raises SessionError outside of one."""
    identity = _current.get()
    if not isinstance(identity, PrincipalIdentity):
        raise SessionError("this needs a principal session")
    return identity


def current_staff() -> StaffIdentity:
    """The staff user of the running session, also while it acts for a principal."""
    identity = _actor.get() or _current.get()
    if not isinstance(identity, StaffIdentity):
        raise SessionError("this needs a staff session")
    return identity


def acting_staff() -> StaffIdentity | None:
    """The staff user who acts for the principal of this session, or None when the principal acts itself."""
    return _actor.get()


def _take(
    role: str,
    values: dict[str, str],
    limits: Mapping[str, str] | None = None,
    along: Sequence[cursors.Question[Any]] = (),
) -> None:
    given = dict.fromkeys(SETTINGS, "") | {"role": role} | values | dict(limits or {})
    _set(given, along)


def _set(values: Mapping[str, str], along: Sequence[cursors.Question[Any]] = ()) -> None:
    """Set these, then ask what comes along: it runs under them, and in the same round trip."""
    calls = ", ".join(["set_config(%s, %s, true)"] * len(values))
    setting = cursors.Question("SELECT " + calls, [part for pair in values.items() for part in pair], len)
    cursors.ask(setting, *along)


@contextmanager
def _session(
    identity: Identity,
    limits: Mapping[str, str] | None = None,
    along: Sequence[cursors.Question[Any]] = (),
) -> Iterator[Identity]:
    running = _current.get()
    if running is not None:
        if running != identity:
            raise NestedSession(f"a session of {running.role} is open; {identity.role} may not begin inside")
        if limits:
            _set(limits, along)
        elif along:
            cursors.ask(*along)
        yield identity
        return
    with _transaction(), _taken(identity, limits, along):
        yield identity


@contextmanager
def _transaction() -> Iterator[None]:
    """A transaction whose settings end with it."""
    with transaction.atomic(durable=True):
        yield
    if connection.in_atomic_block and not connection.needs_rollback:
        # Only inside a test case's own transaction: there the settings would outlive the session.
        _take("none", {})


@contextmanager
def _taken(
    identity: Identity,
    limits: Mapping[str, str] | None = None,
    along: Sequence[cursors.Question[Any]] = (),
) -> Iterator[None]:
    """The running transaction as this identity."""
    _take(identity.role, identity.settings(), limits, along)
    token = _current.set(identity)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def principal_session(
    principal: PrincipalIdentity | UUID,
    *,
    limits: Mapping[str, str] | None = None,
    along: Sequence[cursors.Question[Any]] = (),
) -> Iterator[PrincipalIdentity]:
    """A transaction as one principal: its own rows, and those its workspace shares.

    `limits` are settings of PostgreSQL for this transaction, such as timeouts. They are set in the round trip that
    takes the identity; what is to be read first may come `along` in it, and is answered when the block begins.
    By id (background work) the identity is looked up first; raises UnknownPrincipal.
    """
    running = _current.get()
    if isinstance(principal, UUID):
        if isinstance(running, PrincipalIdentity) and running.principal_id == principal:
            principal = running
        elif running is not None:
            raise NestedSession(f"a session of {running.role} is open; a principal's may not begin inside")
        else:
            principal = identity_of(principal)
    with _session(principal, limits, along):
        yield principal


@contextmanager
def entering_session(enter: Callable[[], PrincipalIdentity]) -> Iterator[PrincipalIdentity]:
    """The session of a principal that `enter` looks up or makes in its transaction: a session that fails leaves no
    new principal behind. Raises NestedSession inside of another, and what `enter` does."""
    if _current.get() is not None:
        raise NestedSession("a session is open; nobody is entered inside")
    with _transaction():
        identity = enter()
        with _taken(identity):
            yield identity


@contextmanager
def snapshot_session(
    principal: PrincipalIdentity | UUID, *, limits: Mapping[str, str] | None = None
) -> Iterator[PrincipalIdentity]:
    """A principal's session that sees one state of the database from its first read to its end.

    It is a transaction of its own (REPEATABLE READ). Raises SessionError inside of another; UnknownPrincipal.
    """
    if connection.in_atomic_block:
        raise SessionError("a snapshot begins a transaction of its own")
    identity = identity_of(principal) if isinstance(principal, UUID) else principal
    connection.ensure_connection()
    session = connection.connection
    usual = session.isolation_level
    session.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with principal_session(identity, limits=limits) as opened:
            yield opened
    finally:
        if not session.closed:
            session.isolation_level = usual


@contextmanager
def staff_session(user: AbstractBaseUser | int) -> Iterator[StaffIdentity]:
    """A transaction as a staff user: rows of the workspaces on which it holds the grant that a model names."""
    identity = StaffIdentity(user_id=user if isinstance(user, int) else int(user.pk))
    with _session(identity):
        yield identity


@contextmanager
def maintenance_session() -> Iterator[None]:
    """A transaction that may run the maintenance functions and read nothing."""
    with _session(MaintenanceIdentity()):
        yield


@contextmanager
def monitor_session() -> Iterator[None]:
    """A transaction that may run the status functions and read nothing."""
    with _session(MonitorIdentity()):
        yield


@contextmanager
def act_for(principal_id: UUID, grant: str) -> Iterator[PrincipalIdentity]:
    """Inside a staff session: take a principal's identity until the block ends, the user staying the actor.

    Raises GrantMissing where the user does not hold `grant` on the principal's workspace.
    """
    staff = _current.get()
    if not isinstance(staff, StaffIdentity):
        raise SessionError("act_for needs a staff session around it")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT principal_id, workspace_id, shared_principal_id FROM accounts_act_for(%s, %s)",
            [principal_id, grant],
        )
        row = cursor.fetchone()
    if row is None:
        raise GrantMissing(grant)
    identity = PrincipalIdentity(*row)
    # The savepoint gives the identity back by itself when the block fails.
    with transaction.atomic():
        _take(identity.role, identity.settings() | staff.settings())
        tokens = _current.set(identity), _actor.set(staff)
        try:
            yield identity
        finally:
            _current.reset(tokens[0])
            _actor.reset(tokens[1])
        _take(staff.role, staff.settings())


def identity_of(principal_id: UUID) -> PrincipalIdentity:
    """The identity of a principal by id. Raises UnknownPrincipal when absent or disabled."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT principal_id, workspace_id, shared_principal_id FROM accounts_principal_identity(%s)",
            [principal_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise UnknownPrincipal
    return PrincipalIdentity(*row)


def own_transactions(view: Callable[P, R]) -> Callable[P, R]:
    """Mark a view that opens its sessions itself (search, streams, whatever reaches a network).

    It gets the verified identity in `request.caller` and no transaction.
    """

    @wraps(view)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return view(*args, **kwargs)

    marked: Any = transaction.non_atomic_requests(wrapped)
    marked.own_transactions = True
    return marked  # type: ignore[no-any-return]
