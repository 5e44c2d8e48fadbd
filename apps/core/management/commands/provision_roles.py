"""Makes the database roles, their memberships and the rights on the database itself."""

from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from apps.core.db.provision import (
    Refused,
    database_statements,
    let_in,
    provision,
    role_statements,
    strangers,
)
from memory_platform.embedded import connection_urls
from memory_platform.environment import environment

NEWEST = 160000


class Command(BaseCommand):
    help = (
        "Print (--print) or run (--apply) the SQL that makes roles and database ready; needs DATABASE_ADMIN_URL. It "
        "stops at a role or object of our names that it did not make; --adopt lists those, asks, and takes them."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument(
            "--print", action="store_true", dest="show", help="Write the SQL, without passwords."
        )
        action.add_argument("--apply", action="store_true", help="Run it.")
        action.add_argument(
            "--adopt", action="store_true", help="Take what is there under our names for ours, then run it."
        )
        parser.add_argument("--confirm", metavar="DATABASE", help="Of --adopt: its answer, without asking.")

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
        self._make_database(urls.admin, database)
        parts = {**conninfo_to_dict(urls.admin), "dbname": database}
        with psycopg.connect(**parts, autocommit=True) as connection:  # type: ignore[arg-type]
            if options["adopt"]:
                self._confirm(connection, database, options["confirm"])
            try:
                provision(connection, database, adopt=bool(options["adopt"]))
            except Refused as refused:
                raise CommandError(str(refused)) from None
            let_in(connection, logins)
        self.stdout.write(f"Roles and database {database} are ready.")

    def _print(self, database: str) -> None:
        statements = [*role_statements(NEWEST), *database_statements(database)]
        for statement in statements:
            self.stdout.write(statement.as_string(None) + ";")
        self.stdout.write("-- then, for each login: \\password … in psql, and ALTER ROLE … LOGIN")

    def _make_database(self, admin: str, database: str) -> None:
        with psycopg.connect(admin, autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
            if found is None:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                        sql.Identifier(database)
                    )
                )

    def _confirm(self, connection: "psycopg.Connection[Any]", database: str, answer: str | None) -> None:
        """Say what would be taken, and have the database's name typed."""
        with connection.cursor() as cursor:
            found = strangers(cursor)
        for one in found:
            self.stdout.write(str(one))
        self.stdout.write(f"{len(found)} of our names without our mark in {database} and its cluster.")
        if answer is None:
            answer = input("Type the name of the database to take them for ours: ")
        if answer != database:
            raise CommandError("Nothing was taken.")
