"""Offline evaluations over the principal's stored receipts and labels: asked for, computed, stored, recomputed."""

import hashlib
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core import canonical, clock, idempotency
from apps.core.db.sessions import current_principal, principal_session
from apps.core.ids import uuid7
from apps.core.schemas import StrictModel
from apps.feedback.selectors.labels import folded_labels
from apps.learning.evaluate import EvaluationInputs, evaluate
from apps.learning.exceptions import LearningInputError, NotReproducible, UnknownEvaluation
from apps.learning.gate import weaker_evaluation_settings
from apps.learning.models import Evaluation, EvaluationResult
from apps.learning.native_inputs import Cut, corrected_since, native_inputs
from apps.learning.policy import gate_in_effect, gate_of
from apps.learning.requests import EvaluationRequest
from apps.learning.schemas import EvaluationReport, LearningConfig
from apps.learning.selectors.evaluations import earlier_evaluations
from apps.learning.services import runs
from apps.learning.services.watch import Watch
from apps.learning.stored_prme import stored_prme_inputs
from apps.retrieval.keeping import keep_receipts

TOOL = "learning.evaluations"
KEEPER = "learning.evaluation"
IMPORTED = "imported"
LONG_LISTS = ("queries", "feedback_ids", "receipt_checksums")
"""What a summary leaves out, because it grows with the data."""


def start_evaluation(*, idempotency_key: str, request: EvaluationRequest) -> UUID:
    """Ask for an evaluation of the session's principal, once a key; its id. A worker computes it after the commit.

    The cut is now: it is taken under the principal's lock, so that no label is still to come into it. Settings
    that are left out are those of the gate policy. Raises StateConflict (idempotency_conflict).
    """

    def run(evaluation_id: UUID) -> idempotency.Made[UUID]:
        from apps.learning.tasks import evaluate as task

        runs.send(task, _asked(evaluation_id, request).pk)
        return idempotency.Made(evaluation_id)

    payload = request.model_dump(mode="json", exclude={"idempotency_key"}, exclude_unset=True)
    return idempotency.once(
        tool=TOOL, key=idempotency_key, payload=payload, run=run, again=lambda known: known
    ).answer


def _asked(evaluation_id: UUID, request: EvaluationRequest) -> Evaluation:
    owner = current_principal()
    gate = gate_in_effect(owner.workspace_id)
    config = merged(gate.document.evaluation, request.config)
    weaker = weaker_evaluation_settings(config, gate.document)
    return Evaluation.objects.create(
        id=evaluation_id,
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        requested_at=clock.now(),
        scopes=sorted(set(request.scopes)) if request.scopes is not None else None,
        surface=request.surface,
        source=request.source,
        config=config.model_dump(mode="json"),
        query_groups={str(receipt): name for receipt, name in sorted(request.query_groups.items())},
        gate_policy_id=gate.id,
        weaker_settings=list(weaker),
        exploratory=bool(weaker) or request.source == IMPORTED,
    )


def merged(policy: Any, given: StrictModel) -> Any:
    """The settings of the policy, but for those that the caller gave."""
    return policy.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})


def cancel_evaluation(*, evaluation_id: UUID) -> None:
    """Have an evaluation stop. Raises UnknownEvaluation, AlreadyEnded."""
    runs.cancel(Evaluation, evaluation_id, UnknownEvaluation)


def run_evaluation(*, principal_id: UUID, evaluation_id: UUID) -> dict[str, int]:
    """Compute and store an evaluation, outside of any session. Its counts for the job."""

    def work(evaluation: Evaluation, watch: Watch) -> None:
        watch.phase("loading")
        with principal_session(principal_id):
            inputs = _inputs(evaluation)
        watch.phase("fitting")
        report = evaluate(
            inputs,
            **_question(evaluation),
            count_earlier=lambda checksum: _earlier(principal_id, evaluation, checksum),
            watch=watch.step,
        )
        watch.phase("storing")
        with principal_session(principal_id):
            _store(evaluation, report)

    return runs.perform(Evaluation, principal_id, evaluation_id, work)


def recompute_evaluation(
    evaluation: Evaluation, *, watch: Callable[[], None] = lambda: None
) -> EvaluationReport:
    """The report of an evaluation again, from receipts and labels as they are now, in its principal's session.

    `watch` is called before each step of the fit and may raise to end it. Raises NotReproducible when it is not the
    stored one: a receipt is gone or changed, or a label that it stands on has since been withdrawn, superseded or
    decided otherwise by its annotator.
    """
    stored = EvaluationResult.objects.get(evaluation_id=evaluation.pk)
    native = evaluation.source != IMPORTED
    if native and corrected_since(folded_labels(until=evaluation.requested_at)):
        raise NotReproducible("a label was withdrawn or corrected since")
    try:
        report = evaluate(
            _inputs(evaluation),
            **_question(evaluation),
            count_earlier=lambda _: stored.earlier_evaluations,
            watch=watch,
        )
    except LearningInputError as refused:
        raise NotReproducible(str(refused)) from None
    if checksum_of(report_text(report)) != stored.checksum:
        raise NotReproducible("the stored report does not follow from receipts and labels")
    return report


