"""Makes roles and database ready. Run with the administrator's login, which no process keeps.

The law: a role or object that is named like ours and has no mark of our making is never taken; the run stops and names
it. `adopt` is the operator's word that it is ours. New roles cannot sign in; verified, they may be let in one by one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from django.db import connection as django_connection
from django.db import transaction
from psycopg import pq, sql

from apps.core.db import marks
from apps.core.db.roles import LOGINS, PROBE, ROLES, SESSION_ROLES
from apps.core.db.rowpolicy import APP, OWNER
from apps.core.db.verify import roles as verified
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.foreign import made_by_others
from apps.core.db.verify.manifest import manifest

ATTRIBUTES = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"
ADOPT = "If they are yours (an upgrade, a restore), look at each and run provision_roles --adopt."
INHERITANCE_OF_EACH = 160000
"""Before 16 inheritance is the member's attribute alone; since then each membership has its own."""


class Refused(RuntimeError):
    """Provisioning stops and has changed nothing. The message names every reason."""

    def __init__(self, why: str, differences: list[Difference]) -> None:
        super().__init__(why + "".join(f"\n  {difference}" for difference in differences))


def provision(connection: "psycopg.Connection[Any]", database: str, *, adopt: bool = False) -> list[str]:
    """Make or mend roles and rights in one transaction, verify, and mark them; the roles that are new.

    The administrator's connection to `database`. Raises Refused.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if connection.info.server_version < verified.LEAST_VERSION:
            raise Refused(f"PostgreSQL {connection.info.server_version} is too old; 15 is the oldest.", [])
        if adopt:
            marks.comment(cursor, strangers(cursor), marks.role_checksums() | manifest().checksums())
        if others := [found for found in made_by_others(cursor) if found.loosens]:
            raise Refused(f"There already, and not made by this bootstrap. {ADOPT}", others)
        cursor.execute("SELECT rolname FROM pg_roles")
        before = {name for (name,) in cursor.fetchall()}
        for statement in role_statements(connection.info.server_version):
            cursor.execute(statement)
        for statement in database_statements(database):
            cursor.execute(statement)
        new = [role.name for role in ROLES if role.name not in before]
        if unsafe := list(_unsafe(cursor, new)):
            raise Refused("The roles are not as declared:", unsafe)
    return new


def _unsafe(cursor: Any, new: list[str]) -> Iterator[Difference]:
    """Of roles alone: tables have their rights from migrations. Nobody signs in as a role made a moment ago."""
    yield from verified.role_attributes(cursor, logins=frozenset(LOGINS) - frozenset(new))
    yield from (found for found in verified.memberships(cursor) if found.loosens)


def strangers(cursor: Any) -> list[marks.Existing]:
    """What is named like ours and carries no mark of ours."""
    names = {**manifest().names(), "ROLE": [role.name for role in ROLES]}
    return [one for one in marks.existing(cursor, names) if not one.ours]


def without_marks(admin_url: str) -> bool:
    """Whether the cluster has roles of our names and no mark on any of them: it is older than marks."""
    with psycopg.connect(admin_url) as connection, connection.cursor() as cursor:
        found = marks.existing(cursor, {"ROLE": [role.name for role in ROLES]})
    return bool(found) and not any(one.mark for one in found)


def renew_marks() -> None:
    """Let the marks on what is ours follow the declarations. Run by the owner after migrating; takes nothing new."""
    checksums = manifest().checksums()
    with transaction.atomic(), django_connection.cursor() as cursor:
        found = marks.existing(cursor, manifest().names())
        marks.comment(cursor, [one for one in found if one.ours and not one.current(checksums)], checksums)


def let_in(connection: "psycopg.Connection[Any]", passwords: Mapping[str, str]) -> None:
    """Give these logins their passwords and LOGIN. The server, and so its log, sees no password."""
    with connection.transaction():
        for role in ROLES:
            if role.login and role.name in passwords:
                connection.execute(
                    sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(
                        sql.Identifier(role.name),
                        sql.Literal(_verifier(connection, role.name, passwords[role.name])),
                    )
                )


def _verifier(connection: "psycopg.Connection[Any]", login: str, password: str) -> str:
    """What the server stores of a password, computed here."""
    method = connection.execute("SHOW password_encryption").fetchone()
    encrypted: pq.abc.PGconn = connection.pgconn
    algorithm = str(method[0]).encode() if method else None
    return encrypted.encrypt_password(password.encode(), login.encode(), algorithm).decode()


def role_statements(server_version: int) -> Iterator[sql.Composed | sql.SQL]:
    """Create or mend the roles and their memberships. Roles are made NOLOGIN, for a human to let in later."""
    for role in ROLES:
        name = sql.Identifier(role.name)
        yield sql.SQL(
            "DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {text}) "
            "THEN CREATE ROLE {name} NOLOGIN; "
            "ELSIF split_part(coalesce(shobj_description(to_regrole({text}), 'pg_authid'), ''), ' ', 2) "
            "<> to_regrole({text})::oid::text "
            "THEN RAISE EXCEPTION 'role % was not made by this bootstrap', {text}; END IF; END $do$"
        ).format(text=sql.Literal(role.name), name=name)
        yield sql.SQL("ALTER ROLE {} " + ATTRIBUTES).format(name)
        yield sql.SQL(marks.mark_sql("ROLE", role.name, marks.role_checksum(role)))
    for role in ROLES:
        for parent in role.member_of:
            apart = server_version >= INHERITANCE_OF_EACH
            options = " WITH INHERIT FALSE, SET TRUE, ADMIN FALSE" if apart else ""
            yield sql.SQL("GRANT {} TO {}" + options).format(
                sql.Identifier(parent), sql.Identifier(role.name)
            )


def database_statements(database: str) -> Iterator[sql.Composed | sql.SQL]:
    """Rights on the database and its schema; run inside that database."""
    name = sql.Identifier(database)
    everyone = sql.SQL(", ").join(sql.Identifier(role) for role in (APP, PROBE, *SESSION_ROLES))
    yield sql.SQL("ALTER DATABASE {} OWNER TO {}").format(name, sql.Identifier(OWNER))
    yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name)
    yield sql.SQL("GRANT CONNECT ON DATABASE {} TO {}, {}").format(
        name, sql.Identifier(APP), sql.Identifier(PROBE)
    )
    yield sql.SQL("ALTER SCHEMA public OWNER TO {}").format(sql.Identifier(OWNER))
    yield sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    yield sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(everyone)
    yield sql.SQL("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    yield sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC").format(
        sql.Identifier(OWNER)
    )
