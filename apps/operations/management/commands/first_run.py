"""What an empty installation needs before a person can use it; nothing when it has been done."""

import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand

from apps.accounts.models import Principal
from apps.accounts.services import create_token, create_workspace, enter_principal, workspace_id
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import staff_session
from apps.core.problems import NotFound
from memory_platform.embedded.private_files import write_private
from memory_platform.environment import environment
from memory_platform.run.announce import ADMIN_NAME, ADMIN_PASSWORD_FILE, TOKEN_FILE

PASSWORD_BYTES = 15
SLUG, NAME = "demo", "Demo"
SUBJECT = "token:demo"
SCOPES = ["search", "feedback", "learning", "memory", "sources", "curation", "export", "monitor", "evidence"]


class Command(BaseCommand):
    help = "Creates the staff user, a workspace and its API token once, and keeps their secrets in var/."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="write the demo memory as well")

    def handle(self, *args: Any, **options: Any) -> None:
        var = environment().memory_var
        admin = create_superuser(var / ADMIN_PASSWORD_FILE)
        token_file = var / TOKEN_FILE
        if admin is None or token_file.exists():
            return
        principal = create_first_workspace(admin)
        if options["demo"] and "demo" in get_commands():
            call_command("demo")
        # Written last: as long as it is absent, the next start does all of this again.
        write_private(token_file, new_token(admin, principal) + "\n")


def create_superuser(password_file: Path) -> User | None:
    """The user `admin`, made with a random password unless there is a superuser.

    Returns None where the superusers are not of this command's making: then the installation is in use. The
    password is written first, so that a crash in between leaves no user whose password nobody knows.
    """
    if User.objects.filter(is_superuser=True).exists():
        return User.objects.filter(username=ADMIN_NAME).first() if password_file.exists() else None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    write_private(password_file, password + "\n")
    return User.objects.create_superuser(ADMIN_NAME, password=password)


def create_first_workspace(admin: User) -> PrincipalIdentity:
    """A principal of a workspace whose five groups `admin` is in."""
    try:
        workspace = workspace_id(SLUG)
    except NotFound:
        with staff_session(admin):
            workspace = create_workspace(slug=SLUG, name=NAME).pk
            admin.groups.add(*Group.objects.filter(name__startswith=f"{SLUG}: "))
    return enter_principal(workspace=workspace, subject=SUBJECT)


def new_token(admin: User, principal: PrincipalIdentity) -> str:
    with staff_session(admin):
        owner = Principal.objects.defer("hash_key").get(pk=principal.principal_id)
        return create_token(name="first run", scopes=SCOPES, principal=owner).secret
