"""Searches that nobody has judged and that an evaluation could use: what its report, made of labels, cannot name."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.feedback.models import Judgment
from apps.learning.identity import query_group_id
from apps.learning.models import Evaluation
from apps.learning.schemas import RequestToLabel
from apps.learning.split import is_validation
from apps.retrieval.models import Receipt
from apps.retrieval.policy import SCORER_CONTRACT

LOOKED_AT = 500
"""Newest receipts of the scope set; older searches are answered by another memory."""


def unjudged_requests(evaluation: Evaluation, *, used_groups: Collection[str]) -> list[RequestToLabel]:
    """The newest unjudged search of each query whose group has no pairs yet, newest first; in a staff session."""
    found: dict[str, RequestToLabel] = {}
    config, newest = evaluation.config, _newest(evaluation)
    judged = {identity for _, identity, is_judged in newest if is_judged}
    for receipt_id, identity, _ in newest:
        group = query_group_id(identity)
        if identity in judged or group in used_groups or group in found:
            continue
        validates = is_validation(config["seed"], group, config["validation_fraction"])
        found[group] = RequestToLabel(
            request_id=str(receipt_id),
            group_id=group,
            split="validation" if validates else "train",
            reason="unjudged",
        )
    return list(found.values())


def _newest(evaluation: Evaluation) -> list[tuple[UUID, str, bool]]:
    """Id, query identity and whether it is judged, of receipts that the evaluation could fit, newest first."""
    scopes: dict[str, Any] = {"scopes": evaluation.scopes}
    if evaluation.scopes is None:
        scopes = {"scopes__isnull": True}
    rows = Receipt.objects.filter(
        principal_id=evaluation.principal_id,
        trace_id__isnull=False,
        formula="weighted",
        contract=SCORER_CONTRACT,
        mode__in=["context"] if evaluation.surface == "context" else ["search", "context"],
        **scopes,
    )
    judged = Judgment.objects.filter(principal_id=OuterRef("principal_id"), receipt_id=OuterRef("pk"))
    found = rows.annotate(is_judged=Exists(judged)).order_by("-recorded_at", "-id")
    return list(found.values_list("id", "query_identity", "is_judged")[:LOOKED_AT])
