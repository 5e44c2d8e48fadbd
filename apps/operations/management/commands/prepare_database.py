"""Roles, then schema: what a start needs of the database, in one process because a start should be quick."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from apps.core.db.provision import without_marks
from memory_platform.embedded import connection_urls
from memory_platform.embedded.postgres import DATABASE
from memory_platform.environment import environment


class Command(BaseCommand):
    help = (
        "Runs provision_roles --apply and migrate, each where its login is known "
        "(DATABASE_ADMIN_URL, DATABASE_OWNER_URL, or the embedded default)."
    )
    requires_system_checks = []  # the checks compare the database with what this command makes of it

    def handle(self, *args: Any, **options: Any) -> None:
        env = environment()
        urls = connection_urls(env)
        if urls.admin:
            # An embedded server is this installation's alone: what it made before there were marks, it takes.
            if env.database_url is None and without_marks(urls.admin):
                call_command("provision_roles", adopt=True, confirm=DATABASE, stdout=self.stdout)
            call_command("provision_roles", apply=True, stdout=self.stdout)
        if env.database_url is None or env.database_owner_url is not None:
            call_command("migrate", interactive=False, verbosity=1, stdout=self.stdout)
