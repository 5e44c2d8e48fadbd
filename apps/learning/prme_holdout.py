"""Holdout inputs from receipts that PRME exported."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, ValidationError

from apps.core.schemas import StrictModel
from apps.learning.exceptions import ConflictingIdentity, PairMismatch
from apps.learning.identity import scope_key
from apps.learning.pairs import Arm, HoldoutInputs, checked_pairs
from apps.learning.schemas import HoldoutConfig, HoldoutTrial, RankingMultipliers, Sha256
from apps.retrieval.identity import normalise_query
from apps.retrieval.prme.reading import PrmeReceipt, load_json

_FIXED = (
    "reference_time",
    "packing",
    "min_score",
    "min_score_skipped",
    "result_limit",
    "retrieval_mode",
    "time_from",
    "time_to",
)
# What tells the arms apart, or follows from it.
_ARM_PARAMETERS = frozenset({"ranking_multipliers", "ranking_profile"})
# Settings that PRME knows; a holdout that has more has another checksum there than here.
_PRME_CONFIG = (
    "seed",
    "k",
    "min_query_groups",
    "bootstrap_samples",
    "min_ndcg_gain",
    "max_regression_fraction",
)
_PRME_TRIAL = ("group_id", "baseline_request_id", "candidate_request_id", "relevant_node_ids")


class HoldoutArguments(StrictModel):
    """A holdout's arguments as a file: what is compared, under which settings, and the trials.

    `documents`, a map from node ids to names for people, and `call` are read and not used.
    """

    call: str | None = None
    user_id: Annotated[str, Field(min_length=1)]
    scopes: tuple[str, ...] | None
    proposal_input_checksum: Sha256
    memory_artifact_sha256: Sha256
    baseline_multipliers: RankingMultipliers = RankingMultipliers()
    candidate_multipliers: RankingMultipliers
    config: HoldoutConfig = HoldoutConfig()
    trials: Annotated[tuple[HoldoutTrial, ...], Field(min_length=1)]
    documents: dict[str, str] | None = None


def holdout_inputs(
    receipts: Iterable[PrmeReceipt], arguments: HoldoutArguments, config: HoldoutConfig
) -> HoldoutInputs:
    """Inputs of `evaluate_holdout` from verified receipts in any order, repeats allowed.

    `config` is the one that the evaluation runs under, for the checksum over everything. Raises a
    LearningInputError when one request id stands for two receipts or the pairs do not fit together.
    """
    trials = arguments.trials
    named = {trial.baseline_request_id for trial in trials} | {trial.candidate_request_id for trial in trials}
    checksums: dict[str, str] = {}
    arms: dict[str, Arm] = {}
    for receipt in receipts:
        request_id = receipt.document.request_id
        if checksums.setdefault(request_id, receipt.checksum) != receipt.checksum:
            raise ConflictingIdentity("two receipts have one request id")
        if request_id in named and request_id not in arms:
            arms[request_id] = arm_of(receipt)
    inputs = HoldoutInputs(
        owner=arguments.user_id,
        scopes=scope_key(arguments.scopes),
        arms=arms,
        trials=trials,
        proposal_input_checksum=arguments.proposal_input_checksum,
        memory_artifact_sha256=arguments.memory_artifact_sha256,
        baseline_multipliers=arguments.baseline_multipliers,
        candidate_multipliers=arguments.candidate_multipliers,
        resampling="python_mersenne",
    )
    return replace(inputs, input_checksum=_input_checksum(inputs, config))


def arm_of(receipt: PrmeReceipt) -> Arm:
    """A receipt as one arm of a pair. Raises PairMismatch below version 3, which records no execution."""
    document = receipt.document
    if document.execution is None:
        raise PairMismatch("a holdout needs receipts of version 3 or later")
    features, parameters = document.execution.features, document.execution.parameters
    fixed = {name: getattr(document, name) for name in _FIXED}
    fixed |= {f"parameter {name}": parameters[name] for name in parameters.keys() - _ARM_PARAMETERS}
    return Arm(
        request_id=document.request_id,
        checksum=receipt.checksum,
        owner=document.user_id,
        scopes=document.scope_key,
        query_identity=normalise_query(document.query),
        fixed=fixed,
        policy=_policy(receipt),
        features=features,
        features_sha256=hashlib.sha256(_unescaped(features)).hexdigest(),
        multipliers=_multipliers(parameters.get("ranking_multipliers")),
        order=tuple(candidate.node_id for candidate in document.candidates),
    )


def _policy(receipt: PrmeReceipt) -> dict[str, Any]:
    """`scoring` as PRME reads it: before version 9 with the multiplier that its absence means."""
    scoring: dict[str, Any] = load_json(receipt.raw)["scoring"]
    return {"current_update_multiplier": receipt.document.scoring.current_update_multiplier} | scoring


def _multipliers(recorded: Any) -> RankingMultipliers:
    if recorded is None:
        return RankingMultipliers()
    try:
        return RankingMultipliers.model_validate(recorded)
    except ValidationError:
        raise PairMismatch("a receipt records multipliers out of form") from None


def _input_checksum(inputs: HoldoutInputs, config: HoldoutConfig) -> str:
    """PRME's checksum over everything that its holdout is computed from."""
    pairs = checked_pairs(inputs)
    arms = [arm for pair in pairs for arm in (pair.baseline, pair.candidate)]
    value = {
        "user_id": inputs.owner,
        "scopes": None if inputs.scopes is None else list(inputs.scopes),
        "proposal_input_checksum": inputs.proposal_input_checksum,
        "memory_artifact_sha256": inputs.memory_artifact_sha256,
        "baseline_multipliers": inputs.baseline_multipliers.model_dump(mode="json"),
        "candidate_multipliers": inputs.candidate_multipliers.model_dump(mode="json"),
        "base_scoring": pairs[0].baseline.policy,
        "config": config.model_dump(mode="json", include=set(_PRME_CONFIG)),
        "trials": [pair.trial.model_dump(mode="json", include=set(_PRME_TRIAL)) for pair in pairs],
        "receipt_checksums": {arm.request_id: arm.checksum for arm in arms},
    }
    return hashlib.sha256(_unescaped(value)).hexdigest()


def _unescaped(value: Any) -> bytes:
    """Compact JSON with sorted keys and unescaped characters: the form that PRME hashes here."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
