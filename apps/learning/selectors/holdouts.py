"""Reads of holdouts, in the session of their principal."""

import json
from typing import Any
from uuid import UUID

from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.learning.exceptions import UnknownHoldout
from apps.learning.models import Holdout, HoldoutPair, HoldoutResult
from apps.learning.requests import HoldoutsQuery, PageQuery
from apps.learning.selectors.evaluations import ORDER, run_shown

LISTED = (
    "decision",
    "failed_gates",
    "query_groups",
    "baseline_ndcg",
    "candidate_ndcg",
    "ndcg_gain",
    "interval_low",
    "interval_high",
    "recall_gain",
    "mrr_gain",
    "regression_fraction",
    "manifest_sha256",
    "checksum",
)
METRICS = (
    "baseline_recall",
    "candidate_recall",
    "baseline_ndcg",
    "candidate_ndcg",
    "baseline_mrr",
    "candidate_mrr",
)


def holdout_of(holdout_id: UUID) -> Holdout:
    """A holdout of the session's principal, with its result where it has one. Raises UnknownHoldout."""
    found = (
        Holdout.objects.filter(principal_id=current_principal().principal_id, pk=holdout_id)
        .select_related("result")
        .defer("result__report", "trials")
        .first()
    )
    if found is None:
        raise UnknownHoldout
    return found


def holdout_shown(holdout_id: UUID, *, full: bool = False) -> dict[str, Any]:
    """One holdout with the summary of its report, or with all of it."""
    found = holdout_of(holdout_id)
    result = getattr(found, "result", None)
    if result is None:
        return _head(found) | {"report": None, "report_sha256": None}
    text = _report(found) if full else result.summary
    return _head(found) | {"report": json.loads(text), "report_sha256": result.checksum}


def holdouts_page(query: HoldoutsQuery) -> dict[str, Any]:
    """A page of the caller's holdouts, newest first."""
    owner = current_principal().principal_id
    rows = Holdout.objects.filter(principal_id=owner).select_related("result")
    if query.status is not None:
        rows = rows.filter(status=query.status)
    if query.evaluation is not None:
        rows = rows.filter(evaluation_id=query.evaluation)
    page = KeysetPage.of(
        rows.defer("trials", "result__report", "result__summary"),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="holdouts",
        order=ORDER,
        filters=query.model_dump(mode="json", include={"status", "evaluation"}),
    )
    return {"holdouts": [_listed(row) for row in page.items], "next_cursor": page.next_cursor}


def holdout_pairs_page(holdout_id: UUID, query: PageQuery) -> dict[str, Any]:
    """A page of the pairs of a holdout, in the order of the set. Raises UnknownHoldout."""
    found = holdout_of(holdout_id)
    page = KeysetPage.of(
        HoldoutPair.objects.filter(holdout_id=found.pk),
        limit=query.limit,
        cursor=query.cursor,
        owner=found.principal_id,
        listing="holdout_pairs",
        order=("position",),
        filters={"holdout": str(found.pk)},
    )
    return {"queries": [_pair_shown(row) for row in page.items], "next_cursor": page.next_cursor}


def _head(found: Holdout) -> dict[str, Any]:
    return run_shown(found) | {
        "holdout_id": str(found.pk),
        "evaluation_id": str(found.evaluation_id),
        "query_set_id": str(found.query_set_id) if found.query_set_id else None,
        "limit": found.limit,
        "baseline_multipliers": found.baseline_multipliers,
        "candidate_multipliers": found.candidate_multipliers,
    }


def _report(found: Holdout) -> str:
    return str(HoldoutResult.objects.values_list("report", flat=True).get(holdout_id=found.pk))


def _listed(row: Holdout) -> dict[str, Any]:
    result = getattr(row, "result", None)
    return _head(row) | {
        "result": {name: getattr(result, name) for name in LISTED} if result is not None else None
    }


def _pair_shown(row: HoldoutPair) -> dict[str, Any]:
    return {
        "query": row.query_name or None,
        "group_id": row.group_id,
        "slices": row.slices,
        "baseline_receipt_id": row.baseline_request_id,
        "candidate_receipt_id": row.candidate_request_id,
    } | {name: getattr(row, name) for name in METRICS}
