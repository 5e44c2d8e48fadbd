"""From a request to a pool of candidates and the channels' reports."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.db.sessions import current_principal
from apps.graph.analyser import ANALYSER
from apps.retrieval.schemas import ChannelReport, RetrievalRequest

from . import lexical, lexicon, run, semantic, statistics
from .filters import Restriction, restriction
from .pool import Candidate, read_attributes


@dataclass(frozen=True, slots=True)
class Candidates:
    """The pool, in no order, and how it came about."""

    pool: tuple[Candidate, ...]
    channels: tuple[ChannelReport, ...]
    restriction: Restriction
    statistics: statistics.Statistics
    groups: int
    groups_used: int


PER_CHANNEL = 100


def generate(
    request: RetrievalRequest, *, depth: int = PER_CHANNEL, exact_rows: int = semantic.EXACT_ROWS
) -> Candidates:
    """Ask both channels for `depth` rows each, in a principal's session, and read what scoring needs of them."""
    allowed = restriction(request, current_principal())
    cursor = run.session_cursor()
    known = statistics.read(cursor, allowed, request.embedding.embedder_id)
    groups, _ = ANALYSER.query(request.query, known.languages())
    words = lexicon.plan(cursor, groups, allowed, known)
    vectors = semantic.choose(known, exact_rows=exact_rows)
    by_words, by_meaning, method = _ask(request, allowed, words, vectors, depth)
    pool = _pool(cursor, request, by_words, by_meaning)
    return Candidates(
        pool=tuple(pool),
        channels=(_lexical_report(known, by_words), _semantic_report(request, known, by_meaning, method)),
        restriction=allowed,
        statistics=known,
        groups=len(groups),
        groups_used=len({unit.group for unit in words.units}),
    )


def _ask(
    request: RetrievalRequest,
    allowed: Restriction,
    words: lexicon.Plan,
    vectors: semantic.SemanticPlan,
    depth: int,
) -> tuple[run.Answer, run.Answer, semantic.Method | None]:
    """The answers of the lexical and the semantic channel; a channel with nothing to ask answers nothing."""
    asked: dict[str, list[run.Statement]] = {}
    method: semantic.Method | None = None
    if words.terms:
        asked["lexical"] = [lexical.statement(words, allowed, depth)]
    if request.embedding.vector is not None and vectors.rows:
        method = vectors.method
        asked["semantic"] = _semantic_statements(request, allowed, method, depth)
    answers = dict(zip(asked, run.answer_all(list(asked.values())), strict=True))
    by_meaning = answers.get("semantic", run.Answer())
    needed = min(depth, vectors.rows)
    if method == "hnsw" and (by_meaning.error is None) and len(by_meaning.rows) < needed:
        # The walk starved among rows that are not the caller's or do not pass the filters.
        method = "exact"
        by_meaning = run.answer_all([_semantic_statements(request, allowed, method, depth)])[0]
    return answers.get("lexical", run.Answer()), by_meaning, method


def _semantic_statements(
    request: RetrievalRequest, allowed: Restriction, method: semantic.Method, depth: int
) -> list[run.Statement]:
    main = semantic.statement(method, request.embedding, allowed, depth)
    return [main] if method == "exact" else [(semantic.SETTINGS, {}), main]


def _pool(
    cursor: Any, request: RetrievalRequest, by_words: run.Answer, by_meaning: run.Answer
) -> list[Candidate]:
    # By the number that an id is: hashing an id itself costs as much as all the rest of this function.
    lexical_of = {row[0].int: (rank, float(row[1])) for rank, row in enumerate(by_words.rows, 1)}
    semantic_of = {row[0].int: (rank, float(row[1])) for rank, row in enumerate(by_meaning.rows, 1)}
    wanted: dict[int, UUID] = {row[0].int: row[0] for row in (*by_words.rows, *by_meaning.rows)}
    if not wanted:
        return []
    embedding = request.embedding if by_meaning.error is None else None
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
        pool.append(Candidate(node, bm25, cosine, lexical_rank, semantic_rank))
    return pool


def _lexical_report(known: statistics.Statistics, answer: run.Answer) -> ChannelReport:
    if answer.error:
        return ChannelReport("lexical", "failed", error=answer.error)
    stored = any(row.nodes for row in known.rows)
    return ChannelReport("lexical", "ok" if stored else "empty", len(answer.rows), answer.milliseconds)


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
