"""A retrieval: candidates, features, scores, neighbours, folding, texts. It reads and computes, nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.core.db.sessions import current_principal
from apps.graph.analyser import ANALYSER_VERSION
from apps.retrieval.candidates import Attributes, Candidate, Candidates, generate
from apps.retrieval.candidates.run import session_cursor
from apps.retrieval.emptiness import filters_unmatched, why_empty
from apps.retrieval.features import features
from apps.retrieval.folding import fold, version_marks
from apps.retrieval.hydrate import Display, hydrate
from apps.retrieval.policy import PolicyInForce, in_force
from apps.retrieval.schemas import Folded, Provenance, Retrieval, RetrievalRequest, Row, Weights
from apps.retrieval.scoring import Scored, applied_weights, inherit, score_pool
from apps.retrieval.sessions import neighbours

LEAST_UNVERIFIED_CONFIDENCE = 0.30
HIDDEN_BY_DEFAULT = frozenset({"hypothetical", "deprecated", "conditional"})


def retrieve(
    request: RetrievalRequest,
    *,
    multipliers: Mapping[str, float] | None = None,
    policy: PolicyInForce | None = None,
) -> Retrieval:
    """Answer a request in the session of a principal.

    Args:
        multipliers: by feature (weighted) or channel (rank fusion), each in [0.25, 4]; absent ones are 1.
        policy: another one than the stored policy that rules the workspace.

    Raises InvalidRequest for a multiplier out of range. A channel that fails is reported, never raised.
    """
    ruling = policy or in_force(current_principal().workspace_id)
    weights = applied_weights(ruling.document, multipliers)
    found = generate(request, depth=ruling.document.candidates_per_channel)
    excluded: Counter[str] = Counter()
    pool = [c for c in found.pool if _admitted(c, request, excluded)]
    table = features(pool, at=request.reference_time, recency_per_day=ruling.document.recency_per_day)
    ranked = score_pool(pool, table, ruling.document, weights)
    cursor = session_cursor()
    beside = neighbours(cursor, ranked, found.restriction, ruling.document.session)
    if beside:
        admitted = [pair for pair in beside if _admitted(pair[1], request, Counter())]
        ranked = inherit(ranked, admitted, ruling.document)
    chosen = _choose(ranked, request, excluded)
    return _answer(cursor, request, found, ranked, chosen, excluded, weights, ruling)


def _admitted(candidate: Candidate, request: RetrievalRequest, excluded: Counter[str]) -> bool:
    """Whether a node's standing lets it into the answer; the reason is counted where it does not."""
    if request.epistemic_mode == "explicit":
        return True
    node = candidate.node
    reason = None
    if node.epistemic in HIDDEN_BY_DEFAULT:
        reason = f"epistemic_{node.epistemic}"
    elif node.epistemic == "unverified" and node.confidence <= LEAST_UNVERIFIED_CONFIDENCE:
        reason = "epistemic_unverified"
    if reason:
        excluded[reason] += 1
    return reason is None


def _choose(
    ranked: Sequence[Scored], request: RetrievalRequest, excluded: Counter[str]
) -> list[tuple[Scored, tuple[Scored, ...]]]:
    """The entities of the answer: above the least score, not too many of one source, at most `limit`."""
    chosen: list[tuple[Scored, tuple[Scored, ...]]] = []
    per_source: Counter[Any] = Counter()
    for best, others in fold(ranked):
        if request.min_score is not None and best.score < request.min_score:
            excluded["below_min_score"] += 1
            continue
        if request.max_per_source is not None:
            source = _source_key(best.candidate.node)
            if per_source[source] >= request.max_per_source:
                excluded["max_per_source"] += 1
                continue
            per_source[source] += 1
        if len(chosen) < request.limit:
            chosen.append((best, others))
    return chosen


def _source_key(node: Attributes) -> tuple[Any, ...]:
    if node.repo is None:
        return (node.id,)
    return (node.principal_id, node.repo, node.type, str(node.identity))


def _answer(
    cursor: Any,
    request: RetrievalRequest,
    found: Candidates,
    ranked: Sequence[Scored],
    chosen: Sequence[tuple[Scored, tuple[Scored, ...]]],
    excluded: Counter[str],
    weights: Weights,
    ruling: PolicyInForce,
) -> Retrieval:
    display = hydrate(cursor, [best.candidate.node.id for best, _ in chosen])
    own = current_principal().principal_id
    rows = tuple(
        _row(rank, best, others, display[best.candidate.node.id], own)
        for rank, (best, others) in enumerate(chosen, 1)
    )
    unmatched = reasons = None
    if not rows:
        unmatched = filters_unmatched(cursor, request, found.restriction)
        reasons = why_empty(cursor, request, found.restriction, excluded["below_min_score"], unmatched)
    shown = sum(1 + len(others) for _, others in chosen)
    return Retrieval(
        rows=rows,
        scored=len(ranked),
        omitted=len(ranked) - shown,
        channels=found.channels,
        weights=weights,
        policy=ruling.reference,
        corpus_digest=found.statistics.digest(),
        embedder=request.embedding.model_id,
        analyser=ANALYSER_VERSION,
        query_groups=found.groups,
        groups_used=found.groups_used,
        excluded={reason: count for reason, count in excluded.items() if count},
        filters_unmatched=unmatched,
        why_empty=reasons,
    )


def _provenance(node: Attributes) -> Provenance:
    return Provenance(node.repo, node.type, node.identity, node.version, node.part or 0)


def _row(rank: int, best: Scored, others: Sequence[Scored], display: Display, own: UUID) -> Row:
    node = best.candidate.node
    marks = version_marks((best, *others))
    return Row(
        node_id=node.id,
        rank=rank,
        score=best.score,
        path_score=best.path_score,
        features=best.features,
        raw=best.raw,
        adjustments=best.adjustments,
        kind=node.kind,
        subkind=node.subkind,
        title=display.title,
        content=display.content,
        provenance=_provenance(node),
        epistemic=node.epistemic,
        scope=display.scope,
        path=node.path,
        slug=display.slug,
        url=display.url,
        number=node.number,
        state=display.state,
        labels=tuple(display.labels),
        milestone=display.milestone,
        assignee=display.assignee,
        session=node.session,
        position=node.position,
        event_at=node.event_at,
        updated_at=node.updated_at,
        shared=node.principal_id != own,
        pinned=display.pinned,
        standing=display.standing,
        others=tuple(
            Folded(
                o.candidate.node.id, _provenance(o.candidate.node), o.score, marks.get(o.candidate.node.id)
            )
            for o in others
        ),
        version_status=marks.get(node.id),
    )