def _inputs(evaluation: Evaluation) -> EvaluationInputs:
    if evaluation.source == IMPORTED:
        return stored_prme_inputs(query_groups=evaluation.query_groups)
    return native_inputs(
        Cut(
            until=evaluation.requested_at,
            annotators=gate_of(evaluation.gate_policy_id).document.annotators,
            max_records=evaluation.config["max_records"],
            query_groups=evaluation.query_groups,
        )
    )


def _question(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "scopes": None if evaluation.scopes is None else tuple(evaluation.scopes),
        "surface": evaluation.surface,
        "config": LearningConfig.model_validate_json(json.dumps(evaluation.config)),
    }


def _earlier(principal_id: UUID, evaluation: Evaluation, checksum: str) -> int:
    with principal_session(principal_id):
        return earlier_evaluations(checksum, before=evaluation)


def report_text(report: StrictModel) -> str:
    """Canonical JSON of a report."""
    return canonical.dumps(report.model_dump(mode="json")).decode()


def summary_text(report: StrictModel, left_out: tuple[str, ...]) -> str:
    """Canonical JSON of a report without what grows with the data."""
    return canonical.dumps(report.model_dump(mode="json", exclude=set(left_out))).decode()


def checksum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _store(evaluation: Evaluation, report: EvaluationReport) -> None:
    runs.succeed(evaluation)
    text = report_text(report)
    low, high = report.validation_gain_interval or (None, None)
    EvaluationResult.objects.create(
        workspace_id=evaluation.workspace_id,
        principal_id=evaluation.principal_id,
        evaluation=evaluation,
        recorded_at=clock.now(),
        decision=report.decision,
        training_groups=report.coverage["training_queries"],
        validation_groups=report.coverage["validation_queries"],
        ndcg_gain=report.validation_ndcg_gain,
        interval_low=low,
        interval_high=high,
        pairwise_gain=report.validation_pairwise_gain,
        loss_before=report.training_loss_before,
        loss_after=report.training_loss_after,
        multipliers=report.multipliers.values(),
        scorer_contract=report.scorer_contract,
        input_checksum=report.input_checksum,
        manifest_sha256=report.manifest_sha256,
        validation_groups_sha256=report.validation_groups_sha256,
        earlier_evaluations=report.earlier_evaluations_on_these_groups,
        summary=summary_text(report, LONG_LISTS),
        report=text,
        checksum=checksum_of(text),
    )
    _store_queries(evaluation, report)
    if evaluation.source == IMPORTED:  # imported receipts have a term of their own
        return
    keep_receipts(
        receipt_ids=[UUID(receipt) for receipt in report.receipt_checksums],
        kind=KEEPER,
        record_id=evaluation.pk,
    )


# The receipts of all groups in one array; `sizes` says how many each has.
_QUERIES = """
INSERT INTO learning_evaluated_query (id, workspace_id, principal_id, evaluation_id, group_id, split, receipt_ids,
  baseline_pairwise_accuracy, candidate_pairwise_accuracy, baseline_judged_ndcg, candidate_judged_ndcg)
SELECT q.id, %(workspace)s, %(principal)s, %(evaluation)s, q.group_id, q.split,
  (%(receipts)s::uuid[])[q.upto - q.size + 1 : q.upto], q.a, q.b, q.c, q.d
FROM unnest(%(ids)s::uuid[], %(groups)s::text[], %(splits)s::text[], %(sizes)s::int[], %(uptos)s::int[],
  %(a)s::float8[], %(b)s::float8[], %(c)s::float8[], %(d)s::float8[])
  AS q (id, group_id, split, size, upto, a, b, c, d)
"""


def _store_queries(evaluation: Evaluation, report: EvaluationReport) -> None:
    queries = report.queries
    uptos, upto = [], 0
    for query in queries:
        upto += len(query.request_ids)
        uptos.append(upto)
    values: dict[str, Any] = {
        "workspace": evaluation.workspace_id,
        "principal": evaluation.principal_id,
        "evaluation": evaluation.pk,
        "ids": [uuid7() for _ in queries],
        "groups": [query.group_id for query in queries],
        "splits": [query.split for query in queries],
        "sizes": [len(query.request_ids) for query in queries],
        "uptos": uptos,
        "receipts": [UUID(receipt) for query in queries for receipt in query.request_ids],
        "a": [query.baseline_pairwise_accuracy for query in queries],
        "b": [query.candidate_pairwise_accuracy for query in queries],
        "c": [query.baseline_judged_ndcg for query in queries],
        "d": [query.candidate_judged_ndcg for query in queries],
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUERIES, values)
