"""Reading receipts, and computing their scores and order again out of nothing but themselves."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.receipts.schemas import CandidateRecord, ReceiptDocument
from apps.retrieval.schemas import Adjustment, Features, Raw
from apps.retrieval.scoring import score_of, weighed


@dataclass(frozen=True, slots=True)
class Drift:
    """A candidate whose score does not follow from its record."""

    node_id: str
    recorded: float
    replayed: float


@dataclass(frozen=True, slots=True)
class Replay:
    """What replay found. It speaks of returned candidates only: what was filtered or cut is not in a receipt.

    scores: recomputed, in the document's order.
    order: node ids, in the order that these scores give.
    """

    scores: tuple[float, ...]
    drifts: tuple[Drift, ...]
    weights_equal: bool
    order_equal: bool
    order: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return self.weights_equal and self.order_equal and not self.drifts


def read(document: bytes, checksum: str) -> ReceiptDocument:
    """A stored document, verified against its checksum and its schema. Raises CorruptReceipt."""
    if hashlib.sha256(document).hexdigest() != checksum:
        raise CorruptReceipt("The bytes are not those that the checksum was taken over")
    try:
        return ReceiptDocument.model_validate_json(document)
    except ValidationError:
        raise CorruptReceipt("The document is none of its schema") from None


def replay(receipt: ReceiptDocument) -> Replay:
    """Recompute applied weights, every score and the order from the receipt alone, to the last bit.

    No model, no clock, no graph and no query analysis is asked, and nothing of the memory as it is now. It speaks
    of the returned candidates only; that no other would have come before them it cannot say.
    """
    names = receipt.weight_names
    normalised = receipt.policy.formula == "weighted"
    applied = [dict(zip(names, each.applied, strict=True)) for each in receipt.weights]
    weights_equal = all(
        weighed(
            dict(zip(names, each.base, strict=True)),
            dict(zip(names, each.multipliers, strict=True)),
            normalised=normalised,
        )
        == used
        for each, used in zip(receipt.weights, applied, strict=True)
    )
    scores = tuple(
        _score(receipt, applied[candidate.weights], candidate, steps_of(candidate))
        for candidate in receipt.candidates
    )
    drifts = tuple(
        Drift(candidate.node_id, candidate.score, score)
        for candidate, score in zip(receipt.candidates, scores, strict=True)
        if candidate.score != score
    )
    places = [_place(candidate, score) for candidate, score in zip(receipt.candidates, scores, strict=True)]
    in_order = sorted(places)
    order = tuple(place[-1] for place in in_order)
    return Replay(scores, drifts, weights_equal, places == in_order, order)


def _place(candidate: CandidateRecord, score: float) -> tuple[bool, float, int, str]:
    """Sorts the reranked first, by score and id; then the others by score, number of channels and id."""
    # Canonical ids sort as their numbers do.
    channels = 0 if candidate.reranked else candidate.channels
    return not candidate.reranked, -score, -channels, candidate.node_id


def scores_by_step(receipt: ReceiptDocument, candidate: CandidateRecord) -> tuple[float, ...]:
    """The score of a candidate by the formula alone, then after each of its steps, as each would be returned."""
    steps = steps_of(candidate)
    applied = dict(zip(receipt.weight_names, receipt.weights[candidate.weights].applied, strict=True))
    return tuple(_score(receipt, applied, candidate, steps[:count]) for count in range(len(steps) + 1))


def _score(
    receipt: ReceiptDocument,
    applied: Mapping[str, float],
    candidate: CandidateRecord,
    steps: tuple[Adjustment, ...],
) -> float:
    return score_of(
        formula=receipt.policy.formula,
        applied=applied,
        features=Features(*candidate.features),
        raw=raw_of(candidate),
        adjustments=steps,
        fusion_k=receipt.policy.fusion_k,
    )


def verified(document: bytes, checksum: str) -> ReceiptDocument:
    """A stored document that reproduces itself exactly. Raises CorruptReceipt."""
    receipt = read(document, checksum)
    found = replay(receipt)
    if not found.exact:
        raise CorruptReceipt("Its scores or its order do not follow from what it records")
    return receipt


def raw_of(candidate: CandidateRecord) -> Raw:
    """What the channels said of a row, as scoring has it."""
    return Raw(*candidate.raw, candidate.hops, candidate.graph_rank, candidate.pinned_rank)


def steps_of(candidate: CandidateRecord) -> tuple[Adjustment, ...]:
    """The adjustments of a row, as scoring has them."""
    # The source of an inherited score is told, not computed with.
    return tuple(Adjustment(step.kind, step.coefficient) for step in candidate.adjustments)
