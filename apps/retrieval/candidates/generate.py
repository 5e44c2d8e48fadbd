"""From a request to a pool of candidates and the channels' reports."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from psycopg import Cursor

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.graph.analyser import ANALYSER
from apps.retrieval.schemas import ChannelReport, RetrievalRequest

from . import lexical, lexicon, linked, run, semantic, standing, statistics
from .filters import Restriction, restriction
from .names import names_in
from .pool import Candidate, read_attributes


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pool, in no order, and how it came about; `best` are the hits from which the graph was walked."""

    pool: tuple[Candidate, ...]
    channels: tuple[ChannelReport, ...]
    restriction: Restriction
    statistics: statistics.Statistics
    groups: int
    groups_used: int
    best: tuple[UUID, ...] = ()


PER_CHANNEL = 100
FUSION_K = 60
"""Of the reciprocal ranks by which hits become the best hits."""

Name = Literal["lexical", "semantic", "graph", "pinned"]


def generate(
    request: RetrievalRequest,
    *,
    depth: int = PER_CHANNEL,
    exact_rows: int = semantic.EXACT_ROWS,
    best: Sequence[UUID] | None = None,
    known: statistics.Statistics | None = None,
) -> Candidates:
    """Ask every channel for `depth` rows, in a principal's session, and read what scoring needs of them.

    `best`: walk the graph from these hits, in place of the best of this request. `known`: the statistics, where they
    have been read in this session.
    """
    allowed = restriction(request, current_principal())
    cursor = session_cursor()
    if known is None:
        known = statistics.read(allowed, request.embedding.embedder_id)
    groups, _ = ANALYSER.query(request.query, known.languages())
    words = lexicon.plan(cursor, groups, allowed, known)
    vectors = semantic.choose(known, exact_rows=exact_rows)
    answers, method = _ask(request, allowed, known, words, vectors, depth)
    if best is None:
        best = _best(answers["lexical"], answers["semantic"]) if known.links else ()
    answers["graph"] = _walk(request, allowed, known, answers, best, depth)
    pool = _pool(cursor, request, answers)
    return Candidates(
        pool=tuple(pool),
        channels=(
            _report("lexical", answers["lexical"], stored=any(row.nodes for row in known.rows)),
            _semantic_report(request, known, answers["semantic"], method),
            _report("graph", answers["graph"], stored=known.links or known.entities),
            _report("pinned", answers["pinned"], stored=known.standing),
        ),
        restriction=allowed,
        statistics=known,
        groups=len(groups),
        groups_used=len({unit.group for unit in words.units}),
        best=tuple(best),
    )


def _ask(
    request: RetrievalRequest,
    allowed: Restriction,
    known: statistics.Statistics,
    words: lexicon.Plan,
    vectors: semantic.SemanticPlan,
    depth: int,
) -> tuple[dict[str, run.Answer], semantic.Method | None]:
    """The answers of the channels that need no other, in one round trip; one with nothing to ask answers nothing."""
    asked: dict[str, run.Channel] = {}
    method: semantic.Method | None = None
    if words.terms:
        asked["lexical"] = run.Channel(lexical.statement(words, allowed, depth))
    if request.embedding.vector is not None and vectors.rows:
        method = vectors.method
        asked["semantic"] = semantic.channel(method, request.embedding, allowed, depth)
    if known.standing:
        asked["pinned"] = run.Channel(standing.statement(allowed, depth))
    answers = dict.fromkeys(("lexical", "semantic", "pinned"), run.Answer())
    answers |= dict(zip(asked, run.answer_all(list(asked.values())), strict=True))
    by_meaning = answers["semantic"]
    needed = min(depth, vectors.rows)
    if method == "hnsw" and (by_meaning.error is None) and len(by_meaning.rows) < needed:
        # The walk starved among rows that are not the caller's or do not pass the filters.
        method = "exact"
        (answers["semantic"],) = run.answer_all([semantic.channel(method, request.embedding, allowed, depth)])
    return answers, method


