"""Makes an API token from the command line."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from apps.accounts import selectors, services, subjects
from apps.accounts.caller import SCOPES
from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.problems import Problem


class Command(BaseCommand):
    help = "Print a new API token of a principal, once. The principal is made when absent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="W", help="Slug of the workspace.")
        parser.add_argument(
            "--principal",
            required=True,
            metavar="P",
            help="A full subject (oidc:…#sub), `shared`, or a bare name, which is the subject token:P.",
        )
        parser.add_argument("--scopes", required=True, nargs="+", choices=SCOPES, metavar="SCOPE")
        parser.add_argument("--name", default="command line", help="What the token is called in lists.")
        parser.add_argument("--days", type=int, help="Days until it expires; never when left out.")
        parser.add_argument(
            "--speaks-for-user",
            action="store_true",
            help="Claims written with it carry the user's authority.",
        )
        parser.add_argument(
            "--as", dest="user", metavar="USER", help="Whose act it is; the first superuser when left out."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(self._create(options))
        except Problem as problem:
            raise CommandError(problem.detail or problem.shown_code) from None

    def _create(self, options: dict[str, Any]) -> str:
        workspace = services.workspace_id(options["workspace"])
        identity = services.enter_principal(workspace=workspace, subject=subjects.parse(options["principal"]))
        days = options["days"]
        with staff_session(self._user(options["user"])):
            return services.create_token(
                name=options["name"],
                scopes=options["scopes"],
                principal=selectors.get_principal(identity.principal_id),
                expires_at=None if days is None else clock.now() + timedelta(days=days),
                speaks_for_user=options["speaks_for_user"],
                reason="made on the command line",
            ).secret

    @staticmethod
    def _user(name: str | None) -> User:
        staff = User.objects.filter(is_active=True, is_staff=True)
        found = (
            staff.filter(username=name).first()
            if name
            else staff.filter(is_superuser=True).order_by("pk").first()
        )
        if found is None:
            raise CommandError("There is no such staff user. Make one: manage.py createsuperuser")
        return found
