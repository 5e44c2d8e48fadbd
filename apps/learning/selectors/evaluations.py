"""Reads of evaluations, in the session of their principal."""

import json
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.learning.exceptions import UnknownEvaluation
from apps.learning.models import EvaluatedQuery, Evaluation, EvaluationResult
from apps.learning.models.runs import LearningRun
from apps.learning.requests import PageQuery, RunsQuery

INSUFFICIENT = "insufficient_data"
ORDER = ("-requested_at", "-id")
LISTED = (
    "decision",
    "training_groups",
    "validation_groups",
    "ndcg_gain",
    "interval_low",
    "interval_high",
    "pairwise_gain",
    "multipliers",
    "manifest_sha256",
    "checksum",
)


def evaluation_of(evaluation_id: UUID) -> Evaluation:
    """An evaluation of the session's principal, with its result where it has one. Raises UnknownEvaluation."""
    found = (
        Evaluation.objects.filter(principal_id=current_principal().principal_id, pk=evaluation_id)
        .select_related("result")
        .defer("result__report")
        .first()
    )
    if found is None:
        raise UnknownEvaluation
    return found


def evaluation_shown(evaluation_id: UUID, *, full: bool = False) -> dict[str, Any]:
    """One evaluation with the summary of its report, or with all of it."""
    found = evaluation_of(evaluation_id)
    shown = _head(found)
    result = getattr(found, "result", None)
    if result is None:
        return shown | {"report": None, "report_sha256": None, "receipts_gone": None}
    text = _report(found) if full else result.summary
    return shown | {
        "report": json.loads(text),
        "report_sha256": result.checksum,
        "receipts_gone": receipts_gone(found),
    }


# The report names every receipt of the cut: a native one by its id, an imported one by its request's.
_GONE = """
SELECT count(*) FROM learning_evaluation_result e,
  json_object_keys(e.report::json -> 'receipt_checksums') AS named (receipt)
WHERE e.principal_id = %(owner)s AND e.evaluation_id = %(evaluation)s AND NOT EXISTS (
  SELECT FROM {table} r WHERE r.principal_id = %(owner)s AND r.{key} = named.receipt::uuid)
"""
_HOMES = {
    "native": _GONE.format(table="retrieval_receipt", key="id"),
    "imported": _GONE.format(table="retrieval_prme_receipt", key="request_id"),
}


def receipts_gone(evaluation: Evaluation) -> int:
    """How many receipts that an evaluation stands on are erased or past their term: with one it cannot be computed
    again. In a session of its principal, or of staff who see it."""
    with connection.cursor() as cursor:
        cursor.execute(
            _HOMES[evaluation.source], {"owner": evaluation.principal_id, "evaluation": evaluation.pk}
        )
        return int(cursor.fetchone()[0])


def evaluations_page(query: RunsQuery) -> dict[str, Any]:
    """A page of the caller's evaluations, newest first."""
    owner = current_principal().principal_id
    rows = Evaluation.objects.filter(principal_id=owner).select_related("result")
    if query.status is not None:
        rows = rows.filter(status=query.status)
    page = KeysetPage.of(
        rows.defer("query_groups", "result__report", "result__summary"),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="evaluations",
        order=ORDER,
        filters=query.model_dump(mode="json", include={"status"}),
    )
    return {"evaluations": [_listed(row) for row in page.items], "next_cursor": page.next_cursor}


def evaluated_queries_page(evaluation_id: UUID, query: PageQuery) -> dict[str, Any]:
    """A page of the query groups of an evaluation, by group id. Raises UnknownEvaluation."""
    found = evaluation_of(evaluation_id)
    page = KeysetPage.of(
        EvaluatedQuery.objects.filter(evaluation_id=found.pk),
        limit=query.limit,
        cursor=query.cursor,
        owner=found.principal_id,
        listing="evaluated_queries",
        order=("group_id",),
        filters={"evaluation": str(found.pk)},
    )
    return {"queries": [_query_shown(row) for row in page.items], "next_cursor": page.next_cursor}


def earlier_evaluations(validation_groups_sha256: str, *, before: Evaluation) -> int:
    """How many evaluations of the session's principal were fitted on these validation groups before this one."""
    return (
        EvaluationResult.objects.filter(
            principal_id=current_principal().principal_id,
            validation_groups_sha256=validation_groups_sha256,
            evaluation__requested_at__lt=before.requested_at,
        )
        .exclude(decision=INSUFFICIENT)
        .count()
    )


def run_shown(run: LearningRun) -> dict[str, Any]:
    """What evaluations and holdouts show alike."""
    return {
        "requested_at": clock.iso(run.requested_at),
        "status": run.status,
        "progress": {"phase": run.phase or None, "done": run.done, "total": run.total or None},
        "cancel_requested": run.cancel_requested_at is not None,
        "started_at": clock.iso(run.started_at) if run.started_at else None,
        "finished_at": clock.iso(run.finished_at) if run.finished_at else None,
        "failure_code": run.failure_code or None,
        "scopes": run.scopes,
        "config": run.config,
        "gate_policy_id": str(run.gate_policy_id),
        "exploratory": run.exploratory,
        "weaker_settings": run.weaker_settings,
    }


def _head(found: Evaluation) -> dict[str, Any]:
    return run_shown(found) | {
        "evaluation_id": str(found.pk),
        "surface": found.surface,
        "source": found.source,
    }


def _report(found: Evaluation) -> str:
    return str(EvaluationResult.objects.values_list("report", flat=True).get(evaluation_id=found.pk))


def _listed(row: Evaluation) -> dict[str, Any]:
    result = getattr(row, "result", None)
    return _head(row) | {
        "result": {name: getattr(result, name) for name in LISTED} if result is not None else None
    }


def _query_shown(row: EvaluatedQuery) -> dict[str, Any]:
    return {
        "group_id": row.group_id,
        "split": row.split,
        "receipt_ids": [str(receipt) for receipt in row.receipt_ids],
        "baseline_pairwise_accuracy": row.baseline_pairwise_accuracy,
        "candidate_pairwise_accuracy": row.candidate_pairwise_accuracy,
        "baseline_judged_ndcg": row.baseline_judged_ndcg,
        "candidate_judged_ndcg": row.candidate_judged_ndcg,
    }
