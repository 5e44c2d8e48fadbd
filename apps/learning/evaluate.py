"""Offline evaluation of a proposal: select, group, split, fit, measure, decide. Pure; reads nothing else."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from apps.core import canonical
from apps.learning.bootstrap import Interval, Resampling, bootstrap_interval
from apps.learning.exceptions import TooLarge
from apps.learning.fit import ALGORITHM, IMPLEMENTATION_VERSION, Fitted, coordinate_search, pairwise_objective
from apps.learning.identity import group_ids, names_by_query
from apps.learning.label_plan import label_plan
from apps.learning.metrics import JudgedPool, judged_ndcg, mean_by_group, pairwise_accuracy
from apps.learning.power import detectable_gain, groups_for_gain
from apps.learning.receipt_set import BoolArray, LabelSet, ReceiptSet, Surface
from apps.learning.schemas import (
    EvaluationDecision,
    EvaluationReport,
    LearningConfig,
    Power,
    QueryResult,
    RankingMultipliers,
)
from apps.learning.scorer import FEATURES, FloatArray, IndexArray, WeightedScorer
from apps.learning.selection import Selection, select
from apps.learning.split import is_validation

# A loss of accuracy that rounding alone may show.
ACCURACY_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class EvaluationInputs:
    """Everything that one owner's evaluation is computed from.

    `query_groups` maps a request id to a caller's name of its group; `input_checksum` identifies receipts,
    labels and groups in the way of the format that they came in; `set_aside` counts what its loader left out.
    """

    owner: str
    receipts: ReceiptSet
    labels: LabelSet
    query_groups: Mapping[str, str]
    input_checksum: str
    scorer_contract: str
    resampling: Resampling
    set_aside: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Question:
    """What was asked of the inputs."""

    scopes: tuple[str, ...] | None
    surface: Surface
    config: LearningConfig
    count_earlier: Callable[[str], int]
    watch: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups in ascending order of id: (q,) group of each request, and (g,) which groups validate."""

    ids: tuple[str, ...]
    of_request: IndexArray
    validates: BoolArray

    @property
    def num_validation(self) -> int:
        return int(self.validates.sum())

    @property
    def num_training(self) -> int:
        return len(self.ids) - self.num_validation


@dataclass(frozen=True, slots=True)
class Measured:
    """(g,) accuracy and NDCG of each group under one set of multipliers."""

    accuracy: FloatArray
    ndcg: FloatArray


def evaluate(
    inputs: EvaluationInputs,
    *,
    scopes: tuple[str, ...] | None,
    surface: Surface = "results",
    config: LearningConfig | None = None,
    count_earlier: Callable[[str], int] = lambda validation_groups_sha256: 0,
    watch: Callable[[], None] = lambda: None,
) -> EvaluationReport:
    """Fit multipliers on training groups and judge them on validation groups.

    `scopes` is a sorted set or None; `count_earlier` tells how many other evaluations the owner ran on the
    validation groups of a checksum; `watch` is called before each step of the fit and may raise to end it. Raises
    a LearningInputError for inputs that do not fit together.
    """
    question = _Question(scopes, surface, config or LearningConfig(), count_earlier, watch)
    config = question.config
    if len(inputs.labels) > config.max_records:
        raise TooLarge("more label records than max_records")
    selection = select(
        inputs.receipts,
        inputs.labels,
        scopes=scopes,
        surface=surface,
        contract=inputs.scorer_contract,
        max_pairs_per_request=config.max_pairs_per_request,
    )
    all_groups = _groups_of_receipts(inputs)
    grouping = _grouping(selection, all_groups, config)
    report = _report_without_fit(inputs, question, selection, grouping, all_groups)
    if (
        grouping.num_training < config.min_training_queries
        or grouping.num_validation < config.min_validation_queries
    ):
        return report
    return _with_fit(report, inputs, selection, grouping, watch)


def _groups_of_receipts(inputs: EvaluationInputs) -> list[str]:
    receipts = inputs.receipts
    identities = dict(zip(receipts.request_ids, receipts.query_identities, strict=True))
    return group_ids(receipts.query_identities, names_by_query(inputs.query_groups, identities))


