"""Full-retrieval holdouts: asked for, run, stored, recomputed.

The law: what a holdout must not share with its evaluation is checked when it is asked for and when it has run; a
result is stored with all its receipts or not at all; pairs that the platform did not run are exploratory for good.
"""

import json
from uuid import UUID

from apps.core import clock, idempotency
from apps.core.db.sessions import current_principal, principal_session
from apps.core.problems import InvalidRequest
from apps.learning.exceptions import (
    LearningInputError,
    NoProposal,
    NotReproducible,
    QueriesOverlap,
    UnknownHoldout,
)
from apps.learning.gate import weaker_holdout_settings
from apps.learning.holdout import evaluate_holdout
from apps.learning.models import Evaluation, Holdout, HoldoutPair, HoldoutResult, JudgedQuery, RunStatus
from apps.learning.pairs import HoldoutInputs, check_overlap, checked_pairs
from apps.learning.policy import gate_in_effect
from apps.learning.requests import HoldoutRequest
from apps.learning.schemas import HoldoutConfig, HoldoutReport
from apps.learning.selectors.evaluations import INSUFFICIENT, evaluation_of
from apps.learning.selectors.overlap import seen_by, shares_queries
from apps.learning.selectors.query_sets import query_set_of
from apps.learning.services import runs
from apps.learning.services.arms import Answers, answer_both, check_unchanged
from apps.learning.services.collected import (
    Collected,
    collected_from_answers,
    collected_from_receipts,
    collected_from_trials,
    holdout_inputs,
    pair_rows,
)
from apps.learning.services.evaluations import checksum_of, merged, report_text, summary_text
from apps.learning.services.watch import Watch
from apps.retrieval.keeping import keep_receipts
from apps.retrieval.schemas import MAX_LIMIT
from apps.retrieval.services import store_receipts

TOOL = "learning.holdouts"
KEEPER = "learning.holdout"
LONG_LISTS = ("queries", "trials", "receipt_checksums")
_AT_ONCE = 500


def start_holdout(*, idempotency_key: str, request: HoldoutRequest) -> UUID:
    """Ask for a holdout of an evaluation of the session's principal, once a key; its id. A worker runs it after
    the commit. Settings that are left out are those of the gate policy.

    Raises UnknownEvaluation, UnknownQuerySet, NoProposal, QueriesOverlap, InvalidRequest (more than 50 rows
    would be needed), StateConflict (idempotency_conflict).
    """

    def run(holdout_id: UUID) -> idempotency.Made[UUID]:
        from apps.learning.tasks import holdout as task

        runs.send(task, _asked(holdout_id, request).pk)
        return idempotency.Made(holdout_id)

    payload = request.model_dump(mode="json", exclude={"idempotency_key"}, exclude_unset=True)
    return idempotency.once(
        tool=TOOL, key=idempotency_key, payload=payload, run=run, again=lambda known: known
    ).answer


def _asked(holdout_id: UUID, request: HoldoutRequest) -> Holdout:
    owner = current_principal()
    evaluation = evaluation_of(request.evaluation_id)
    if request.query_set_id is not None:
        query_set_of(request.query_set_id)
    _check_proposal(evaluation)
    if request.query_set_id is not None and shares_queries(request.query_set_id, seen_by(evaluation.pk)):
        raise QueriesOverlap
    gate = gate_in_effect(owner.workspace_id)
    config = merged(gate.document.holdout, request.config)
    weaker = weaker_holdout_settings(config, gate.document)
    return Holdout.objects.create(
        id=holdout_id,
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        evaluation=evaluation,
        query_set_id=request.query_set_id,
        trials=None if request.trials is None else [each.model_dump(mode="json") for each in request.trials],
        memory_artifact_sha256=request.memory_artifact_sha256 or "",
        requested_at=clock.now(),
        scopes=evaluation.scopes,
        config=config.model_dump(mode="json"),
        limit=_limit(request, config),
        gate_policy_id=gate.id,
        weaker_settings=list(weaker),
        exploratory=bool(weaker) or evaluation.exploratory or request.trials is not None,
        baseline_multipliers=request.baseline_multipliers.values(),
        candidate_multipliers=evaluation.result.multipliers,
    )


def _check_proposal(evaluation: Evaluation) -> None:
    if evaluation.status != RunStatus.SUCCEEDED or evaluation.surface != "results":
        raise NoProposal
    if evaluation.result.decision == INSUFFICIENT:
        raise NoProposal("It had too few labelled queries to fit anything")


def _limit(request: HoldoutRequest, config: HoldoutConfig) -> int:
    if request.trials is not None:
        return request.limit or MAX_LIMIT
    limit = request.limit or config.k
    if limit > MAX_LIMIT:
        raise InvalidRequest(f"A retrieval returns at most {MAX_LIMIT} rows", pointer="/config/k")
    if limit < config.k:
        raise InvalidRequest("The cut-off k lies within the rows", pointer="/limit")
    return limit


