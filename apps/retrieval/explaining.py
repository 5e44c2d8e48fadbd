"""Why a node has its place: the recorded arithmetic of a returned row, and why another one is none.

The first is read from a receipt alone. The second is asked of the memory as it is now: what the memory was like when
the receipt was written is not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from psycopg import Cursor

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.retrieval.candidates import Attributes, Candidate, generate
from apps.retrieval.candidates.filters import DEFAULT_KINDS, conditions
from apps.retrieval.candidates.pool import read_attributes
from apps.retrieval.policy import FEATURES
from apps.retrieval.ranking import refusal
from apps.retrieval.receipts.replay import raw_of, scores_by_step
from apps.retrieval.receipts.schemas import CandidateRecord, ReceiptDocument
from apps.retrieval.reranking import Verdict, blended
from apps.retrieval.retrieve import Begun, choose
from apps.retrieval.schemas import ChannelReport, Raw, RetrievalRequest
from apps.retrieval.scoring import ranks_of

Reason = Literal["absent", "not_visible", "filtered", "below_cut", "not_found", "folded", "returned"]

# What is recorded of a returned row.


@dataclass(frozen=True, slots=True)
class Factor:
    """One term of the formula: a feature or (rank fusion) a channel. `value` is the feature, or the rank."""

    name: str
    value: float | None
    base: float
    multiplier: float
    applied: float
    contribution: float


@dataclass(frozen=True, slots=True)
class AppliedStep:
    """An adjustment, and the score with all up to it, rounded as scores are."""

    kind: str
    coefficient: float
    source: str | None
    score: float


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a recorded score came about. `formula_score` is the sum of the contributions, rounded."""

    rank: int
    score: float
    channels: int
    factors: tuple[Factor, ...]
    formula_score: float
    steps: tuple[AppliedStep, ...]
    raw: Mapping[str, float | None]


def arithmetic(receipt: ReceiptDocument, node_id: UUID) -> Arithmetic | None:
    """Of a row that the receipt returned; None for any other node."""
    for rank, candidate in enumerate(receipt.candidates, 1):
        if candidate.node_id == str(node_id):
            return _arithmetic(receipt, candidate, rank)
    return None


def _arithmetic(receipt: ReceiptDocument, candidate: CandidateRecord, rank: int) -> Arithmetic:
    raw, scores = raw_of(candidate), scores_by_step(receipt, candidate)
    return Arithmetic(
        rank=rank,
        score=candidate.score,
        channels=candidate.channels,
        factors=_factors(receipt, candidate, raw),
        formula_score=scores[0],
        steps=tuple(
            AppliedStep(step.kind, step.coefficient, step.source, score)
            for step, score in zip(candidate.adjustments, scores[1:], strict=True)
        ),
        raw={name: getattr(raw, name) for name in Raw.__slots__},
    )


def _factors(receipt: ReceiptDocument, candidate: CandidateRecord, raw: Raw) -> tuple[Factor, ...]:
    vector = receipt.weights[candidate.weights]
    parts = zip(receipt.weight_names, vector.base, vector.multipliers, vector.applied, strict=True)
    if receipt.policy.formula == "weighted":
        values = dict(zip(FEATURES, candidate.features, strict=True))
        return tuple(
            Factor(name, values[name], base, multiplier, applied, applied * values[name])
            for name, base, multiplier, applied in parts
        )
    ranks, k = ranks_of(raw), receipt.policy.fusion_k
    return tuple(
        Factor(name, rank, base, multiplier, applied, applied / (k + rank) if rank else 0.0)
        for name, base, multiplier, applied in parts
        for rank in (ranks[name],)
    )


# What the memory says now of any other node.


