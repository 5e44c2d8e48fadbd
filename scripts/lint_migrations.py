"""Migrations against a database of their own: nothing missing, one head each, safe under a running release.

What is looked for: models that no migration knows, two heads of one app, and statements that break the
release before (dropped or renamed columns, NOT NULL without a database default, …).
"""

import os
import sys
from contextlib import ExitStack

from memory_platform.embedded import EmbeddedPostgres, temporary_postgres

DATABASE = "memory"
# Nothing before the first release can be broken by these. After it, add nothing here: write the migration again.
BEFORE_THE_FIRST_RELEASE = [
    "0003_what_jwts_may_do",
    "0007_summaries_of_evaluations",
    "0008_evaluations_of_imported_receipts",
]


def main() -> int:
    with ExitStack() as stack:
        server = stack.enter_context(temporary_postgres())
        server.ensure_database(DATABASE)
        _name_logins(server)
        return _check()


def _name_logins(server: EmbeddedPostgres) -> None:
    """Django reads its settings once, so they are given before it is imported."""
    os.environ["DATABASE_URL"] = server.url("app", DATABASE)
    os.environ["DATABASE_OWNER_URL"] = server.url("owner", DATABASE)
    os.environ["DATABASE_ADMIN_URL"] = server.url("admin", DATABASE)
    os.environ["MONITOR_DATABASE_URL"] = server.url("probe", DATABASE)
    os.environ["MEMORY_DATABASE_LOGIN"] = "owner"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_platform.settings")


def _check() -> int:
    import django
    from django.apps import apps
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader
    from django_migration_linter import MigrationLinter

    django.setup()
    call_command("provision_roles", apply=True)
    ours = sorted(config.label for config in apps.get_app_configs() if config.name.startswith("apps."))
    faults = []
    try:
        call_command("makemigrations", *ours, check=True, dry_run=True)
    except SystemExit:
        faults.append("models that no migration knows")
    loader = MigrationLoader(connection, ignore_no_migrations=True)
    faults += [f"two heads: {label}" for label in loader.detect_conflicts()]
    linter = MigrationLinter(
        include_apps=ours,
        no_cache=True,
        ignore_initial_migrations=True,
        ignore_name=BEFORE_THE_FIRST_RELEASE,
        quiet=("ok", "ignore", "warning"),
    )
    linter.lint_all_migrations()
    if linter.has_errors:
        faults.append("statements that break the release before")
    for fault in faults:
        print(f"Migrations: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
