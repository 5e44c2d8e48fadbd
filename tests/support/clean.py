"""Empties a test database after a transactional test, keeping what migrations wrote."""

import os

import psycopg
from psycopg import sql

KEEP = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "graph_embedder",
    "operations_erasabletable",
    "observations_maintenance_state",
}
# Tables whose rows without a workspace were written by migrations.
DEFAULTS = {"core_storedpolicy", "core_stored_policy"}


def truncate_all() -> None:
    """Delete from the tables that hold rows; TRUNCATE would make new files for every table and index."""
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        names = sorted({name for (name,) in rows} - KEEP)
        filled = sql.SQL(" UNION ALL ").join(
            sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(sql.Literal(name), sql.Identifier(name))
            for name in names
        )
        found = connection.execute(filled).fetchall()
        # Neither foreign keys nor triggers: everything goes.
        connection.execute("SET LOCAL session_replication_role = replica")
        for (name,) in found:
            kept = sql.SQL(" WHERE workspace_id IS NOT NULL") if name in DEFAULTS else sql.SQL("")
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) + kept)
