"""Families `attributes` and `memberships`: what the roles are, and what they may become."""

from collections.abc import Collection, Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import LOGINS, ROLES, Role
from apps.core.db.rowpolicy import OWNER
from apps.core.db.verify.difference import Difference

LEAST_VERSION = 150000
POWERS = {
    "rolsuper": "SUPERUSER",
    "rolbypassrls": "BYPASSRLS",
    "rolcreaterole": "CREATEROLE",
    "rolcreatedb": "CREATEDB",
    "rolreplication": "REPLICATION",
    "rolinherit": "INHERIT",
}
PRESETS = ("row_security", "role", "session_replication_role")
"""Settings that would turn off row security or triggers, or begin sessions as somebody else."""


def attributes(cursor: CursorWrapper) -> Iterator[Difference]:
    """Roles without powers, a server that is new enough, no settings that change sessions behind our back."""
    yield from _server(cursor)
    cursor.execute("SELECT session_user::text")
    (login,) = cursor.fetchone()
    yield from role_attributes(cursor, logins=frozenset(LOGINS), more=(login,))
    yield from _presets(cursor)


def role_attributes(
    cursor: CursorWrapper, *, logins: frozenset[str], more: tuple[str, ...] = ()
) -> Iterator[Difference]:
    """Our roles, and `more` that must be without powers as well. `logins`: those of ours that may sign in."""
    expected = {role.name: role for role in ROLES}
    found = _roles(cursor, [*expected, *more])
    for name in expected:
        if name not in found:
            yield Difference("attributes", f"role {name}", "the role", "none", loosens=False)
    for name, row in sorted(found.items()):
        yield from _powers(name, row, expected.get(name))
        if name in expected and name not in logins and row["rolcanlogin"]:
            yield Difference("attributes", f"role {name}", "NOLOGIN", "LOGIN")


def _server(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute("SELECT current_setting('server_version_num')::int")
    (version,) = cursor.fetchone()
    if version < LEAST_VERSION:
        yield Difference("attributes", "server", "PostgreSQL 15 or newer", str(version))
    # The owner's functions tell by it whether the database is a copy.
    cursor.execute(
        "SELECT bool_or(has_function_privilege(oid, 'pg_control_system()', 'EXECUTE')) "
        "FROM pg_roles WHERE rolname = %s",
        [OWNER],
    )
    (readable,) = cursor.fetchone()
    if readable is False:
        yield Difference("attributes", "cluster identity", f"readable by {OWNER}", "not readable")


def _roles(cursor: CursorWrapper, names: list[str]) -> dict[str, dict[str, bool]]:
    columns = ", ".join(POWERS)
    cursor.execute(f"SELECT rolname, rolcanlogin, {columns} FROM pg_roles WHERE rolname = ANY (%s)", [names])
    keys = ("rolcanlogin", *POWERS)
    return {name: dict(zip(keys, values, strict=True)) for name, *values in cursor.fetchall()}


def _powers(name: str, row: dict[str, bool], role: Role | None) -> Iterator[Difference]:
    for column, power in POWERS.items():
        if row[column] and not (column == "rolinherit" and role is None):
            yield Difference("attributes", f"role {name}", f"NO{power}", power)


def _presets(cursor: CursorWrapper) -> Iterator[Difference]:
    """A value preset for a role or database would be in force before a session sets its own."""
    cursor.execute(
        """
        SELECT coalesce(r.rolname, '(any role)'), coalesce(d.datname, '(any database)'), preset
        FROM pg_db_role_setting s
        LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
        CROSS JOIN LATERAL unnest(s.setconfig) preset
        WHERE (d.datname IS NULL OR d.datname = current_database())
          AND (split_part(preset, '=', 1) = ANY (%s) OR preset LIKE 'memory.%%')
        """,
        [list(PRESETS)],
    )
    for role, database, preset in cursor.fetchall():
        name = preset.split("=", 1)[0]
        yield Difference("attributes", f"setting {name} of {role} in {database}", "not preset", "preset")


def memberships(cursor: CursorWrapper) -> Iterator[Difference]:
    """Exactly the declared memberships, none inherited, none with the admin option, no path to the owner.

    A superuser needs no membership, so one that it has gives it nothing.
    """
    cursor.execute("SELECT current_setting('server_version_num')::int >= 160000")
    inherits = "m.inherit_option" if cursor.fetchone()[0] else "false"
    names = [role.name for role in ROLES]
    cursor.execute(
        f"""
        SELECT child.rolname, parent.rolname, bool_or(m.admin_option), bool_or({inherits})
        FROM pg_auth_members m JOIN pg_roles child ON child.oid = m.member JOIN pg_roles parent ON parent.oid = m.roleid
        WHERE child.rolname = ANY (%(names)s) OR (parent.rolname = ANY (%(names)s) AND NOT child.rolsuper)
        GROUP BY 1, 2
        """,
        {"names": names},
    )
    found = {(child, parent): (admin, inherit) for child, parent, admin, inherit in cursor.fetchall()}
    expected = {(role.name, parent) for role in ROLES for parent in role.member_of}
    for child, parent in sorted(found.keys() - expected):
        yield Difference("memberships", f"role {child}", f"not a member of {parent}", "a member")
    for child, parent in sorted(expected - found.keys()):
        yield Difference(
            "memberships", f"role {child}", f"a member of {parent}", "not a member", loosens=False
        )
    for child, parent in sorted(expected & found.keys()):
        admin, inherit = found[child, parent]
        if admin:
            yield Difference("memberships", f"role {child} in {parent}", "no admin option", "admin option")
        if inherit:
            yield Difference("memberships", f"role {child} in {parent}", "INHERIT FALSE", "INHERIT TRUE")
    yield from _paths(cursor, names, direct=found.keys())


def _paths(
    cursor: CursorWrapper, names: list[str], direct: Collection[tuple[str, str]]
) -> Iterator[Difference]:
    """Through other roles: to the owner, or to a predefined role (they read and write beyond policies)."""
    cursor.execute("SELECT session_user::text")
    logins = {*names, cursor.fetchone()[0]} - {OWNER}
    cursor.execute(
        """
        WITH RECURSIVE reach (member, role) AS (
          SELECT m.member, m.roleid FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
          WHERE r.rolname = ANY (%s)
          UNION SELECT reach.member, m.roleid FROM reach JOIN pg_auth_members m ON m.member = reach.role
            JOIN pg_roles over ON over.oid = reach.role AND over.rolname NOT LIKE 'pg\\_%%')
        SELECT DISTINCT child.rolname, target.rolname FROM reach
        JOIN pg_roles child ON child.oid = reach.member JOIN pg_roles target ON target.oid = reach.role
        WHERE target.rolname = %s OR target.rolname LIKE 'pg\\_%%'
        """,
        [list(logins), OWNER],
    )
    for child, target in sorted(set(cursor.fetchall()) - set(direct)):
        yield Difference("memberships", f"role {child}", f"no path to {target}", "a path")