def _walk(
    request: RetrievalRequest,
    allowed: Restriction,
    known: statistics.Statistics,
    answers: Mapping[str, run.Answer],
    best: Sequence[UUID],
    depth: int,
) -> run.Answer:
    """The answer of the graph channel, which starts from the best hits; a round trip only where links are stored."""
    if not (known.links or known.entities):
        return run.Answer()
    names = names_in(request.query)
    hits = [row[0] for name in ("lexical", "semantic") for row in answers[name].rows]
    if not best and not names.keys and not names.slugs:
        return run.Answer()
    found = [*hits, *(row[0] for row in answers["pinned"].rows)]
    (answer,) = run.answer_all([run.Channel(linked.statement(names, best, found, allowed, depth))])
    return answer


def _best(by_words: run.Answer, by_meaning: run.Answer) -> list[UUID]:
    """The first hits by the sum of their reciprocal ranks; ties by id."""
    fused: dict[UUID, float] = defaultdict(float)
    for answer in (by_words, by_meaning):
        for rank, row in enumerate(answer.rows, 1):
            fused[row[0]] += 1 / (FUSION_K + rank)
    ranked = sorted(fused, key=lambda node_id: (-fused[node_id], node_id.int))
    return ranked[: linked.BEST_HITS]


def _pool(
    cursor: Cursor[Any], request: RetrievalRequest, answers: Mapping[str, run.Answer]
) -> list[Candidate]:
    # By the number that an id is: hashing an id itself costs as much as all the rest of this function.
    by_words, by_meaning, by_links, stood = (
        answers[name].rows for name in ("lexical", "semantic", "graph", "pinned")
    )
    lexical_of = {row[0].int: (rank, float(row[1])) for rank, row in enumerate(by_words, 1)}
    semantic_of = {row[0].int: (rank, float(row[1])) for rank, row in enumerate(by_meaning, 1)}
    graph_of = {row[0].int: (rank, row[1]) for rank, row in enumerate(by_links, 1)}
    pinned_of = {row[0].int: rank for rank, row in enumerate(stood, 1)}
    wanted: dict[int, UUID] = {row[0].int: row[0] for row in (*by_words, *by_meaning, *by_links, *stood)}
    if not wanted:
        return []
    embedding = request.embedding if answers["semantic"].error is None else None
    unmeasured = [node_id for number, node_id in wanted.items() if number not in semantic_of]
    read = read_attributes(cursor, list(wanted.values()), embedding, unmeasured)
    found = {node.id.int: node for node in read}
    pool = []
    for number in wanted:
        node = found.get(number)
        if node is None:
            continue
        lexical_rank, bm25 = lexical_of.get(number, (None, None))
        semantic_rank, cosine = semantic_of.get(number, (None, node.cosine))
        graph_rank, hops = graph_of.get(number, (None, None))
        pool.append(
            Candidate(
                node, bm25, cosine, lexical_rank, semantic_rank, hops, graph_rank, pinned_of.get(number)
            )
        )
    return pool


def _report(name: Name, answer: run.Answer, *, stored: bool) -> ChannelReport:
    if answer.error:
        return ChannelReport(name, "failed", error=answer.error)
    return ChannelReport(name, "ok" if stored else "empty", len(answer.rows), answer.milliseconds)


def _semantic_report(
    request: RetrievalRequest, known: statistics.Statistics, answer: run.Answer, method: str | None
) -> ChannelReport:
    embeddable = known.embeddable()
    coverage = min(1.0, known.vectors() / embeddable) if embeddable else 1.0
    if not known.vectors():
        # Nothing is stored that a vector of the query could find: not a failure, whatever the embedder does.
        return ChannelReport("semantic", "empty", coverage=coverage)
    error = answer.error or request.embedding.error
    if error:
        return ChannelReport("semantic", "failed", error=error, coverage=coverage)
    return ChannelReport("semantic", "ok", len(answer.rows), answer.milliseconds, method, coverage)