def _grouping(selection: Selection, all_groups: list[str], config: LearningConfig) -> Grouping:
    of_request = [all_groups[index] for index in selection.receipts.tolist()]
    ids = sorted(set(of_request))
    position = {group: index for index, group in enumerate(ids)}
    validates = [is_validation(config.seed, group, config.validation_fraction) for group in ids]
    return Grouping(
        ids=tuple(ids),
        of_request=np.array([position[group] for group in of_request], dtype=np.int64),
        validates=np.array(validates, dtype=bool),
    )


def _report_without_fit(
    inputs: EvaluationInputs,
    question: _Question,
    selection: Selection,
    grouping: Grouping,
    all_groups: list[str],
) -> EvaluationReport:
    validation_ids = [group for group, validates in _by_split(grouping) if validates]
    validation_sha256 = hashlib.sha256("\n".join(validation_ids).encode()).hexdigest()
    return EvaluationReport(
        user_id=inputs.owner,
        scopes=question.scopes,
        surface=question.surface,
        scorer_contract=inputs.scorer_contract,
        config=question.config,
        input_checksum=inputs.input_checksum,
        manifest_sha256=_manifest(inputs, question),
        feedback_ids=inputs.labels.feedback_ids,
        receipt_checksums=_receipt_checksums(inputs),
        multipliers=RankingMultipliers(),
        decision="insufficient_data",
        resampling=inputs.resampling,
        graded_requests=int(selection.graded.sum()),
        validation_groups_sha256=validation_sha256,
        earlier_evaluations_on_these_groups=question.count_earlier(validation_sha256),
        power=Power(groups=grouping.num_validation, detectable_gain=None, groups_for_min_gain=None),
        label_plan=label_plan(
            inputs.receipts,
            selection,
            all_groups,
            question.config,
            num_training=grouping.num_training,
            num_validation=grouping.num_validation,
        ),
        coverage=_coverage(inputs, selection, grouping),
        exclusions=dict(sorted({**selection.exclusions, **inputs.set_aside}.items())),
    )


def _coverage(inputs: EvaluationInputs, selection: Selection, grouping: Grouping) -> dict[str, int]:
    pool = selection.pool
    return {
        "feedback_records": len(inputs.labels),
        "requests_with_pairs": pool.num_requests,
        "training_queries": grouping.num_training,
        "validation_queries": grouping.num_validation,
        "explicit_pairs": int((pool.positives * pool.negatives).sum()),
    }


def _receipt_checksums(inputs: EvaluationInputs) -> dict[str, str]:
    return dict(zip(inputs.receipts.request_ids, inputs.receipts.checksums, strict=True))


def _by_split(grouping: Grouping) -> Iterable[tuple[str, bool]]:
    return zip(grouping.ids, grouping.validates.tolist(), strict=True)


def _manifest(inputs: EvaluationInputs, question: _Question) -> str:
    """One hash over data, configuration, scopes, surface, code and scorer contract."""
    return canonical.checksum(
        {
            "owner": inputs.owner,
            "input_checksum": inputs.input_checksum,
            "receipt_checksums": _receipt_checksums(inputs),
            "feedback_ids": list(inputs.labels.feedback_ids),
            "query_groups": dict(inputs.query_groups),
            "scopes": None if question.scopes is None else list(question.scopes),
            "surface": question.surface,
            "config": question.config.model_dump(mode="json"),
            "algorithm": ALGORITHM,
            "implementation_version": IMPLEMENTATION_VERSION,
            "scorer_contract": inputs.scorer_contract,
            "resampling": inputs.resampling,
        }
    )


