"""Ranking metrics: on judged candidates for an evaluation, on the full order for a holdout."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apps.learning.receipt_set import BoolArray
from apps.learning.scorer import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class JudgedPool:
    """The unambiguously judged candidates (j,) of q requests, requests one after the other.

    request    (j,) index of the request, ascending
    relevant   (j,) the label
    gain       (j,) 1 or 0, or 2^grade − 1 where all labels of the request have grades
    tie_group, tie_path, id_rank  (j,) as in a ReceiptSet
    """

    num_requests: int
    request: IndexArray
    relevant: BoolArray
    gain: FloatArray
    tie_group: npt.NDArray[np.int8]
    tie_path: FloatArray
    id_rank: npt.NDArray[np.int32]

    @property
    def positives(self) -> IndexArray:
        """(q,) relevant candidates of each request."""
        return np.bincount(self.request[self.relevant], minlength=self.num_requests)

    @property
    def negatives(self) -> IndexArray:
        """(q,) judged not relevant."""
        return np.bincount(self.request[~self.relevant], minlength=self.num_requests)

    def take(self, rows: IndexArray) -> "JudgedPool":
        """The pool of the requests that own `rows`, renumbered; `rows` holds whole requests, ascending."""
        requests, request = np.unique(self.request[rows], return_inverse=True)
        return JudgedPool(
            num_requests=len(requests),
            request=request.astype(np.int64),
            relevant=self.relevant[rows],
            gain=self.gain[rows],
            tie_group=self.tie_group[rows],
            tie_path=self.tie_path[rows],
            id_rank=self.id_rank[rows],
        )

    def ranked(self, scores: FloatArray) -> IndexArray:
        """(j,) candidates by request, and within it by the receipt's own tie rules."""
        return np.lexsort((self.id_rank, -self.tie_path, -scores, self.tie_group, self.request))


def pairwise_accuracy(pool: JudgedPool, scores: FloatArray) -> FloatArray:
    """(q,) share of (relevant, not relevant) pairs in the right order. Each request has both classes."""
    relevant = pool.relevant[pool.ranked(scores)]
    misses = np.cumsum(~relevant)
    starts = np.searchsorted(pool.request, np.arange(pool.num_requests))
    before = np.concatenate([[0], misses])[starts]
    behind = pool.negatives[pool.request] - (misses - before[pool.request])
    right = np.bincount(pool.request[relevant], weights=behind[relevant], minlength=pool.num_requests)
    accuracy: FloatArray = right / (pool.positives * pool.negatives)
    return accuracy


def judged_ndcg(pool: JudgedPool, scores: FloatArray, k: int) -> FloatArray:
    """(q,) NDCG at k over judged candidates alone; each request has a relevant one."""
    dcg = _discounted_gain(pool, pool.ranked(scores), k)
    ideal = _discounted_gain(pool, np.lexsort((-pool.gain, pool.request)), k)
    ndcg: FloatArray = dcg / ideal
    return ndcg


def _discounted_gain(pool: JudgedPool, order: IndexArray, k: int) -> FloatArray:
    starts = np.searchsorted(pool.request, np.arange(pool.num_requests))
    position = np.arange(len(order)) - starts[pool.request]
    counted = position < k
    discounts = np.array(rank_discounts(min(k, len(order))))
    gains = pool.gain[order][counted] * discounts[position[counted]]
    # bincount adds in order, as the reference does.
    return np.bincount(pool.request[counted], weights=gains, minlength=pool.num_requests).astype(np.float64)


def rank_discounts(count: int) -> list[float]:
    """1 / log2(i + 2) for the first `count` ranks."""
    return [1 / math.log2(index + 2) for index in range(count)]


def mean_by_group(values: FloatArray, group: IndexArray, num_groups: int) -> FloatArray:
    """(g,) mean of the values of each group, so that a repeated query does not weigh more."""
    means: FloatArray = np.bincount(group, weights=values, minlength=num_groups) / np.bincount(
        group, minlength=num_groups
    )
    return means


class RetrievalMetrics(NamedTuple):
    """Metrics of one full order cut at k."""

    recall: float
    ndcg: float
    mrr: float


def retrieval_metrics(order: Sequence[str], relevant: Mapping[str, float], k: int) -> RetrievalMetrics:
    """Recall, NDCG and reciprocal rank of the first k rows against all relevant documents and their gains.

    `order` may name a document more than once (its parts): it counts once, at its best row. `relevant` is
    not empty and holds what neither order may have found, which is the point of a full-retrieval metric.
    """
    discounts = rank_discounts(max(1, min(k, max(len(order), len(relevant)))))
    found: set[str] = set()
    dcg, first = 0.0, 0
    for rank, document in enumerate(order[:k]):
        if document not in relevant or document in found:
            continue
        found.add(document)
        dcg += relevant[document] * discounts[rank]
        first = first or rank + 1
    gains = sorted(relevant.values(), reverse=True)[:k]
    ideal = sum(gain * discount for gain, discount in zip(gains, discounts, strict=False))
    return RetrievalMetrics(len(found) / len(relevant), dcg / ideal, 1 / first if first else 0.0)
