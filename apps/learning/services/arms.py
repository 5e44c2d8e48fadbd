"""Answering the queries of a set under two sets of multipliers, over one state of the memory.

The law: all of it is read in one snapshot, and the memory is the same before, in between and after; otherwise
nothing is kept. Queries are embedded before, and receipts are written after, so that the snapshot only reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from apps.core.db.sessions import current_principal, principal_session, snapshot_session
from apps.graph.embedders import QueryEmbedding, embed_query
from apps.learning.exceptions import CorpusChanged, RetrievalIncomplete
from apps.learning.models import Holdout, JudgedQuery
from apps.learning.native_arms import documents_of
from apps.learning.schemas import RankingMultipliers
from apps.learning.scorer import FEATURES
from apps.retrieval.policy import PolicyInForce, in_force
from apps.retrieval.receipts.document import NewReceipt, ProfileUse
from apps.retrieval.retrieve import retrieve
from apps.retrieval.schemas import RetrievalRequest
from apps.retrieval.selectors import corpus_digest
from apps.retrieval.services import PreparedReceipt, hash_key, prepare_receipt


class Progress(Protocol):
    """What is told on the way; either may raise to end the run."""

    def phase(self, name: str, total: int = 0) -> None: ...
    def step(self, steps: int = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class AnsweredArm:
    """A receipt to be stored, and of each of its rows the place of its document among the judged ones."""

    receipt: PreparedReceipt
    documents: list[int]


@dataclass(frozen=True, slots=True)
class AnsweredPair:
    query: JudgedQuery
    baseline: AnsweredArm
    candidate: AnsweredArm


@dataclass(frozen=True, slots=True)
class Answers:
    """Both arms of every query, and the digest of the memory that answered them."""

    pairs: list[AnsweredPair]
    corpus_digest: str


@dataclass(frozen=True, slots=True)
class _Asking:
    """What every retrieval of a holdout has in common."""

    holdout: Holdout
    policy: PolicyInForce
    key: bytes
    at: datetime
    digest: str


def answer_both(
    holdout: Holdout, queries: Sequence[JudgedQuery], progress: Progress, *, principal_id: UUID
) -> Answers:
    """Run both arms of a holdout, outside of any session.

    Raises CorpusChanged, RetrievalIncomplete, and what `progress` raises.
    """
    progress.phase("embedding", len(queries))
    embeddings = [_embedded(query, progress) for query in queries]
    with principal_session(principal_id):
        before = corpus_digest()
    progress.phase("retrieving", len(queries))
    arms = (holdout.baseline_multipliers, holdout.candidate_multipliers)
    baseline, candidate = (dict(zip(FEATURES, values, strict=True)) for values in arms)
    with snapshot_session(principal_id):
        policy = in_force(current_principal().workspace_id)
        asking = _Asking(holdout, policy, hash_key(), holdout.requested_at, before)
        pairs = []
        for query, embedding in zip(queries, embeddings, strict=True):
            first = _answered(asking, query, embedding, baseline)
            second = _answered(asking, query, embedding, candidate)
            pairs.append(AnsweredPair(query, first, second))
            progress.step()
    return Answers(pairs, before)


def check_unchanged(answers: Answers) -> None:
    """In the session that stores the answers: the memory is still the one that gave them. Raises CorpusChanged."""
    if corpus_digest() != answers.corpus_digest:
        raise CorpusChanged("the memory changed while the arms were run")


def _embedded(query: JudgedQuery, progress: Progress) -> QueryEmbedding:
    embedding = embed_query(query.text)
    progress.step()
    return embedding


def _answered(
    asking: _Asking, query: JudgedQuery, embedding: QueryEmbedding, multipliers: Mapping[str, float]
) -> AnsweredArm:
    holdout = asking.holdout
    request = RetrievalRequest(
        query=query.text,
        embedding=embedding,
        reference_time=asking.at,
        scopes=None if holdout.scopes is None else tuple(holdout.scopes),
        limit=holdout.limit,
    )
    found = retrieve(request, multipliers=multipliers, policy=asking.policy)
    if found.partial:
        raise RetrievalIncomplete("a channel failed in an arm")
    if found.corpus_digest != asking.digest:
        raise CorpusChanged("the memory changed while the arms were run")
    new = NewReceipt(
        request=request,
        retrieval=found,
        recorded_at=asking.at,
        query_set_id=query.query_set_id,
        query_name=query.name,
        profile=_profile_use(multipliers),
    )
    return AnsweredArm(prepare_receipt(new=new, key=asking.key), documents_of(found.rows, query))


def _profile_use(multipliers: Mapping[str, Any]) -> ProfileUse:
    """No profile is asked: the multipliers are those of the request."""
    unity = RankingMultipliers(**multipliers) == RankingMultipliers()
    return ProfileUse(status="none" if unity else "request_override")
