"""The stored gate against a caller's configuration: stricter is welcome, weaker only explores."""

from collections.abc import Mapping
from typing import Any

from apps.learning.schemas import GatePolicy, HoldoutConfig, LearningConfig

# At least as much as the gate says.
_EVALUATION_FLOORS = ("min_training_queries", "min_validation_queries", "min_ndcg_gain", "bootstrap_samples")
_HOLDOUT_FLOORS = ("min_query_groups", "min_ndcg_gain", "bootstrap_samples")
_HOLDOUT_CEILINGS = ("max_regression_fraction",)
# Neither stricter nor weaker; another value is another experiment, and choosing it after the fact is a way
# around the gate.
_EVALUATION_FIXED = ("seed", "validation_fraction", "ndcg_k")
_HOLDOUT_FIXED = ("seed", "k")


def weaker_evaluation_settings(config: LearningConfig, policy: GatePolicy) -> tuple[str, ...]:
    """Names of settings that ask for less than the policy; empty when the evaluation is promotable."""
    return _weaker(config, policy.evaluation, _EVALUATION_FLOORS, (), _EVALUATION_FIXED)


def weaker_holdout_settings(config: HoldoutConfig, policy: GatePolicy) -> tuple[str, ...]:
    """Names of settings that ask for less than the policy; empty when the holdout is promotable."""
    weaker = _weaker(config, policy.holdout, _HOLDOUT_FLOORS, _HOLDOUT_CEILINGS, _HOLDOUT_FIXED)
    if _slices_are_weaker(config.protected_slices, policy.holdout.protected_slices):
        weaker += ("protected_slices",)
    return weaker


def _weaker(
    config: Any, gate: Any, floors: tuple[str, ...], ceilings: tuple[str, ...], fixed: tuple[str, ...]
) -> tuple[str, ...]:
    below = [name for name in floors if getattr(config, name) < getattr(gate, name)]
    above = [name for name in ceilings if getattr(config, name) > getattr(gate, name)]
    other = [name for name in fixed if getattr(config, name) != getattr(gate, name)]
    return tuple(below + above + other)


def _slices_are_weaker(own: Mapping[str, float], gate: Mapping[str, float]) -> bool:
    return any(name not in own or own[name] < bound for name, bound in gate.items())