def cancel_holdout(*, holdout_id: UUID) -> None:
    """Have a holdout stop. Raises UnknownHoldout, AlreadyEnded."""
    runs.cancel(Holdout, holdout_id, UnknownHoldout)


def run_holdout(*, principal_id: UUID, holdout_id: UUID) -> dict[str, int]:
    """Run and store a holdout, outside of any session. Its counts for the job."""

    def work(holdout: Holdout, watch: Watch) -> None:
        answers = _answers(holdout, principal_id, watch)
        watch.phase("storing")
        with principal_session(principal_id):
            collected = collected_from_trials(holdout) if answers is None else collected_from_answers(answers)
            inputs = holdout_inputs(holdout, collected)
            _check_overlap(holdout, inputs)
            report = evaluate_holdout(inputs, config=_config(holdout), exploratory=holdout.exploratory)
            runs.succeed(holdout)
            if answers is not None:
                check_unchanged(answers)
                _store_receipts(answers)
            _store(holdout, collected, report)

    return runs.perform(Holdout, principal_id, holdout_id, work)


def recompute_holdout(holdout: Holdout) -> HoldoutReport:
    """The report of a holdout again, from its stored receipts and judgments, in its principal's session.

    Raises NotReproducible when it is not the stored one.
    """
    stored = HoldoutResult.objects.only("checksum").get(holdout_id=holdout.pk)
    try:
        imported = holdout.query_set_id is None
        collected = collected_from_trials(holdout) if imported else collected_from_receipts(holdout)
        inputs = holdout_inputs(holdout, collected)
        report = evaluate_holdout(inputs, config=_config(holdout), exploratory=holdout.exploratory)
    except LearningInputError as refused:
        raise NotReproducible(str(refused)) from None
    if checksum_of(report_text(report)) != stored.checksum:
        raise NotReproducible("the stored report does not follow from receipts and judgments")
    return report


def _answers(holdout: Holdout, principal_id: UUID, watch: Watch) -> Answers | None:
    """What both arms answer to the query set; None for imported pairs."""
    if holdout.query_set_id is None:
        return None
    with principal_session(principal_id):
        queries = list(JudgedQuery.objects.filter(query_set_id=holdout.query_set_id).order_by("position"))
    return answer_both(holdout, queries, watch, principal_id=principal_id)


def _check_overlap(holdout: Holdout, inputs: HoldoutInputs) -> None:
    seen = seen_by(holdout.evaluation_id)
    check_overlap(
        checked_pairs(inputs),
        request_ids=seen.request_ids,
        group_ids=seen.group_ids,
        query_identities=seen.query_identities,
    )


def _config(holdout: Holdout) -> HoldoutConfig:
    return HoldoutConfig.model_validate_json(json.dumps(holdout.config))


def _store_receipts(answers: Answers) -> None:
    receipts = [arm.receipt for pair in answers.pairs for arm in (pair.baseline, pair.candidate)]
    for start in range(0, len(receipts), _AT_ONCE):
        store_receipts(receipts=receipts[start : start + _AT_ONCE])


def _store(holdout: Holdout, collected: Collected, report: HoldoutReport) -> None:
    text = report_text(report)
    low, high = report.ndcg_gain_interval or (None, None)
    HoldoutResult.objects.create(
        workspace_id=holdout.workspace_id,
        principal_id=holdout.principal_id,
        holdout=holdout,
        recorded_at=clock.now(),
        decision=report.decision,
        failed_gates=list(report.failed_gates),
        query_groups=report.coverage["query_groups"],
        baseline_ndcg=report.baseline_ndcg,
        candidate_ndcg=report.candidate_ndcg,
        ndcg_gain=report.ndcg_gain,
        interval_low=low,
        interval_high=high,
        recall_gain=report.recall_gain,
        mrr_gain=report.mrr_gain,
        regression_fraction=report.regression_fraction,
        memory_artifact_sha256=report.memory_artifact_sha256,
        manifest_sha256=report.manifest_sha256,
        summary=summary_text(report, LONG_LISTS),
        report=text,
        checksum=checksum_of(text),
    )
    rows = pair_rows(holdout, collected, k=report.config.k)
    HoldoutPair.objects.bulk_create(rows, batch_size=_AT_ONCE)
    kept: list[UUID | None] = [
        receipt for row in rows for receipt in (row.baseline_receipt_id, row.candidate_receipt_id)
    ]
    keep_receipts(
        receipt_ids=[receipt for receipt in kept if receipt is not None], kind=KEEPER, record_id=holdout.pk
    )
