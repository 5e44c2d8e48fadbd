"""The wording of a query: what the policy's analysis finds in it, and the analysis that is shipped.

Never a hidden shift: without an analysis named by the policy nothing is read, and a receipt names the version of the
one that was.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from apps.retrieval.candidates import Candidate
from apps.retrieval.extensions import Reading, analyses
from apps.retrieval.folding import latest_editions
from apps.retrieval.policy import ScoringPolicy
from apps.retrieval.scoring import NO_WORDING, Wording

log = structlog.get_logger(__name__)

UNKNOWN, FAILED = "query_analysis_unknown", "query_analysis_failed"


@dataclass(frozen=True, slots=True)
class Analysed:
    """What scoring takes of the wording, the version that found it, or the stable code of why nothing did."""

    wording: Wording = NO_WORDING
    version: str | None = None
    error: str | None = None


def analysed(query: str, at: datetime, pool: Iterable[Candidate], policy: ScoringPolicy) -> Analysed:
    """The wording of a query under a policy; nothing is read where the policy names no analysis."""
    if policy.query_analysis is None:
        return Analysed()
    try:
        analysis = analyses.get(policy.query_analysis)
        if analysis is None:
            return Analysed(error=UNKNOWN)
        reading = analysis.read(query, at=at)
        version = analysis.version
    except Exception:
        log.warning("query analysis failed")
        return Analysed(error=FAILED)
    current = latest_editions(pool) if reading.current else frozenset()
    return Analysed(Wording(reading.window, current), version)


_CURRENT = re.compile(
    r"\b(?:now|current|currently|latest|newest|present|today|these days|up[- ]to[- ]date)\b"
)
_LAST = re.compile(r"\b(?:last|past|previous)\s+(day|week|month|year)\b")
_THIS = re.compile(r"\b(?:this)\s+(week|month|year)\b")
_RECENT = re.compile(r"\b(?:recent|recently|lately)\b")
_YESTERDAY, _TODAY = re.compile(r"\byesterday\b"), re.compile(r"\btoday\b")
_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
RECENT_DAYS = 14


class EnglishWording:
    """Words of the present and of a recent time, in English. Times are counted back from the time of the question."""

    version = "wording-1"

    def read(self, query: str, *, at: datetime) -> Reading:
        words = query.casefold()
        return Reading(bool(_CURRENT.search(words)), _window(words, at))


def _window(words: str, at: datetime) -> tuple[datetime, datetime] | None:
    end = at + timedelta(microseconds=1)  # what happened at this very moment has happened
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if _YESTERDAY.search(words):
        return midnight - timedelta(days=1), midnight
    if _TODAY.search(words):
        return midnight, end
    for pattern in (_LAST, _THIS):
        found = pattern.search(words)
        if found:
            return at - timedelta(days=_DAYS[found[1]]), end
    return (at - timedelta(days=RECENT_DAYS), end) if _RECENT.search(words) else None
