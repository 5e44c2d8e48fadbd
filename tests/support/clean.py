"""Empties a test database after a transactional test, keeping what migrations wrote."""

import os

import psycopg
from psycopg import sql

KEEP = {"django_migrations", "django_content_type", "auth_permission"}
# Tables whose rows without a workspace were written by migrations.
DEFAULTS = ("core_storedpolicy",)
# Tables that migrations fill whole.
FILLED = ("graph_embedder", "operations_erasabletable")


def truncate_all() -> None:
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = {name for (name,) in rows} - KEEP - set(FILLED)
        kept = [(sql.Identifier(f"kept_{name}"), sql.Identifier(name)) for name in DEFAULTS if name in names]
        for copy, table in kept:
            connection.execute(
                sql.SQL(
                    "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT * FROM {} WHERE workspace_id IS NULL"
                ).format(copy, table)
            )
        tables = sql.SQL(", ").join(sql.Identifier(name) for name in sorted(names))
        connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(tables))
        # Without triggers: to them these rows would come from the past.
        connection.execute("SET LOCAL session_replication_role = replica")
        for copy, table in kept:
            connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM {}").format(table, copy))