def _with_fit(
    report: EvaluationReport,
    inputs: EvaluationInputs,
    selection: Selection,
    grouping: Grouping,
    watch: Callable[[], None],
) -> EvaluationReport:
    config = report.config
    scorer = inputs.receipts.scorer.take(selection.rows)
    fitted = _fit_training(scorer, selection.pool, grouping, config, watch)
    baseline = _measure(scorer, selection.pool, grouping, np.ones(len(FEATURES)), config.ndcg_k)
    proposed = _measure(scorer, selection.pool, grouping, fitted.multipliers, config.ndcg_k)
    gains = (proposed.ndcg - baseline.ndcg)[grouping.validates]
    pairwise_gain = float((proposed.accuracy - baseline.accuracy)[grouping.validates].mean())
    interval = bootstrap_interval(
        gains, samples=config.bootstrap_samples, seed=config.seed, resampling=inputs.resampling
    )
    evidence = {
        "multipliers": RankingMultipliers.of(fitted.multipliers),
        "decision": decide(float(gains.mean()), interval, pairwise_gain, config),
        "training_loss_before": fitted.loss_before,
        "training_loss_after": fitted.loss_after,
        "validation_ndcg_gain": float(gains.mean()),
        "validation_pairwise_gain": pairwise_gain,
        "validation_gain_interval": interval,
        "power": power_of(gains, config.min_ndcg_gain),
        "queries": _query_results(inputs.receipts, selection, grouping, baseline, proposed),
    }
    return report.model_copy(update=evidence)


def power_of(gains: FloatArray, min_gain: float) -> Power:
    """What these group gains (n,) can show."""
    return Power(
        groups=len(gains),
        detectable_gain=detectable_gain(gains),
        groups_for_min_gain=groups_for_gain(gains, min_gain),
    )


def decide(
    ndcg_gain: float, interval: Interval, pairwise_gain: float, config: LearningConfig
) -> EvaluationDecision:
    """An improvement needs the gain, an interval above zero, and no pairwise accuracy lost."""
    improved = ndcg_gain >= config.min_ndcg_gain and interval[0] > 0 and pairwise_gain >= -ACCURACY_SLACK
    return "improved_on_observed_candidates" if improved else "no_improvement"


def _fit_training(
    scorer: WeightedScorer,
    pool: JudgedPool,
    grouping: Grouping,
    config: LearningConfig,
    watch: Callable[[], None],
) -> Fitted:
    trains = ~grouping.validates[grouping.of_request]
    rows = np.flatnonzero(trains[pool.request])
    objective = pairwise_objective(
        scorer.take(rows),
        pool.take(rows),
        grouping.of_request[trains],
        margin_scale=config.margin_scale,
        regularization=config.regularization,
    )

    def loss(multipliers: FloatArray) -> float:
        watch()
        return objective(multipliers)

    return coordinate_search(loss, passes_per_step=config.passes_per_step)


def _measure(
    scorer: WeightedScorer, pool: JudgedPool, grouping: Grouping, multipliers: FloatArray, k: int
) -> Measured:
    scores = scorer.scores(multipliers)
    groups = grouping.of_request, len(grouping.ids)
    return Measured(
        accuracy=mean_by_group(pairwise_accuracy(pool, scores), *groups),
        ndcg=mean_by_group(judged_ndcg(pool, scores, k), *groups),
    )


def _query_results(
    receipts: ReceiptSet,
    selection: Selection,
    grouping: Grouping,
    baseline: Measured,
    proposed: Measured,
) -> tuple[QueryResult, ...]:
    requests: list[list[str]] = [[] for _ in grouping.ids]
    for receipt, group in zip(selection.receipts.tolist(), grouping.of_request.tolist(), strict=True):
        requests[group].append(receipts.request_ids[receipt])
    columns = (baseline.accuracy, proposed.accuracy, baseline.ndcg, proposed.ndcg)
    # A mean of means may pass 1 by rounding.
    values = np.minimum(np.stack(columns, axis=1), 1.0).tolist()
    return tuple(
        QueryResult(
            group_id=group,
            split="validation" if validates else "train",
            request_ids=tuple(requests[index]),
            baseline_pairwise_accuracy=values[index][0],
            candidate_pairwise_accuracy=values[index][1],
            baseline_judged_ndcg=values[index][2],
            candidate_judged_ndcg=values[index][3],
        )
        for index, (group, validates) in enumerate(_by_split(grouping))
    )
