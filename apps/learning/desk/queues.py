"""What there is to label. In a staff session; ids only, no text."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.accounts.models import Principal
from apps.feedback.models import Judgment
from apps.feedback.selectors.labels import folded_labels_of
from apps.learning.identity import query_group_id
from apps.learning.models import Evaluation
from apps.learning.split import is_validation
from apps.retrieval.models import Receipt

RECENT = 30
"""Receipts of a sitting over what was searched last."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Receipts of one principal to be labelled, the most useful first.

    name: which queue, as the address says it: `evaluation=<id>`, `receipt=<id>` or `principal=<id>`.
    lacking: query groups that an evaluation lacks to fit and to judge; None for other queues.
    """

    name: str
    title: str
    principal_id: UUID
    workspace_id: UUID
    receipts: tuple[UUID, ...]
    lacking: tuple[int, int] | None = None

    @property
    def key(self) -> str:
        return self.name.partition("=")[0]

    @property
    def reference(self) -> str:
        return self.name.partition("=")[2]


def queue_of(asked: Any) -> Queue | None:
    """The queue that an address names, None where it names none or one that the session does not see."""
    for key, find in (("evaluation", of_evaluation), ("receipt", of_receipt), ("principal", of_principal)):
        with suppress(ValueError):
            if given := asked.get(key):
                return find(UUID(given))
    return None


def of_evaluation(evaluation_id: UUID) -> Queue | None:
    """What an evaluation lacks, in its own order; then searches of its scope set that nobody has judged."""
    found = Evaluation.objects.filter(pk=evaluation_id).select_related("result").defer("query_groups").first()
    if found is None or not hasattr(found, "result"):
        return None
    plan = json.loads(found.result.summary)["label_plan"]
    asked: list[UUID] = []
    for one in plan["requests"]:
        with suppress(ValueError):  # an imported request has another kind of name
            asked.append(UUID(one["request_id"]))
    return Queue(
        f"evaluation={evaluation_id}",
        f"needed by evaluation {str(evaluation_id)[-7:]}",
        found.principal_id,
        found.workspace_id,
        tuple(dict.fromkeys((*_there(asked), *_unjudged(found.principal_id, **_scope_set(found.scopes))))),
        (plan["training_queries_lacking"], plan["validation_queries_lacking"]),
    )


def lacking_now(queue: Queue, receipt_ids: Sequence[UUID]) -> tuple[int, int]:
    """Query groups that the evaluation of a queue lacks to fit and to judge, when the labels now on its receipts count.

    A group is there once a search of it has a relevant and a not relevant result on which all annotators agree.
    """
    evaluation = Evaluation.objects.only("config", "surface", "principal_id").get(pk=queue.reference)
    labels = folded_labels_of(principal_id=queue.principal_id, receipt_ids=receipt_ids)
    said: dict[tuple[UUID, UUID], set[bool]] = {}
    for receipt, node, surface, relevant in zip(
        labels.receipt_ids, labels.node_ids, labels.surfaces, labels.values.tolist(), strict=True
    ):
        if surface == evaluation.surface:
            said.setdefault((receipt, node), set()).add(relevant)
    agreed: dict[UUID, set[bool]] = {}
    for (receipt, _), words in said.items():
        if len(words) == 1:
            agreed.setdefault(receipt, set()).update(words)
    whole = [receipt for receipt, words in agreed.items() if len(words) == 2]
    identities = Receipt.objects.filter(pk__in=whole).values_list("query_identity", flat=True)
    config = evaluation.config
    groups = {query_group_id(identity) for identity in identities}
    judging = sum(is_validation(config["seed"], group, config["validation_fraction"]) for group in groups)
    to_fit, to_judge = queue.lacking or (0, 0)
    return max(0, to_fit - (len(groups) - judging)), max(0, to_judge - judging)


def of_receipt(receipt_id: UUID) -> Queue | None:
    """One receipt."""
    found = Receipt.objects.only("principal_id", "workspace_id").filter(pk=receipt_id).first()
    if found is None:
        return None
    return Queue(
        f"receipt={receipt_id}",
        f"receipt {str(receipt_id)[-7:]}",
        found.principal_id,
        found.workspace_id,
        (receipt_id,),
    )


def of_principal(principal_id: UUID) -> Queue | None:
    """What a principal searched last and nobody has judged."""
    found = Principal.objects.defer("hash_key").filter(pk=principal_id).first()
    if found is None:
        return None
    return Queue(
        f"principal={principal_id}",
        f"last searches of {found.display_name or found.subject}",
        principal_id,
        found.workspace_id,
        _unjudged(principal_id),
    )


def _unjudged(principal_id: UUID, **more: Any) -> tuple[UUID, ...]:
    """Receipts of searches that nobody has judged, the newest first."""
    judged = Judgment.objects.filter(principal_id=principal_id, receipt_id=OuterRef("pk"))
    rows = Receipt.objects.filter(
        ~Exists(judged), principal_id=principal_id, trace_id__isnull=False, node_ids__len__gt=0, **more
    )
    return tuple(rows.order_by("-recorded_at", "-id").values_list("pk", flat=True)[:RECENT])


def _scope_set(scopes: Sequence[str] | None) -> dict[str, Any]:
    return {"scopes__isnull": True} if scopes is None else {"scopes": list(scopes)}


def _there(asked: Sequence[UUID]) -> tuple[UUID, ...]:
    known = set(Receipt.objects.filter(pk__in=asked).values_list("pk", flat=True))
    return tuple(one for one in asked if one in known)
