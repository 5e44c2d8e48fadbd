"""What lies on the desk: the next passage that this person has not judged, with its question."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from apps.accounts.models import Principal
from apps.core.db.sessions import act_for, current_principal
from apps.feedback.models import Surface
from apps.feedback.selectors.labels import folded_labels_of
from apps.graph.models import Node
from apps.learning.desk.sitting import Sitting
from apps.learning.models import JudgedQuery
from apps.retrieval.models import Receipt
from apps.retrieval.receipts.document import content_digest
from apps.retrieval.receipts.replay import read
from apps.traces.models import Trace


@dataclass(frozen=True, slots=True)
class Place:
    """A passage to be judged: the receipt's, and where it stood there (from 1)."""

    receipt_id: UUID
    node_id: UUID
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sitting is: passages judged by this person, skipped, and in all."""

    judged: int
    skipped: int
    total: int

    @property
    def left(self) -> int:
        return self.total - self.judged - self.skipped


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as it is now. `changed`: not the words any more that were returned. `question` is None where it
    was never kept or is erased."""

    question: str | None
    title: str
    text: str
    kind: str
    version: str
    changed: bool

    @property
    def judgeable(self) -> bool:
        return self.question is not None and not self.changed


def look(sitting: Sitting, annotator: str) -> tuple[Place | None, Progress]:
    """The next place and how far the sitting is, in a staff session. Two statements, however long the queue."""
    asked = [UUID(one) for one in sitting.receipts]
    principal = UUID(sitting.principal_id)
    rows: QuerySet[Receipt] = Receipt.objects.filter(principal_id=principal, pk__in=asked)
    receipts = {row.pk: row for row in rows.only("pk", "node_ids", "scores")}
    judged = _judged(principal, list(receipts), annotator)
    skipped = set(sitting.skipped)
    following: Place | None = None
    num_judged = num_skipped = total = 0
    for receipt_id in asked:
        row = receipts.get(receipt_id)
        if row is None:
            continue
        nodes = [UUID(str(node)) for node in row.node_ids]
        for node in sitting.order(receipt_id, nodes):
            total += 1
            if (receipt_id, node) in judged:
                num_judged += 1
            elif f"{receipt_id}:{node}" in skipped:
                num_skipped += 1
            elif following is None:
                rank = nodes.index(node)
                following = Place(receipt_id, node, rank + 1, row.scores[rank])
    return following, Progress(num_judged, num_skipped, total)


def _judged(principal_id: UUID, receipts: Sequence[UUID], annotator: str) -> set[tuple[UUID, UUID]]:
    labels = folded_labels_of(principal_id=principal_id, receipt_ids=receipts)
    return {
        (receipt, node)
        for receipt, node, surface, who in zip(
            labels.receipt_ids, labels.node_ids, labels.surfaces, labels.annotators, strict=True
        )
        if surface == Surface.RESULTS and who == annotator
    }


def passage_at(place: Place, principal_id: UUID) -> Passage:
    """The question and the present words, read as the principal by whoever holds `reveal_text`; the sitting was
    audited when it was opened. Raises GrantMissing, CorruptReceipt."""
    with act_for(principal_id, "reveal_text"):
        row = Receipt.objects.only("document", "checksum").get(pk=place.receipt_id)
        receipt = read(row.document.encode(), row.checksum)
        home = receipt.request.query
        question = _question(home.home, UUID(home.id), home.name)
        node = Node.objects.select_related("passage").filter(pk=place.node_id).first()
        recorded = receipt.candidates[place.rank - 1].content_digest
        if node is None:
            return Passage(question, "", "", "", "", changed=True)
        source = getattr(node, "passage", None)
        return Passage(
            question,
            node.label,
            node.body,
            (source.type if source else "") or node.subkind or node.kind,
            source.version if source else "",
            changed=content_digest(node.label, node.body, _key()) != recorded,
        )


def _question(home: str, home_id: UUID, name: str | None) -> str | None:
    if home == "trace":
        return Trace.objects.filter(pk=home_id).values_list("query", flat=True).first()
    return JudgedQuery.objects.filter(query_set_id=home_id, name=name).values_list("text", flat=True).first()


def _key() -> bytes:
    owner = current_principal().principal_id
    return bytes(Principal.objects.values_list("hash_key", flat=True).get(pk=owner))
