"""What the evaluation commands share: bad input is exit code 2, and the decision is the exit code."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from pydantic import BaseModel

from apps.learning.exceptions import LearningInputError
from apps.retrieval.prme.exceptions import PrmeError


class EvaluationCommand(BaseCommand):
    """Evaluates files and touches no database. Exit 0: an improvement; 1: another decision; 2: bad input."""

    # Checks of the database's roles and policies are not this command's concern: it never connects.
    requires_system_checks = ()
    improvement = ""
    summary: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the whole report as JSON")

    def report(self, options: dict[str, Any]) -> BaseModel:
        """Compute the report. May raise LearningInputError, PrmeError or OSError."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = self.report(options)
        except (LearningInputError, PrmeError) as error:
            raise CommandError(f"{error.code}: {error}", returncode=2) from None
        except OSError as error:
            name = Path(error.filename).name if error.filename else "an input file"
            raise CommandError(f"bad_file: {name} cannot be read", returncode=2) from None
        if options["json"]:
            self.stdout.write(report.model_dump_json())
        else:
            for name in self.summary:
                self.stdout.write(f"{name}: {_shown(getattr(report, name))}")
        decision = getattr(report, "decision", "")
        if decision != self.improvement:
            sys.exit(1)


def _shown(value: Any) -> str:
    """A field on one line; long lists as their length, since `--json` has them whole."""
    if isinstance(value, BaseModel):
        return ", ".join(f"{name} {_shown(getattr(value, name))}" for name in type(value).model_fields)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(member)}" for name, member in value.items()) or "none"
    if isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
        return str(len(value))
    if isinstance(value, tuple):
        return " … ".join(map(str, value)) if value else "none"
    return "none" if value is None else str(value)
