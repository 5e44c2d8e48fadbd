"""How long evidence is kept: what is registered with the operations of expiry."""

from datetime import timedelta
from uuid import UUID

from apps.feedback.retention import EVIDENCE
from apps.learning.models import Evaluation, Holdout
from apps.operations import holds
from apps.operations.expiry import Expiry, register

LEARNING = "learning"
"""Evaluations, holdouts and query sets."""


def register_evidence() -> None:
    register(Expiry(LEARNING, interval=timedelta(days=1), batch=200, group=EVIDENCE))
    holds.register_kind(
        holds.HoldKind(Evaluation._meta.label_lower, "an evaluation", _workspace_of_evaluation)
    )
    holds.register_kind(holds.HoldKind(Holdout._meta.label_lower, "a holdout", _workspace_of_holdout))


def _workspace_of_evaluation(evaluation_id: UUID) -> UUID | None:
    return Evaluation.objects.filter(pk=evaluation_id).values_list("workspace_id", flat=True).first()


def _workspace_of_holdout(holdout_id: UUID) -> UUID | None:
    return Holdout.objects.filter(pk=holdout_id).values_list("workspace_id", flat=True).first()
