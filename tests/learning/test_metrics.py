"""Metrics against their definitions, written out candidate by candidate."""

import math

import numpy as np
import pytest

from apps.learning.metrics import JudgedPool, judged_ndcg, mean_by_group, pairwise_accuracy, retrieval_metrics


def make_pool(requests: list[list[bool]], gains: list[list[float]] | None = None) -> JudgedPool:
    sizes = [len(request) for request in requests]
    relevant = np.array([label for request in requests for label in request])
    return JudgedPool(
        num_requests=len(requests),
        request=np.repeat(np.arange(len(requests)), sizes),
        relevant=relevant,
        gain=np.concatenate(gains) if gains else relevant.astype(float),
        tie_group=np.zeros(len(relevant), dtype=np.int8),
        tie_path=np.zeros(len(relevant)),
        id_rank=np.concatenate([np.arange(size) for size in sizes]).astype(np.int32),
    )


def test_pairwise_accuracy_and_ndcg_of_random_pools() -> None:
    random = np.random.default_rng(2)
    requests = []
    for size in (2, 3, 7, 15, 40):
        labels = random.random(size) < 0.4
        labels[:2] = True, False
        requests.append(labels.tolist())
    pool = make_pool(requests)
    scores = random.integers(0, 5, len(pool.relevant)).astype(float)
    accuracy, ndcg = pairwise_accuracy(pool, scores), judged_ndcg(pool, scores, 5)
    start = 0
    for index, labels in enumerate(requests):
        own = scores[start : start + len(labels)]
        start += len(labels)
        order = sorted(range(len(labels)), key=lambda i: (-own[i], i))
        position = {candidate: rank for rank, candidate in enumerate(order)}
        pairs = [(p, n) for p, good in enumerate(labels) if good for n, bad in enumerate(labels) if not bad]
        assert accuracy[index] == sum(position[p] < position[n] for p, n in pairs) / len(pairs)
        dcg = sum(1 / math.log2(rank + 2) for rank, i in enumerate(order[:5]) if labels[i])
        ideal = sum(1 / math.log2(rank + 2) for rank in range(min(5, sum(labels))))
        assert ndcg[index] == pytest.approx(dcg / ideal, abs=1e-15)


def test_ties_follow_group_path_and_id() -> None:
    pool = make_pool([[False, False, True]])
    scores = np.array([0.5, 0.5, 0.5])
    assert pairwise_accuracy(pool, scores).tolist() == [0.0]
    pool.tie_path[:] = (0.1, 0.2, 0.3)
    assert pairwise_accuracy(pool, scores).tolist() == [1.0]
    pool.tie_group[2] = 1
    assert pairwise_accuracy(pool, np.array([0.1, 0.2, 0.9])).tolist() == [0.0]


def test_graded_ndcg_prefers_the_higher_grade() -> None:
    pool = make_pool([[True, True, False]], [[1.0, 7.0, 0.0]])
    best = judged_ndcg(pool, np.array([0.5, 0.9, 0.1]), 10)
    worse = judged_ndcg(pool, np.array([0.9, 0.5, 0.1]), 10)
    assert best.tolist() == [1.0]
    assert worse[0] == pytest.approx((1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3)))


def test_means_weigh_groups_alike() -> None:
    means = mean_by_group(np.array([1.0, 0.0, 0.5, 0.5]), np.array([0, 0, 1, 1]), 2)
    assert means.tolist() == [0.5, 0.5]


def test_retrieval_metrics_count_what_was_not_found() -> None:
    found = retrieval_metrics(["a", "b", "c"], {"b": 1.0, "z": 1.0}, 10)
    assert found.recall == 0.5
    assert found.mrr == 0.5
    assert found.ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert retrieval_metrics(["a"], {"z": 1.0}, 10) == (0.0, 0.0, 0.0)
    assert retrieval_metrics([], {"z": 1.0}, 10) == (0.0, 0.0, 0.0)


def test_retrieval_metrics_cut_at_k() -> None:
    order = ["a", "b", "c", "d"]
    assert retrieval_metrics(order, {"d": 1.0}, 3) == (0.0, 0.0, 0.0)
    assert retrieval_metrics(order, {"d": 1.0}, 4).mrr == 0.25
    assert retrieval_metrics(order, dict.fromkeys("abcdef", 1.0), 4).ndcg == 1.0


def test_a_document_counts_once_at_its_best_row() -> None:
    metrics = retrieval_metrics(["x", "d", "d", "e"], {"d": 1.0, "e": 1.0}, 4)
    assert metrics.recall == 1.0
    assert metrics.mrr == 0.5
    dcg = 1 / math.log2(3) + 1 / math.log2(5)
    assert metrics.ndcg == pytest.approx(dcg / (1 + 1 / math.log2(3)))
