"""Arms and pairs of a holdout, and the checks that make a pair one request answered twice.

Both arms share owner, scopes, query, clock, filters, limit, policy, packing, features and all parameters but
the multipliers; one policy and one feature identity cover the whole set; no receipt and no query is used
twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.learning.bootstrap import Resampling
from apps.learning.exceptions import (
    ConflictingIdentity,
    ForeignInput,
    LearningInputError,
    Overlap,
    PairMismatch,
    UnknownReference,
)
from apps.learning.identity import named_group_id, query_group_id
from apps.learning.schemas import HoldoutTrial, RankingMultipliers


@dataclass(frozen=True, slots=True)
class Arm:
    """One answered retrieval as far as a holdout compares it.

    fixed            what both arms of a pair share, by name: clock, filters, limits, packing, parameters
    policy           the scoring configuration before multipliers, the same over the whole set
    features         identity of the installation that answered, the same over the whole set
    features_sha256  its checksum in the way of the receipt's format
    multipliers      those of the request; unity where it named none
    order            documents of the returned rows, in order; one may occur more than once
    """

    request_id: str
    checksum: str
    owner: str
    scopes: tuple[str, ...] | None
    query_identity: str
    fixed: Mapping[str, Any]
    policy: Mapping[str, Any]
    features: Mapping[str, Any]
    features_sha256: str
    multipliers: RankingMultipliers
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldoutInputs:
    """Arms by request id, trials, and what the pairs claim to be.

    `input_checksum` is that of the format which they came in; without one, the manifest is taken.
    """

    owner: str
    scopes: tuple[str, ...] | None
    arms: Mapping[str, Arm]
    trials: Sequence[HoldoutTrial]
    proposal_input_checksum: str
    memory_artifact_sha256: str
    candidate_multipliers: RankingMultipliers
    resampling: Resampling
    baseline_multipliers: RankingMultipliers = field(default_factory=RankingMultipliers)
    input_checksum: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A trial with its arms."""

    trial: HoldoutTrial
    baseline: Arm
    candidate: Arm


def checked_pairs(inputs: HoldoutInputs) -> list[Pair]:
    """Pairs by group and baseline request, each checked, and all of them together.

    Raises PairMismatch, ForeignInput, ConflictingIdentity, UnknownReference or LearningInputError.
    """
    pairs = [_pair(trial, inputs.arms) for trial in inputs.trials]
    if not pairs:
        raise LearningInputError("a holdout needs a trial")
    pairs.sort(key=lambda pair: (pair.trial.group_id, pair.trial.baseline_request_id))
    for pair in pairs:
        _check_pair(pair, inputs)
    _check_set(pairs)
    return pairs


def _pair(trial: HoldoutTrial, arms: Mapping[str, Arm]) -> Pair:
    baseline, candidate = arms.get(trial.baseline_request_id), arms.get(trial.candidate_request_id)
    if baseline is None or candidate is None:
        raise UnknownReference("a trial names an unknown receipt")
    return Pair(trial, baseline, candidate)


def _check_pair(pair: Pair, inputs: HoldoutInputs) -> None:
    baseline, candidate = pair.baseline, pair.candidate
    if not baseline.owner == candidate.owner == inputs.owner:
        raise ForeignInput("a receipt belongs to another owner")
    if not baseline.scopes == candidate.scopes == inputs.scopes:
        raise PairMismatch("a receipt has other scopes than the holdout")
    if baseline.query_identity != candidate.query_identity:
        raise PairMismatch("both arms of a pair need one query")
    for name in sorted(baseline.fixed.keys() | candidate.fixed.keys()):
        if baseline.fixed.get(name) != candidate.fixed.get(name):
            raise PairMismatch(f"both arms of a pair need the same {name}")
    if baseline.policy != candidate.policy:
        raise PairMismatch("both arms of a pair need one scoring policy")
    if baseline.features != candidate.features:
        raise PairMismatch("both arms of a pair need one feature identity")
    if baseline.multipliers != inputs.baseline_multipliers:
        raise PairMismatch("a baseline receipt has other multipliers than declared")
    if candidate.multipliers != inputs.candidate_multipliers:
        raise PairMismatch("a candidate receipt has other multipliers than declared")


def _check_set(pairs: Sequence[Pair]) -> None:
    used: set[str] = set()
    group_of_query: dict[str, str] = {}
    first = pairs[0].baseline
    for pair in pairs:
        both = {pair.baseline.request_id, pair.candidate.request_id}
        if used & both:
            raise ConflictingIdentity("a receipt is in two trials")
        used |= both
        group_id = pair.trial.group_id
        if group_of_query.setdefault(pair.baseline.query_identity, group_id) != group_id:
            raise ConflictingIdentity("one query is in two groups")
        if pair.baseline.policy != first.policy:
            raise PairMismatch("a holdout has one scoring policy")
        if pair.baseline.features != first.features:
            raise PairMismatch("a holdout has one feature identity")


def check_overlap(
    pairs: Iterable[Pair],
    *,
    request_ids: Iterable[str],
    group_ids: Iterable[str],
    query_identities: Iterable[str] = (),
) -> None:
    """Refuse pairs that share a receipt, a query or a group with the evaluation that they are to confirm.

    `request_ids` and `group_ids` are those of the evaluation (`receipt_checksums` and `queries` of its
    report); a query without a name is its group, so its group id tells it, and `query_identities` are
    needed only for queries under a caller's name. Raises Overlap.
    """
    requests, groups, queries = set(request_ids), set(group_ids), set(query_identities)
    for pair in pairs:
        identity, name = pair.baseline.query_identity, pair.trial.group_id
        if requests & {pair.baseline.request_id, pair.candidate.request_id}:
            raise Overlap("a receipt of the holdout is in the evaluation")
        if identity in queries or query_group_id(identity) in groups:
            raise Overlap("a query of the holdout is in the evaluation")
        if named_group_id(name) in groups:
            raise Overlap("a group of the holdout is in the evaluation")
