"""What an empty installation needs before a person can use it; nothing when it has been done."""

import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import get_commands
from django.core.management.base import BaseCommand

from memory_platform.embedded.private_files import write_private
from memory_platform.environment import environment
from memory_platform.run.announce import ADMIN_NAME, ADMIN_PASSWORD_FILE

PASSWORD_BYTES = 15


class Command(BaseCommand):
    help = (
        "Creates the staff user, the demo workspace and its API token once, and keeps their secrets in var/."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="write the demo memory as well")

    def handle(self, *args: Any, **options: Any) -> None:
        var = environment().memory_var
        create_superuser(var / ADMIN_PASSWORD_FILE)
        if options["demo"] and "demo" in get_commands():
            from django.core.management import call_command

            call_command("demo")


def create_superuser(password_file: Path) -> bool:
    """Create `admin` with a random password unless a superuser exists. Returns whether it did.

    The password is written before the user is, so that a crash between the two leaves one that works.
    """
    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return False
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    write_private(password_file, password + "\n")
    users.create_superuser(username=ADMIN_NAME, password=password)  # type: ignore[attr-defined]
    return True
