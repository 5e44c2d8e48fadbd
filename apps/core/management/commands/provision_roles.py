"""Makes the database roles, their memberships and the rights on the database itself."""

from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from apps.core.db.provision import database_statements, role_statements
from memory_platform.embedded import connection_urls
from memory_platform.environment import environment


class Command(BaseCommand):
    help = "Print (--print) or run (--apply) the SQL that makes roles and database ready; needs DATABASE_ADMIN_URL."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument(
            "--print", action="store_true", dest="show", help="Write the SQL, without passwords."
        )
        action.add_argument("--apply", action="store_true", help="Run it.")

    def handle(self, *args: Any, **options: Any) -> None:
        urls = connection_urls(environment())
        logins = {}
        database = "memory"
        for url in (urls.app, urls.owner, urls.probe):
            parts = conninfo_to_dict(url) if url else {}
            if parts.get("user") and parts.get("password"):
                logins[str(parts["user"])] = str(parts["password"])
            database = str(parts.get("dbname") or database)
        if options["show"]:
            self._print(database)
            return
        if not urls.admin:
            raise CommandError("DATABASE_ADMIN_URL is not set: a login that may create roles is needed.")
        self._apply(urls.admin, database, logins)

    def _print(self, database: str) -> None:
        statements = [*role_statements({}, 160000), *database_statements(database)]
        for statement in statements:
            self.stdout.write(statement.as_string(None) + ";")
        self.stdout.write("-- then, for each login: ALTER ROLE … LOGIN, and \\password … in psql")

    def _apply(self, admin: str, database: str, passwords: dict[str, str]) -> None:
        with psycopg.connect(admin, autocommit=True) as connection:
            with connection.transaction():
                for statement in role_statements(passwords, connection.info.server_version):
                    connection.execute(statement)
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if found is None:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                        sql.Identifier(database)
                    )
                )
        parts = {**conninfo_to_dict(admin), "dbname": database}
        with psycopg.connect(**parts, autocommit=False) as connection:  # type: ignore[arg-type]
            for statement in database_statements(database):
                connection.execute(statement)
        self.stdout.write(f"Roles and database {database} are ready.")
