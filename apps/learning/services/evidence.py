"""The evidence for a profile: an evaluation and the holdout that confirmed it, held against the gate and recomputed.

A request computes again what it can in some seconds: as many label records as an evaluation has by default, and a fit
that takes no longer than `PATIENCE_S`. What is larger is for `manage.py make_profile`, which is bound by nothing.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.learning.exceptions import (
    EvidenceNotReproducible,
    NotPromotable,
    NotReproducible,
    UnknownEvaluation,
    UnknownHoldout,
)
from apps.learning.gate import weaker_evaluation_settings, weaker_holdout_settings
from apps.learning.models import Evaluation, Holdout, RunStatus
from apps.learning.policy import GateInEffect, gate_in_effect, gate_of
from apps.learning.schemas import (
    EvaluationReport,
    HoldoutConfig,
    HoldoutReport,
    LearningConfig,
    RankingMultipliers,
)
from apps.learning.scorer import FEATURES
from apps.learning.services.evaluations import recompute_evaluation
from apps.learning.services.holdouts import recompute_holdout

SURFACE, FORMULA = "results", "weighted"
MOST_RECORDS = LearningConfig().max_records
"""Label records of an evaluation that a request computes again."""
PATIENCE_S = 20.0
"""Seconds of a processor after which a request gives up fitting again."""
TOO_LARGE = "too_large"
IMPROVED_OFFLINE, IMPROVED_RETRIEVAL = "improved_on_observed_candidates", "improved_full_retrieval"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a profile is made of. `policy_*` and `contract` are what the holdout was answered under.

    `kept` are decisions, gains, intervals and checksums, which outlive the evidence itself.
    """

    scopes: tuple[str, ...] | None
    surface: str
    formula: str
    contract: str
    policy_id: UUID | None
    policy_sha256: str
    gate_policy_id: UUID
    multipliers: Mapping[str, float]
    baseline_multipliers: Mapping[str, float]
    evaluation_manifest: str
    holdout_manifest: str
    kept: Mapping[str, Any]


def evidence_for(evaluation_id: UUID, holdout_id: UUID, *, however_large: bool = False) -> Evidence:
    """The evidence that both carry now, in the session of their principal.

    `however_large`: the caller has the time; otherwise NotPromotable (`too_large`) is among what it raises.
    Raises UnknownEvaluation, UnknownHoldout, NotPromotable (with the reason), EvidenceNotReproducible.
    """
    owner = current_principal().principal_id
    evaluation = Evaluation.objects.filter(principal_id=owner, pk=evaluation_id).first()
    if evaluation is None:
        raise UnknownEvaluation
    holdout = Holdout.objects.filter(principal_id=owner, pk=holdout_id).first()
    if holdout is None:
        raise UnknownHoldout
    gate = gate_in_effect(evaluation.workspace_id)
    _check_questions(evaluation, holdout)
    _check_gate(evaluation, holdout, gate)
    # What was stored is looked at first: it costs nothing, and a refusal needs no proof.
    _check_decisions(evaluation.result.decision, holdout.result.decision)
    if not however_large:
        _check_size(evaluation)
    watch = _unbound if however_large else _within(PATIENCE_S)
    try:
        proposal, confirmed = recompute_evaluation(evaluation, watch=watch), recompute_holdout(holdout)
    except NotReproducible as differs:
        raise EvidenceNotReproducible(str(differs)) from None
    _check_reports(proposal, confirmed)
    policy = confirmed.base_scoring
    return Evidence(
        scopes=confirmed.scopes,
        surface=confirmed.surface,
        formula=policy["formula"],
        contract=confirmed.feature_identity["contract"],
        policy_id=UUID(policy["id"]) if policy["id"] else None,
        policy_sha256=policy["sha256"],
        gate_policy_id=gate.id,
        multipliers=_by_feature(confirmed.candidate_multipliers),
        baseline_multipliers=_by_feature(confirmed.baseline_multipliers),
        evaluation_manifest=proposal.manifest_sha256,
        holdout_manifest=confirmed.manifest_sha256,
        kept=_kept(evaluation, holdout, proposal, confirmed, gate),
    )


def _check_questions(evaluation: Evaluation, holdout: Holdout) -> None:
    """Both have ended well, and ask about the same."""
    if {evaluation.status, holdout.status} != {RunStatus.SUCCEEDED}:
        _refuse("not_finished")
    if evaluation.surface != SURFACE:
        _refuse("surface")
    if holdout.evaluation_id != evaluation.pk:
        _refuse("other_evaluation")
    if holdout.scopes != evaluation.scopes:
        _refuse("scopes")


