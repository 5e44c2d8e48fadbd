"""Writes the demo memory, so that no page of a new installation is empty."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts import subjects
from apps.accounts.services import enter_principal, workspace_id
from apps.core.problems import Problem
from apps.search.demo import load_demo
from apps.search.demo.load import DemoIncomplete


class Command(BaseCommand):
    help = (
        "Imports a small invented memory, searches it, records uses and outcomes, all through the services of "
        "the API. Safe to repeat: what is there already is kept."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", default="demo", metavar="W", help="Slug of the workspace.")
        parser.add_argument(
            "--principal", default="demo", metavar="P", help="Subject; a bare name is token:NAME."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = workspace_id(options["workspace"])
            principal = enter_principal(workspace=workspace, subject=subjects.parse(options["principal"]))
            loaded = load_demo(principal=principal)
        except Problem as problem:
            raise CommandError(problem.detail or problem.shown_code) from None
        except DemoIncomplete as incomplete:
            raise CommandError(f"The demo memory is not whole: {incomplete}") from None
        self.stdout.write(
            f"{loaded.imported} passages, {loaded.vectors} vectors and {loaded.searches} searches are new"
        )
        if loaded.embedder_error:
            self.stderr.write(f"No vectors ({loaded.embedder_error}): searches go by words alone")
