"""SQL that makes roles and database ready. Run with the administrator's login, which no process keeps."""

from collections.abc import Iterator

from psycopg import sql

from apps.core.db.roles import PROBE, ROLES, SESSION_ROLES
from apps.core.db.rowpolicy import APP, OWNER

ATTRIBUTES = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"


def role_statements(passwords: dict[str, str], server_version: int) -> Iterator[sql.Composed | sql.SQL]:
    """Create or mend the roles and their memberships.

    passwords: login → password; a login without one is made NOLOGIN, for a human to enable later.
    """
    for role in ROLES:
        name = sql.Identifier(role.name)
        yield sql.SQL(
            "DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {text}) "
            "THEN CREATE ROLE {name} NOLOGIN; END IF; END $do$"
        ).format(text=sql.Literal(role.name), name=name)
        yield sql.SQL("ALTER ROLE {} " + ATTRIBUTES).format(name)
        if role.login and role.name in passwords:
            yield sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(passwords[role.name]))
    for role in ROLES:
        for parent in role.member_of:
            # Before 16 inheritance is the member's attribute alone; since then each membership has its own.
            options = " WITH INHERIT FALSE, SET TRUE, ADMIN FALSE" if server_version >= 160000 else ""
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