def _check_gate(evaluation: Evaluation, holdout: Holdout, gate: GateInEffect) -> None:
    """Neither explored under less than the gate that ruled, nor asks less than the one that rules now."""
    if evaluation.exploratory or holdout.exploratory or holdout.query_set_id is None:
        _refuse("exploratory")
    asked = LearningConfig.model_validate_json(json.dumps(evaluation.config))
    weaker = weaker_evaluation_settings(asked, gate.document)
    confirmed = HoldoutConfig.model_validate_json(json.dumps(holdout.config))
    weaker += weaker_holdout_settings(confirmed, gate.document)
    if gate_of(evaluation.gate_policy_id).document.annotators != gate.document.annotators:
        weaker += ("annotators",)
    if weaker:
        _refuse("gate_policy", settings=list(weaker))


def _check_decisions(offline: str, retrieval: str) -> None:
    if offline != IMPROVED_OFFLINE:
        _refuse("evaluation_decision", decision=offline)
    if retrieval != IMPROVED_RETRIEVAL:
        _refuse("holdout_decision", decision=retrieval)


def _check_size(evaluation: Evaluation) -> None:
    records = json.loads(evaluation.result.summary)["coverage"]["feedback_records"]
    if records > MOST_RECORDS:
        _refuse(TOO_LARGE, records=records, most=MOST_RECORDS)


def _unbound() -> None:
    """Work goes on."""


def _within(seconds: float) -> Callable[[], None]:
    """Called on the way, it refuses to go on after so much time of the processor on this thread."""
    until = time.thread_time() + seconds

    def watch() -> None:
        if time.thread_time() > until:
            _refuse(TOO_LARGE)

    return watch


def _check_reports(proposal: EvaluationReport, confirmed: HoldoutReport) -> None:
    """The recomputed reports decide, and the holdout tried just what the evaluation proposed."""
    _check_decisions(proposal.decision, confirmed.decision)
    if confirmed.exploratory or confirmed.base_scoring["formula"] != FORMULA:
        _refuse("exploratory" if confirmed.exploratory else "formula")
    if confirmed.candidate_multipliers != proposal.multipliers:
        _refuse("multipliers")
    if confirmed.proposal_input_checksum != proposal.input_checksum:
        _refuse("proposal")
    if confirmed.feature_identity["contract"] != proposal.scorer_contract:
        _refuse("scorer_contract")


def _refuse(reason: str, **more: Any) -> NoReturn:
    raise NotPromotable(reason=reason, **more)


def _by_feature(multipliers: RankingMultipliers) -> dict[str, float]:
    return {name: getattr(multipliers, name) for name in FEATURES}


def _kept(
    evaluation: Evaluation,
    holdout: Holdout,
    proposal: EvaluationReport,
    confirmed: HoldoutReport,
    gate: GateInEffect,
) -> dict[str, Any]:
    interval = proposal.validation_gain_interval
    return {
        "evaluation": {
            "labels_until": clock.iso(evaluation.requested_at),
            "decision": proposal.decision,
            "manifest_sha256": proposal.manifest_sha256,
            "report_sha256": evaluation.result.checksum,
            "training_queries": proposal.coverage["training_queries"],
            "validation_queries": proposal.coverage["validation_queries"],
            "ndcg_gain": proposal.validation_ndcg_gain,
            "ndcg_gain_interval": list(interval) if interval else None,
            "pairwise_gain": proposal.validation_pairwise_gain,
            "loss_before": proposal.training_loss_before,
            "loss_after": proposal.training_loss_after,
        },
        "holdout": {
            "query_set_id": str(holdout.query_set_id),
            "decision": confirmed.decision,
            "manifest_sha256": confirmed.manifest_sha256,
            "report_sha256": holdout.result.checksum,
            "query_groups": confirmed.coverage["query_groups"],
            "ndcg_gain": confirmed.ndcg_gain,
            "ndcg_gain_interval": list(confirmed.ndcg_gain_interval or ()) or None,
            "recall_gain": confirmed.recall_gain,
            "mrr_gain": confirmed.mrr_gain,
            "regression_fraction": confirmed.regression_fraction,
        },
        "gate": {"id": str(gate.id), "version": gate.version},
    }
