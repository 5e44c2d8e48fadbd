"""Makes the table rights of the roles equal to the declarations, after every migrate."""

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import SESSION_ROLES, TableRights, expected_rights
from apps.core.db.rowpolicy import APP, STAFF

GRANTEES = (APP, *SESSION_ROLES)


def sync_grants() -> None:
    """Revoke what is not declared, grant what is. Run by the owner; idempotent."""
    # At once: a running release must never see the moment between REVOKE and GRANT.
    with transaction.atomic(), connection.cursor() as cursor:
        for rights in expected_rights():
            for statement in grant_statements(rights):
                cursor.execute(statement)
        _views(cursor)


def grant_statements(table: TableRights) -> list[str]:
    statements = [f'REVOKE ALL ON "{table.table}" FROM PUBLIC, {", ".join(GRANTEES)}']
    for role, privileges in table.rights.items():
        plain = set(privileges)
        if role == STAFF and table.closed and "SELECT" in plain:
            plain.discard("SELECT")
            columns = ", ".join(f'"{column}"' for column in table.staff_columns())
            statements.append(f'GRANT SELECT ({columns}) ON "{table.table}" TO {role}')
        if plain:
            statements.append(f'GRANT {", ".join(sorted(plain))} ON "{table.table}" TO {role}')
    return statements


def _views(cursor: CursorWrapper) -> None:
    """Views are made with their grants by their migration; PUBLIC never has any."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace "
        "AND pg_get_userbyid(relowner) = current_user"
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f'REVOKE ALL ON "{name}" FROM PUBLIC')
