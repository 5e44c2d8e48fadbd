"""The first rows, ranked anew by an installed model.

What it says enters as two recorded steps of each row, so that replay needs no model: the share of the score that
stays, and what the model adds. The reranked rows come first, by score and id; the others keep their order. A model may
take its time, so a search asks it between two sessions, never within one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from psycopg import Cursor

from apps.retrieval.extensions import Reranker, rerankers
from apps.retrieval.hydrate import Display, hydrate
from apps.retrieval.policy import Reranking
from apps.retrieval.schemas import Adjustment
from apps.retrieval.scoring import RERANK, RERANK_KEEP, Scored, reranked_score
from memory_platform.environment import environment

log = structlog.get_logger(__name__)

UNKNOWN, FAILED = "reranker_unknown", "reranker_failed"
MAX_QUERY, MAX_PAIR = 200, 1700
"""Characters of a query, and of a query with its text, that a model is given."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a reranker is to read: the cut query and texts, those of the first rows in their order."""

    query: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Scores in [0, 1] of the first rows and the version that gave them, or the stable code of why there are none."""

    scores: tuple[float, ...] = ()
    version: str | None = None
    error: str | None = None


def pairs(cursor: Cursor[Any], query: str, ranked: Sequence[Scored], policy: Reranking) -> Pairs | None:
    """What the reranker is to read; None where none is set or there is nothing to rank. In a session."""
    first = ranked[: policy.top]
    if not environment().memory_reranker or not first:
        return None
    cut = query[:MAX_QUERY]
    shown = hydrate(cursor, [row.candidate.node.id for row in first])
    texts = (_text(shown.get(row.candidate.node.id)) for row in first)
    return Pairs(cut, tuple(text[: MAX_PAIR - len(cut)] for text in texts))


def _text(shown: Display | None) -> str:
    return f"{shown.title}\n{shown.content}" if shown else ""


def judge(read: Pairs | None) -> Verdict:
    """Ask the reranker; outside of any session. It never raises: the rows stand without it."""
    if read is None:
        return Verdict()
    try:
        model = rerankers.get(environment().memory_reranker)
        if model is None:
            return Verdict(error=UNKNOWN)
        return Verdict(_scores(model, read), model.version)
    except Exception:
        # Whatever a model may raise; its words could hold a text.
        log.warning("reranker failed")
        return Verdict(error=FAILED)


def _scores(model: Reranker, read: Pairs) -> tuple[float, ...]:
    """Raises ValueError for an answer that is none."""
    scores = tuple(float(score) for score in model.scores(read.query, read.texts))
    good = len(scores) == len(read.texts) and all(math.isfinite(s) and 0 <= s <= 1 for s in scores)
    if not good:
        raise ValueError("a reranker gives a score in [0, 1] for each text")
    return scores


def blended(ranked: Sequence[Scored], scores: Sequence[float], policy: Reranking) -> list[Scored]:
    """The rows, best first, with the scores of a model for the first of them."""
    size = len(scores)
    first = [_blended(row, score, policy.keep) for row, score in zip(ranked[:size], scores, strict=True)]
    first.sort(key=lambda row: (-row.score, row.candidate.node.id.int))
    return [*first, *ranked[size:]]


def _blended(row: Scored, score: float, keep: float) -> Scored:
    added = (1 - keep) * score
    steps = (Adjustment(RERANK_KEEP, keep), Adjustment(RERANK, added))
    value = reranked_score(row.score, keep=keep, added=added)
    return replace(row, adjustments=(*row.adjustments, *steps), score=value)
