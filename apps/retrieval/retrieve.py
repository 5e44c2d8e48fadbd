"""A retrieval: candidates, features, scores, neighbours, folding, texts. It reads and computes, nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Cursor

from apps.core.db.cursors import Question, session_cursor
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_principal
from apps.graph.analyser import ANALYSER_VERSION
from apps.retrieval.candidates import Attributes, statistics
from apps.retrieval.candidates.filters import restriction
from apps.retrieval.candidates.statistics import Statistics
from apps.retrieval.emptiness import filters_unmatched, why_empty
from apps.retrieval.folding import fold, version_marks
from apps.retrieval.hydrate import Display, hydrate
from apps.retrieval.policy import PolicyInForce
from apps.retrieval.ranking import Ranked, Rules, rank, rules, source_key
from apps.retrieval.reranking import Pairs, Verdict, blended, judge, pairs
from apps.retrieval.schemas import Folded, Provenance, Retrieval, RetrievalRequest, Row
from apps.retrieval.scoring import Scored

MAX_HINTS = 5

Entity = tuple[Scored, tuple[Scored, ...]]
"""The row that represents an entity, and the others of it."""


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

    Raises InvalidRequest for a multiplier out of range. A channel that fails is reported, never raised. An installed
    reranker is asked within the session; whoever minds that takes the three steps apart: `begin`, `judge`, `finish`.
    """
    begun = begin(request, multipliers=multipliers, policy=policy)
    return finish(begun, judge(begun.pairs))


@dataclass(frozen=True, slots=True)
class Begun:
    """A retrieval whose rows are ranked; `pairs` is what a reranker is to read of it, None where none is asked."""

    request: RetrievalRequest
    by: Rules
    ranked: Ranked
    pairs: Pairs | None


def corpora(request: RetrievalRequest, identity: PrincipalIdentity) -> Question[Statistics]:
    """What `begin` must know of the corpora that the request may find, to be asked when the session begins."""
    return statistics.question(restriction(request, identity), request.embedding.embedder_id)


def begin(
    request: RetrievalRequest,
    *,
    multipliers: Mapping[str, float] | None = None,
    policy: PolicyInForce | None = None,
    known: Statistics | None = None,
) -> Begun:
    """The first half of `retrieve`, in a session; `known` is the answer of `corpora`, where that was asked."""
    by = rules(multipliers, policy)
    ranked = rank(request, by, known=known)
    return Begun(
        request, by, ranked, pairs(session_cursor(), request.query, ranked.rows, by.ruling.document.rerank)
    )


def finish(begun: Begun, verdict: Verdict) -> Retrieval:
    """The second half of `retrieve`, in a session of the same principal; `verdict` is `judge` of the pairs."""
    request, ranked = begun.request, begun.ranked
    rows = blended(ranked.rows, verdict.scores, begun.by.ruling.document.rerank)
    found = _answer(begun, verdict, choose(rows, request))
    return _with_hints(found, begun) if request.include_cross_scope and request.scopes else found


@dataclass(frozen=True, slots=True)
class Choice:
    """The entities of the answer, at most `limit`, and why others that were scored are none of them, by node.

    `dropped` counts entities by reason; those over the limit have none.
    """

    chosen: list[Entity]
    dropped: Counter[str]
    reasons: dict[UUID, str]


def choose(ranked: Sequence[Scored], request: RetrievalRequest) -> Choice:
    """Above the least score, not too many of one source, at most `limit`."""
    choice = Choice([], Counter(), {})
    per_source: Counter[Any] = Counter()
    for best, others in fold(ranked):
        reason = _drop(best, request, per_source)
        if reason is not None:
            choice.dropped[reason] += 1
            choice.reasons.update((row.candidate.node.id, reason) for row in (best, *others))
        elif len(choice.chosen) < request.limit:
            choice.chosen.append((best, others))
    return choice


def _drop(best: Scored, request: RetrievalRequest, per_source: Counter[Any]) -> str | None:
    if request.min_score is not None and best.score < request.min_score:
        return "below_min_score"
    if request.max_per_source is None:
        return None
    source = source_key(best.candidate.node)
    if per_source[source] >= request.max_per_source:
        return "max_per_source"
    per_source[source] += 1
    return None


def _answer(begun: Begun, verdict: Verdict, choice: Choice) -> Retrieval:
    request, ranked, by = begun.request, begun.ranked, begun.by
    cursor, found = session_cursor(), ranked.found
    rows = _rows(cursor, choice.chosen)
    unmatched = reasons = None
    if not rows:
        unmatched = filters_unmatched(cursor, request, found.restriction)
        below = choice.dropped["below_min_score"]
        reasons = why_empty(cursor, request, found.restriction, below, unmatched)
    shown = sum(1 + len(others) for _, others in choice.chosen)
    return Retrieval(
        rows=rows,
        scored=len(ranked.rows),
        omitted=len(ranked.rows) - shown,
        channels=found.channels,
        weights=by.weights,
        policy=by.ruling.reference,
        corpus_digest=found.statistics.digest(),
        embedder=request.embedding.model_id,
        analyser=ANALYSER_VERSION,
        query_groups=found.groups,
        groups_used=found.groups_used,
        excluded=dict(Counter(ranked.refused.values()) + choice.dropped),
        filters_unmatched=unmatched,
        why_empty=reasons,
        query_analysis=ranked.analysis,
        reranker=verdict.version,
        errors=ranked.errors | ({"reranker": verdict.error} if verdict.error else {}),
    )


def _with_hints(found: Retrieval, begun: Begun) -> Retrieval:
    """With what the scopes outside the request hold, under the same weights and on the scale of the answer's rows."""
    request = begun.request
    elsewhere = replace(request, scopes=None, outside=request.scopes or (), limit=MAX_HINTS)
    scale = begun.ranked.scale if begun.ranked.rows else None
    beyond = rank(elsewhere, begun.by, scale=scale, known=begun.ranked.found.statistics)
    rows = _rows(session_cursor(), choose(beyond.rows, elsewhere).chosen)
    failed = any(channel.status == "failed" for channel in beyond.found.channels)
    errors = {"cross_scope": "channel_failed"} if failed else {}
    return replace(found, hints=rows, errors={**found.errors, **errors})


def _rows(cursor: Cursor[Any], chosen: Sequence[Entity]) -> tuple[Row, ...]:
    display = hydrate(cursor, [best.candidate.node.id for best, _ in chosen])
    own = current_principal().principal_id
    # A node may be deleted while it is being answered.
    there = [(best, others) for best, others in chosen if best.candidate.node.id in display]
    return tuple(
        _row(rank, best, others, display[best.candidate.node.id], own)
        for rank, (best, others) in enumerate(there, 1)
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
        withdrawn=node.withdrawn,
    )
