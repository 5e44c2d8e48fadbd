"""Outcomes: which traversed edges gained strength, and from which confirmations.

The law of this module: the strength of an edge is, at every time, the sum of its active credits, each decayed
from when it was given. Edge and credit carry the same time, so that decay keeps the sum. Strength is never a
relevance score and never changes a ranked row.
"""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from apps.core.db.rowpolicy import OwnerPolicy, Unowned
from apps.core.models import Declared, OwnedModel

MAX_DELTA = 0.25
MAX_STRENGTH = 5.0


class EdgeStrength(OwnedModel):
    """Learned strength of an unversioned edge, as of `updated_at`."""

    edge_key = models.TextField(
        db_collation="C", help_text="Canonical JSON array [repo, src_slug, dst_slug, kind]."
    )
    strength = models.FloatField()
    updated_at = models.DateTimeField()

    row_policy = OwnerPolicy(staff="view_traces")
    retention: ClassVar[str] = "edge_strength"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = ("edge_key", "strength", "updated_at")

    class Meta(OwnedModel.Meta):
        db_table = "feedback_edge_strength"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="feedback_edge_strength_owner_key"),
            models.UniqueConstraint(fields=["principal", "edge_key"], name="feedback_edge_strength_edge"),
            models.CheckConstraint(
                name="feedback_edge_strength_bounds",
                condition=Q(strength__gte=0, strength__lte=MAX_STRENGTH),
            ),
        ]


class Credit(OwnedModel):
    """What one trace lent to one edge. A trace lends to an edge once, whatever becomes of it."""

    trace: Any = models.ForeignKey(
        "traces.Trace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="credits",
    )
    edge_key = models.TextField(db_collation="C")
    receipt: Any = models.ForeignKey(
        "traces.ActionReceipt",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="credits",
    )
    delta = models.FloatField()
    credited_at = models.DateTimeField()
    active = models.BooleanField()
    reversed_by: Any = models.ForeignKey(
        "traces.ActionReceipt",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    reversed_at = models.DateTimeField(null=True)
    reversed_delta = models.FloatField(null=True)

    # Past the trace's time a credit still counts in the strength until both go, so it stays readable.
    row_policy = OwnerPolicy(staff="view_traces")
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "trace_id",
        "edge_key",
        "receipt_id",
        "delta",
        "credited_at",
        "active",
        "reversed_by_id",
        "reversed_at",
        "reversed_delta",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "trace", "edge_key"], name="feedback_credit_once"),
            models.CheckConstraint(
                name="feedback_credit_delta", condition=Q(delta__gte=0, delta__lte=MAX_DELTA)
            ),
            models.CheckConstraint(
                name="feedback_credit_active",
                condition=Q(active=True, reversed_by__isnull=True)
                | Q(active=False, reversed_by__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["principal", "receipt"], name="feedback_credit_receipt"),
            models.Index(fields=["principal", "edge_key"], name="feedback_credit_edge"),
            models.Index(
                fields=["principal", "edge_key"], name="feedback_credit_active_edge", condition=Q(active=True)
            ),
            # Who deletes an action receipt looks for the credits that it reversed.
            models.Index(
                fields=["principal", "reversed_by"],
                name="feedback_credit_reversed_by",
                condition=Q(reversed_by__isnull=False),
            ),
        ]


class LedgerRotation(Declared):
    """Where the verification of the ledger stands. One row, moved by the verifying function alone."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    after = models.UUIDField(null=True, help_text="The last edge that was looked at; null before a round.")
    drifted = models.BooleanField(default=False, help_text="Whether this round has found a drift.")

    row_policy = Unowned("a place in a rotation: an id, no content")
    retention: ClassVar[str] = "as long as the installation"
    erasure: ClassVar[str] = "keep: names no principal"

    class Meta:
        db_table = "feedback_ledger_rotation"
        constraints = [models.CheckConstraint(name="feedback_ledger_rotation_one", condition=Q(id=1))]
