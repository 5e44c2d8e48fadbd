"""The native retrieval receipt.

The law: a receipt is never changed. It goes with its trace, by the functions that delete traces, or with its
principal. A record that stands on a receipt (a judgment, a citation set, an evaluation) keeps it past its trace's
time by a `ReceiptKeeper`; then it is seen like a receipt of its own, and goes with the last record. An erased
trace takes its receipt along whatever keeps it, and those records with it.

Who adds a sort of record that keeps receipts writes a keeper for each (`keeping.keep_receipts`, in the record's
transaction) and lets an AFTER DELETE trigger of the record's table call `retrieval_let_go(records)`; nothing here
changes.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.retrieval.schemas import MAX_LIMIT

# A receipt without a trace (of a holdout) is its own; that of a trace is seen as long as the trace is, or kept.
VISIBLE = (
    "trace_id IS NULL OR EXISTS (SELECT FROM public.traces_trace t "
    "WHERE t.principal_id = retrieval_receipt.principal_id AND t.id = retrieval_receipt.trace_id) "
    "OR EXISTS (SELECT FROM public.retrieval_receipt_keeper k "
    "WHERE k.principal_id = retrieval_receipt.principal_id AND k.receipt_id = retrieval_receipt.id)"
)


class Receipt(OwnedModel):
    """How an answer was scored: a canonical document with its checksum, and its numbers as arrays.

    The arrays are described in `receipts.arrays`; they say what the document says.
    """

    trace: Any = models.ForeignKey(
        "traces.Trace", null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    recorded_at = models.DateTimeField()
    mode = models.CharField(max_length=8)
    contract = models.CharField(max_length=32, help_text="Scorer contract version.")
    formula = models.CharField(max_length=16)
    policy_id = models.UUIDField(null=True, help_text="The stored policy of kind scoring that ruled.")
    scopes = ArrayField(models.CharField(max_length=64), null=True, help_text="Null = all.")
    query_identity = models.CharField(max_length=64, db_collation="C")
    profile_id = models.UUIDField(null=True)
    profile_status = models.CharField(max_length=16)
    document = models.TextField(
        db_collation="C", help_text="RFC 8785; never changed, not even in white space."
    )
    checksum = models.CharField(max_length=64, db_collation="C", help_text="SHA-256 of the document.")
    node_ids = ArrayField(models.UUIDField())
    scores = ArrayField(models.FloatField())
    features = ArrayField(models.FloatField())
    raw = ArrayField(models.FloatField(null=True))
    channels = ArrayField(models.SmallIntegerField())
    weight_rows = ArrayField(models.SmallIntegerField())
    weights = ArrayField(models.FloatField())
    step_rows = ArrayField(models.SmallIntegerField())
    step_kinds = ArrayField(models.CharField(max_length=16))
    step_values = ArrayField(models.FloatField())

    row_policy = OwnerPolicy(staff="view_traces", append_only=True, visible=VISIBLE)
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "trace_id",
        "recorded_at",
        "mode",
        "profile_id",
        "profile_status",
        "document",
        "checksum",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.CheckConstraint(
                name="retrieval_receipt_mode", condition=Q(mode__in=["search", "context"])
            ),
            models.CheckConstraint(
                name="retrieval_receipt_checksum", condition=Q(checksum__regex=r"^[0-9a-f]{64}$")
            ),
            models.CheckConstraint(
                name="retrieval_receipt_profile",
                condition=Q(profile_status__in=["none", "applied", "inapplicable", "request_override"]),
            ),
            models.CheckConstraint(
                name="retrieval_receipt_candidates",
                condition=Q(node_ids__len__lte=MAX_LIMIT, scores__len__lte=MAX_LIMIT),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"), F("recorded_at").desc(), F("id").desc(), name="retrieval_receipt_history"
            ),
            models.Index(F("workspace"), F("recorded_at"), F("id"), name="retrieval_receipt_sample"),
            models.Index(
                fields=["principal", "trace"],
                name="retrieval_receipt_of_trace",
                condition=Q(trace__isnull=False),
            ),
        ]


class ReceiptKeeper(OwnedModel):
    """A record that stands on a receipt, which therefore stays when its trace's time is over."""

    receipt: Any = models.ForeignKey(
        Receipt, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="keepers"
    )
    kind = models.CharField(max_length=32, help_text="The record's model, as in `feedback.judgment`.")
    record_id = models.UUIDField(help_text="No key: the tables of records are others' own.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the record"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = ("receipt_id", "kind", "record_id")

    class Meta(OwnedModel.Meta):
        db_table = "retrieval_receipt_keeper"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="retrieval_receipt_keeper_owner_key"),
            models.UniqueConstraint(
                fields=["principal", "receipt", "record_id"], name="retrieval_receipt_keeper_once"
            ),
        ]
        indexes = [models.Index(fields=["record_id"], name="retrieval_receipt_keeper_of")]