@dataclass(frozen=True, slots=True)
class ChannelStanding:
    """What one channel has to say of a node.

    status: `below_cut` with the node's `value` and the least that got in; `no_match`; `failed`. `value` is BM25, the
    cosine, or nothing where the channel only has an order.
    """

    name: str
    status: Literal["below_cut", "no_match", "failed"]
    value: float | None = None
    cut: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a node is no row of an answer.

    Attributes:
        codes: which filters or rules kept it out.
        channels: of a node that no channel returned.
        rank, score: among all that were scored, where it was; `cut` the score of the last row.
        under: the row that it is folded under.
    """

    reason: Reason
    codes: tuple[str, ...] = ()
    channels: tuple[ChannelStanding, ...] = ()
    rank: int | None = None
    score: float | None = None
    cut: float | None = None
    under: UUID | None = None


def visible_standing(request: RetrievalRequest, node_id: UUID) -> Standing | None:
    """The standing of a node that the request rules out by itself; None where it has to be ranked. In a session."""
    cursor = session_cursor()
    found = read_attributes(cursor, [node_id])
    if not found:
        return Standing("absent")
    (node,) = found
    if node.withdrawn is not None and request.epistemic_mode == "default":
        return Standing("not_visible", (node.withdrawn,))
    failing = _failing_filters(cursor, request, node)
    if failing:
        return Standing("filtered", failing)
    reason = refusal(node, request)
    return Standing("filtered", (reason,)) if reason else None


def _failing_filters(cursor: Cursor[Any], request: RetrievalRequest, node: Attributes) -> tuple[str, ...]:
    """Names of the filters that a node does not pass."""
    failing = []
    if request.corpus == "shared" and node.principal_id == current_principal().principal_id:
        failing.append("corpus")
    of_node, of_passage, values = conditions(request)
    asked = of_node | of_passage
    if "kinds" not in asked and node.kind not in DEFAULT_KINDS:
        failing.append("kinds")
    if asked:
        tests = ", ".join(f"coalesce({sql}, false)" for sql in asked.values())
        cursor.execute(
            f"SELECT {tests} FROM graph_node n LEFT JOIN graph_passage p ON p.node_id = n.id "
            "WHERE n.id = %(node)s",
            values | {"node": node.id},
        )
        passes = cursor.fetchone() or (False,) * len(asked)
        failing += [name for name, passed in zip(asked, passes, strict=True) if not passed]
    return tuple(failing)


def ranked_standing(begun: Begun, verdict: Verdict, node_id: UUID) -> Standing:
    """The standing of a node among all that were scored, or in the channels that returned it not. In a session."""
    request = begun.request
    rows = blended(begun.ranked.rows, verdict.scores, begun.by.ruling.document.rerank)
    choice = choose(rows, request)
    place = next((n for n, row in enumerate(rows, 1) if row.candidate.node.id == node_id), None)
    if place is None:
        return _unranked(begun, node_id)
    score = rows[place - 1].score
    for best, others in choice.chosen:
        if best.candidate.node.id == node_id:
            return Standing("returned", rank=place, score=score)
        if any(row.candidate.node.id == node_id for row in others):
            return Standing("folded", rank=place, score=score, under=best.candidate.node.id)
    if node_id in choice.reasons:
        return Standing("filtered", (choice.reasons[node_id],), rank=place, score=score)
    cut = choice.chosen[-1][0].score if choice.chosen else None
    return Standing("below_cut", ("limit",), rank=place, score=score, cut=cut)


def _unranked(begun: Begun, node_id: UUID) -> Standing:
    """Each channel is asked for this node alone; what it says is held against the least that got in."""
    found = begun.ranked.found
    alone = generate(replace(begun.request, only=(node_id,)), depth=1, best=found.best)
    node = next(iter(alone.pool), None)
    channels = tuple(_in_channel(report, node, found.pool) for report in found.channels)
    below = any(channel.status == "below_cut" for channel in channels)
    return Standing("below_cut" if below else "not_found", channels=channels)


def _in_channel(report: ChannelReport, node: Candidate | None, pool: Sequence[Candidate]) -> ChannelStanding:
    if report.status == "failed":
        return ChannelStanding(report.name, "failed")
    if node is None or getattr(node, f"{report.name}_rank") is None:
        return ChannelStanding(report.name, "no_match")
    measure = MEASURES.get(report.name)
    if measure is None:
        return ChannelStanding(report.name, "below_cut")
    got_in = [getattr(c, measure) for c in pool if getattr(c, f"{report.name}_rank") is not None]
    return ChannelStanding(report.name, "below_cut", getattr(node, measure), min(got_in, default=None))


MEASURES = {"lexical": "bm25", "semantic": "cosine"}
"""What a channel measures; the others have an order alone."""
