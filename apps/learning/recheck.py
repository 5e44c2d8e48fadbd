"""What an active profile is worth on what was judged since: the baseline and the profile on the same receipts. Pure."""

from dataclasses import dataclass

import numpy as np

from apps.learning.bootstrap import Interval, Resampling, bootstrap_interval
from apps.learning.identity import group_ids
from apps.learning.metrics import judged_ndcg, mean_by_group
from apps.learning.receipt_set import LabelSet, ReceiptSet
from apps.learning.schemas import LearningConfig
from apps.learning.scorer import FloatArray
from apps.learning.selection import select

RESAMPLING: Resampling = "pcg64_multiply_shift"


@dataclass(frozen=True, slots=True)
class Worth:
    """Mean gain in judged NDCG of a profile over its baseline, with its interval; None without a query group."""

    groups: int
    gain: float | None = None
    interval: Interval | None = None

    def is_enough(self, config: LearningConfig) -> bool:
        """Whether there are as many query groups as a validation needs."""
        return self.groups >= config.min_validation_queries

    def has_regressed(self, config: LearningConfig) -> bool:
        """Whether the baseline is better: by as much as the gate asks of a gain, or beyond doubt."""
        if not self.is_enough(config) or self.gain is None or self.interval is None:
            return False
        return self.gain <= -config.min_ndcg_gain or self.interval[1] < 0


def worth_of(
    receipts: ReceiptSet,
    labels: LabelSet,
    *,
    scopes: tuple[str, ...] | None,
    contract: str,
    baseline: FloatArray,
    profile: FloatArray,
    config: LearningConfig,
) -> Worth:
    """Compare two vectors of multipliers (6,) on the judged candidates of one scope set.

    A query counts once, however often it was asked. Raises a LearningInputError for inputs that do not hold.
    """
    selection = select(
        receipts,
        labels,
        scopes=scopes,
        surface="results",
        contract=contract,
        max_pairs_per_request=config.max_pairs_per_request,
    )
    used = selection.receipts.tolist()
    if not used:
        return Worth(0)
    groups = group_ids([receipts.query_identities[index] for index in used], {})
    ids, of_request = np.unique(groups, return_inverse=True)
    scorer = receipts.scorer.take(selection.rows)
    before, after = (
        mean_by_group(
            judged_ndcg(selection.pool, scorer.scores(multipliers), config.ndcg_k),
            of_request.astype(np.int64),
            len(ids),
        )
        for multipliers in (baseline, profile)
    )
    gains = after - before
    interval = bootstrap_interval(
        gains, samples=config.bootstrap_samples, seed=config.seed, resampling=RESAMPLING
    )
    return Worth(len(ids), float(gains.mean()), interval)
