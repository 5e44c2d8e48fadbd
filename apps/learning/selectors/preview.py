"""What an activation would touch: how many receipts a day, and how recent ones would be ordered.

Replayed from the receipts alone: no search is run, and no words of a query are read. It speaks of the rows that
were returned; what a profile would bring in from below the cut is not in a receipt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.learning.models import RankingProfile
from apps.learning.scorer import FloatArray, applied_weights
from apps.learning.selectors.active import resolve_key
from apps.learning.selectors.profiles import profile_of
from apps.retrieval.models import Receipt
from apps.retrieval.policy import FEATURES, in_force
from apps.retrieval.receipts.columns import ReceiptColumns, load_columns

DAYS = 7
SHOWN = 5
MOST_COUNTED = 10_000
"""Receipts beyond are neither counted nor looked at; the rate is then at least what is said."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A receipt's rows in their order under what is active now, and under the profile."""

    receipt_id: UUID
    now: tuple[UUID, ...]
    then: tuple[UUID, ...]

    @property
    def moved(self) -> int:
        return sum(before != after for before, after in zip(self.now, self.then, strict=True))


@dataclass(frozen=True, slots=True)
class ActivationPreview:
    """`receipts` of the profile's exact scope set in the last `days`, and the newest one of each of the queries asked
    last, newest first.
    """

    profile_id: UUID
    days: int
    receipts: int
    orders: tuple[Reordered, ...]
    times: tuple[str, ...]

    def shown(self) -> dict[str, Any]:
        return {
            "profile_id": str(self.profile_id),
            "days": self.days,
            "receipts": self.receipts,
            "receipts_a_day": round(self.receipts / self.days, 1),
            "orders": [
                {
                    "receipt_id": str(order.receipt_id),
                    "timestamp": at,
                    "now": [str(node) for node in order.now],
                    "then": [str(node) for node in order.then],
                    "moved": order.moved,
                }
                for order, at in zip(self.orders, self.times, strict=True)
            ],
        }


def preview_activation(profile_id: UUID) -> ActivationPreview:
    """What activating a profile would do, in the session of its principal. Raises UnknownProfile."""
    return preview_move(profile_id, to=profile_id)


def preview_move(profile_id: UUID, *, to: UUID | None) -> ActivationPreview:
    """What taking the pointer of a profile to another one, or (None) to base, would do to its scope set.

    In the session of their principal. Raises UnknownProfile.
    """
    profile = profile_of(profile_id)
    target = profile_of(to) if to is not None else None
    recent = _recent(profile)
    newest = list(_newest_by_query(recent).values_list("id", "recorded_at")[:SHOWN])
    now = resolve_key(profile.scope_key, in_force(profile.workspace_id)).multipliers or {}
    orders = {
        order.receipt_id: order
        for order in reordered(
            load_columns([receipt_id for receipt_id, _ in newest]),
            now=_vector([now.get(name, 1.0) for name in FEATURES]),
            then=_vector(target.multipliers if target else [1.0] * len(FEATURES)),
        )
    }
    return ActivationPreview(
        profile_id=profile.pk,
        days=DAYS,
        receipts=recent.order_by()[:MOST_COUNTED].count(),
        orders=tuple(orders[receipt_id] for receipt_id, _ in newest),
        times=tuple(clock.iso(at) for _, at in newest),
    )


def reordered(columns: ReceiptColumns, *, now: FloatArray, then: FloatArray) -> list[Reordered]:
    """Orders of all receipts under two vectors of multipliers (6,), from base weights."""
    scores = [_scores(columns, multipliers) for multipliers in (now, then)]
    found = []
    for index, receipt_id in enumerate(columns.ids):
        rows = slice(int(columns.offsets[index]), int(columns.offsets[index + 1]))
        orders = (_order(columns, rows, values[rows]) for values in scores)
        found.append(Reordered(receipt_id, *orders))
    return found


def _scores(columns: ReceiptColumns, multipliers: FloatArray) -> FloatArray:
    return replace(columns, applied=applied_weights(columns.base, multipliers)).replayed()


def _order(columns: ReceiptColumns, rows: slice, scores: FloatArray) -> tuple[UUID, ...]:
    """Node ids best first, by the tie rules of a receipt."""
    halves = columns.node_ids[rows]
    paths, later = columns.tie_path()[rows], ~columns.reranked()[rows]
    ranked = np.lexsort((halves[:, 1], halves[:, 0], -paths, -scores, later))
    return tuple(UUID(int=(int(high) << 64) | int(low)) for high, low in halves[ranked])


def _recent(profile: RankingProfile) -> QuerySet[Receipt]:
    """Receipts of searches of exactly the scope set, of the formula that the profile is for."""
    receipts = Receipt.objects.filter(
        principal_id=current_principal().principal_id,
        recorded_at__gte=clock.now() - timedelta(days=DAYS),
        formula=profile.formula,
        trace_id__isnull=False,
    )
    if profile.scopes is None:
        return receipts.filter(scopes__isnull=True)
    return receipts.filter(scopes=profile.scopes)


def _newest_by_query(recent: Any) -> Any:
    """One receipt a query, the newest first: a query that is asked every minute would hide all others."""
    latest = recent.order_by("-recorded_at", "-id").values("id")[:MOST_COUNTED]
    order = (F("recorded_at").desc(), F("id").desc())
    place = Window(RowNumber(), partition_by="query_identity", order_by=order)
    return Receipt.objects.filter(id__in=latest).annotate(place=place).filter(place=1).order_by(*order)


def _vector(values: Sequence[float]) -> FloatArray:
    return np.array(values, dtype=np.float64)
