"""Lets a staff user who lost the second factor set one up anew."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from apps.accounts import second_factor
from apps.core import audit
from apps.core.db.sessions import staff_session


class Command(BaseCommand):
    help = "Forget the second factors of a staff user, who sets one up at the next sign-in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--as", dest="actor", required=True, metavar="SUPERUSER", help="Whose act it is.")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"], is_staff=True).first()
        actor = User.objects.filter(username=options["actor"], is_superuser=True, is_active=True).first()
        if user is None or actor is None:
            raise CommandError("There is no such staff user, or no such superuser.")
        with staff_session(actor):
            count = second_factor.reset(user)
            audit.record("accounts.reset_second_factor", "auth.user", user.pk, reason=options["reason"])
        self.stdout.write(f"{count} second factors forgotten.")
