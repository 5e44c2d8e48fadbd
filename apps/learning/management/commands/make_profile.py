"""Make a ranking profile of evidence that is too large for a request."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime

from apps.accounts import subjects
from apps.accounts.services import workspace_id
from apps.core.db.sessions import principal_session
from apps.core.problems import InvalidRequest, NotFound, Problem
from apps.learning.services.profiles import create_profile
from apps.retrieval import all_receipts


def aware_time(text: str) -> datetime:
    """A time with its zone. Raises ValueError."""
    found = parse_datetime(text)
    if found is None or found.tzinfo is None:
        raise ValueError(text)
    return found


class Command(BaseCommand):
    help = (
        "Computes an evaluation and the holdout that confirmed it again, from stored receipts and labels however many, "
        "and makes the profile that they carry; prints its id. Nothing is activated. Exit 1: they carry none, and "
        "the message says why. Exit 2: no such workspace, principal, evaluation, holdout or profile, or a term that "
        "is over."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("evaluation", type=UUID)
        parser.add_argument("holdout", type=UUID)
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument("--principal", required=True, help="Subject; a bare name is token:NAME.")
        parser.add_argument("--baseline", type=UUID, help="The profile that the holdout's baseline was.")
        parser.add_argument("--until", type=aware_time, help="When its term ends; an ISO time with its zone.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with principal_session(self._owner(options["workspace"], options["principal"])):
                made = create_profile(
                    evaluation_id=options["evaluation"],
                    holdout_id=options["holdout"],
                    baseline_profile_id=options["baseline"],
                    effective_until=options["until"],
                    however_large=True,
                )
        except (NotFound, InvalidRequest) as refused:
            raise CommandError(
                f"{refused.shown_code}: {refused.detail or refused.title}", returncode=2
            ) from None
        except Problem as refused:
            reason = refused.more.get("reason", refused.detail or refused.title)
            raise CommandError(f"{refused.shown_code}: {reason}", returncode=1) from None
        self.stdout.write(str(made.pk))

    def _owner(self, workspace: str, principal: str) -> UUID:
        """A principal with receipts, without which there is no evidence. Raises NotFound, InvalidRequest."""
        space, subject = workspace_id(workspace), subjects.parse(principal)
        found = next(all_receipts.owners(workspace=space, subject=subject), None)
        if found is None:
            raise NotFound("No such principal has receipts", code="unknown_principal")
        return found
