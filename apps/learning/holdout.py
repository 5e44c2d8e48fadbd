"""Full-retrieval holdout: two arms answered apart, compared on everything that is relevant. Pure.

Pairs are checked by `pairs`; here they are measured and the gate is applied.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.core import canonical
from apps.learning.bootstrap import Interval, bootstrap_interval
from apps.learning.evaluate import power_of
from apps.learning.fit import IMPLEMENTATION_VERSION
from apps.learning.metrics import RetrievalMetrics, retrieval_metrics
from apps.learning.pairs import Arm, HoldoutInputs, Pair, checked_pairs
from apps.learning.schemas import (
    FailedGate,
    HoldoutConfig,
    HoldoutDecision,
    HoldoutQueryResult,
    HoldoutReport,
    SliceResult,
)

# What rounding may take from a metric without a loss.
METRIC_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class _Measured:
    """One pair with the metrics of both arms."""

    pair: Pair
    before: RetrievalMetrics
    after: RetrievalMetrics


def evaluate_holdout(
    inputs: HoldoutInputs, *, config: HoldoutConfig | None = None, exploratory: bool = True
) -> HoldoutReport:
    """Compare both arms of every trial and apply the gate.

    Imported pairs are exploratory; only pairs that the platform ran itself under the current gate policy are
    not. Raises a LearningInputError when the pairs do not fit together.
    """
    config = config or HoldoutConfig()
    pairs = checked_pairs(inputs)
    measured = [_measure(pair, config.k) for pair in pairs]
    queries = _query_results(measured)
    evidence = _evidence(inputs, config, measured, queries)
    return HoldoutReport(
        user_id=inputs.owner,
        scopes=inputs.scopes,
        config=config,
        proposal_input_checksum=inputs.proposal_input_checksum,
        memory_artifact_sha256=inputs.memory_artifact_sha256,
        receipt_checksums=_receipt_checksums(pairs),
        feature_identity=dict(pairs[0].baseline.features),
        feature_identity_sha256=pairs[0].baseline.features_sha256,
        base_scoring=dict(pairs[0].baseline.policy),
        baseline_multipliers=inputs.baseline_multipliers,
        candidate_multipliers=inputs.candidate_multipliers,
        exploratory=exploratory,
        resampling=inputs.resampling,
        graded_trials=sum(pair.trial.grades is not None for pair in pairs),
        coverage={
            "trials": len(pairs),
            "query_groups": len(queries),
            "relevant_nodes": sum(len(pair.trial.relevant_node_ids) for pair in pairs),
        },
        trials=tuple(pair.trial for pair in pairs),
        queries=queries,
        **evidence,
    )


def _evidence(
    inputs: HoldoutInputs,
    config: HoldoutConfig,
    measured: Sequence[_Measured],
    queries: Sequence[HoldoutQueryResult],
) -> dict[str, Any]:
    """Means, interval, slices and the decision over them."""
    gains = np.array([query.candidate_ndcg - query.baseline_ndcg for query in queries])
    interval = None
    if len(queries) >= config.min_query_groups:
        interval = bootstrap_interval(
            gains, samples=config.bootstrap_samples, seed=config.seed, resampling=inputs.resampling
        )
    means = _means(queries)
    regressed = float((gains < -METRIC_SLACK).mean())
    slices = _slice_results(measured, config)
    failed = failed_gates(means, interval, regressed, slices, config)
    manifest = _manifest(inputs, config, [item.pair for item in measured])
    return {
        **means,
        "ndcg_gain_interval": interval,
        "regression_fraction": regressed,
        "slices": slices,
        "failed_gates": failed,
        "decision": decide(failed),
        "power": power_of(gains, config.min_ndcg_gain),
        "input_checksum": inputs.input_checksum or manifest,
        "manifest_sha256": manifest,
    }


def failed_gates(
    means: Mapping[str, float],
    interval: Interval | None,
    regression_fraction: float,
    slices: Sequence[SliceResult],
    config: HoldoutConfig,
) -> tuple[FailedGate, ...]:
    """Which gates do not hold. `interval` is None below `min_query_groups`."""
    passed: dict[FailedGate, bool] = {
        "query_groups": interval is not None,
        "ndcg_gain": means["ndcg_gain"] >= config.min_ndcg_gain,
        "ndcg_gain_interval": interval is not None and interval[0] > 0,
        "recall": means["candidate_recall"] >= means["baseline_recall"] - METRIC_SLACK,
        "regression_fraction": regression_fraction <= config.max_regression_fraction,
        "protected_slice_unmeasured": all(item.ndcg_gain is not None for item in slices),
        "protected_slice": all(item.holds for item in slices if item.ndcg_gain is not None),
    }
    return tuple(gate for gate, holds in passed.items() if not holds)


def decide(failed: Sequence[FailedGate]) -> HoldoutDecision:
    """Too few groups, or a protected slice without any, decides nothing; any other failed gate refuses."""
    if "query_groups" in failed or "protected_slice_unmeasured" in failed:
        return "insufficient_data"
    return "no_improvement" if failed else "improved_full_retrieval"


def _measure(pair: Pair, k: int) -> _Measured:
    gains = pair.trial.gains
    return _Measured(
        pair=pair,
        before=retrieval_metrics(pair.baseline.order, gains, k),
        after=retrieval_metrics(pair.candidate.order, gains, k),
    )


def _query_results(measured: Sequence[_Measured]) -> tuple[HoldoutQueryResult, ...]:
    """Means of each group, groups in ascending order of their name."""
    by_group: defaultdict[str, list[_Measured]] = defaultdict(list)
    for item in measured:
        by_group[item.pair.trial.group_id].append(item)
    return tuple(_query_result(group_id, items) for group_id, items in sorted(by_group.items()))


def _query_result(group_id: str, items: Sequence[_Measured]) -> HoldoutQueryResult:
    before = RetrievalMetrics(
        *(sum(column) / len(items) for column in zip(*(i.before for i in items), strict=True))
    )
    after = RetrievalMetrics(
        *(sum(column) / len(items) for column in zip(*(i.after for i in items), strict=True))
    )
    return HoldoutQueryResult(
        group_id=group_id,
        baseline_request_ids=tuple(item.pair.baseline.request_id for item in items),
        candidate_request_ids=tuple(item.pair.candidate.request_id for item in items),
        baseline_recall=before.recall,
        candidate_recall=after.recall,
        baseline_ndcg=min(1.0, before.ndcg),
        candidate_ndcg=min(1.0, after.ndcg),
        baseline_mrr=before.mrr,
        candidate_mrr=after.mrr,
    )


def _means(queries: Sequence[HoldoutQueryResult]) -> dict[str, float]:
    """Means over groups of both arms, and the gains between them."""
    means: dict[str, float] = {}
    for metric in RetrievalMetrics._fields:
        for arm in ("baseline", "candidate"):
            values = [getattr(query, f"{arm}_{metric}") for query in queries]
            means[f"{arm}_{metric}"] = sum(values) / len(values)
        means[f"{metric}_gain"] = means[f"candidate_{metric}"] - means[f"baseline_{metric}"]
    return means


def _slice_results(measured: Sequence[_Measured], config: HoldoutConfig) -> tuple[SliceResult, ...]:
    results = []
    for name, bound in sorted(config.protected_slices.items()):
        queries = _query_results([item for item in measured if name in item.pair.trial.slices])
        gain = _means(queries)["ndcg_gain"] if queries else None
        results.append(
            SliceResult(
                name=name,
                query_groups=len(queries),
                ndcg_gain=gain,
                bound=bound,
                holds=gain is not None and gain >= bound - METRIC_SLACK,
            )
        )
    return tuple(results)


def _receipt_checksums(pairs: Sequence[Pair]) -> dict[str, str]:
    arms: list[Arm] = [arm for pair in pairs for arm in (pair.baseline, pair.candidate)]
    return {arm.request_id: arm.checksum for arm in sorted(arms, key=lambda arm: arm.request_id)}


def _manifest(inputs: HoldoutInputs, config: HoldoutConfig, pairs: Sequence[Pair]) -> str:
    """One hash over data, configuration, scopes, multipliers and code."""
    return canonical.checksum(
        {
            "owner": inputs.owner,
            "scopes": None if inputs.scopes is None else list(inputs.scopes),
            "config": config.model_dump(mode="json"),
            "proposal_input_checksum": inputs.proposal_input_checksum,
            "memory_artifact_sha256": inputs.memory_artifact_sha256,
            "baseline_multipliers": inputs.baseline_multipliers.model_dump(mode="json"),
            "candidate_multipliers": inputs.candidate_multipliers.model_dump(mode="json"),
            "trials": [pair.trial.model_dump(mode="json") for pair in pairs],
            "receipt_checksums": _receipt_checksums(pairs),
            "feature_identity_sha256": pairs[0].baseline.features_sha256,
            "implementation_version": IMPLEMENTATION_VERSION,
            "resampling": inputs.resampling,
        }
    )
