"""Empties a test database after a transactional test, keeping what migrations wrote."""

import os

import psycopg
from psycopg import sql

KEEP = {"django_migrations", "django_content_type", "auth_permission"}
# Tables whose rows without a workspace were written by migrations.
DEFAULTS = ("core_storedpolicy",)
# Tables that migrations fill whole.
FILLED = ("graph_embedder",)


def truncate_all() -> None:
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"], autocommit=True) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = {name for (name,) in rows} - KEEP - set(DEFAULTS) - set(FILLED)
        for table in DEFAULTS:
            if (table,) in rows:
                connection.execute(
                    sql.SQL("DELETE FROM {} WHERE workspace_id IS NOT NULL").format(sql.Identifier(table))
                )
        tables = sql.SQL(", ").join(sql.Identifier(name) for name in sorted(names))
        connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(tables))
