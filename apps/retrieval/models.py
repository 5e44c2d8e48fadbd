"""Receipts: the native ones, and those that PRME wrote and somebody imported.

The law: a receipt is never changed. It goes with its trace, by the functions that delete traces, or with its
principal. A record that stands on a receipt (a judgment, a citation set, an evaluation) keeps it past its trace's
time by a `ReceiptKeeper`; then it is seen like a receipt of its own, and goes with the last record. An erased
trace takes its receipt along whatever keeps it, and those records with it.

Who adds a sort of record that keeps receipts writes a keeper for each (`keeping.keep_receipts`, in the record's
transaction) and lets an AFTER DELETE trigger of the record's table call `retrieval_let_go(records)`; nothing here
changes.

An imported receipt holds the words of a query. It is hidden from `expires_at` on and goes by `retrieval_expire_prme`
alone, with the label records that name it; a hold stops the deletion, not the hiding.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy, granted
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


ALIVE = "expires_at > statement_timestamp()"
PRME_HOLD = "retrieval.prmereceipt"
# As with traces: past its time a held one is seen by those who review retention.
HELD = (
    f"({granted('review_retention')}) AND "
    f"public.operations_held(ARRAY['{PRME_HOLD}', 'traces.principal'], ARRAY[id, principal_id])"
)
OF_VISIBLE_RECEIPT = (
    "EXISTS (SELECT FROM public.retrieval_prme_receipt r "
    "WHERE r.principal_id = retrieval_prme_label.principal_id AND r.id = retrieval_prme_label.receipt_id)"
)


class PrmeReceipt(OwnedModel):
    """A receipt that PRME wrote, byte for byte; verified and, from version 2 on, replayed before it was stored."""

    request_id = models.UUIDField(help_text="PRME's id, of any bit pattern; label records name it.")
    imported_at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="From here on nobody reads it.")
    reference_time = models.DateTimeField(help_text="The time that the request was answered for.")
    schema_version = models.SmallIntegerField()
    formula = models.CharField(max_length=16, help_text="`none` cannot be replayed.")
    scopes = ArrayField(models.CharField(max_length=64), null=True, help_text="Null = unfiltered.")
    query_identity = models.CharField(max_length=64, db_collation="C")
    candidate_count = models.IntegerField()
    document = models.TextField(db_collation="C", help_text="UTF-8, exactly as it came.")
    checksum = models.CharField(max_length=64, db_collation="C", help_text="SHA-256 of the document.")

    row_policy = OwnerPolicy(
        staff="view_traces", append_only=True, visible=ALIVE, staff_visible=f"({ALIVE}) OR ({HELD})"
    )
    raw_text: ClassVar[tuple[str, ...]] = ("document",)
    retention: ClassVar[str] = "the days of the gate policy from its import, 730 by default"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "request_id",
        "imported_at",
        "expires_at",
        "reference_time",
        "schema_version",
        "formula",
        "scopes",
        "candidate_count",
        "document",
        "checksum",
    )

    class Meta(OwnedModel.Meta):
        db_table = "retrieval_prme_receipt"
        verbose_name = "imported receipt"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="retrieval_prme_receipt_owner_key"),
            models.UniqueConstraint(
                fields=["principal", "request_id"], name="retrieval_prme_receipt_request"
            ),
            models.CheckConstraint(
                name="retrieval_prme_receipt_checksum", condition=Q(checksum__regex=r"^[0-9a-f]{64}$")
            ),
            models.CheckConstraint(
                name="retrieval_prme_receipt_formula",
                condition=Q(formula__in=["none", "weighted", "rank_fusion"]),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"), F("imported_at").desc(), F("id").desc(), name="retrieval_prme_history"
            ),
            models.Index(
                F("workspace"), F("imported_at").desc(), F("id").desc(), name="retrieval_prme_explorer"
            ),
            models.Index(fields=["expires_at"], name="retrieval_prme_expiry"),
        ]

    @property
    def can_replay(self) -> bool:
        return self.formula != "none"


class PrmeLabelRecord(OwnedModel):
    """Explicit labels on an imported receipt, as PRME's record says them."""

    receipt: Any = models.ForeignKey(
        PrmeReceipt, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="labels"
    )
    feedback_id = models.UUIDField(help_text="PRME's id, of any bit pattern.")
    imported_at = models.DateTimeField()
    surface = models.CharField(max_length=8)
    label_count = models.IntegerField()
    document = models.TextField(db_collation="C", help_text="UTF-8, exactly as it came.")
    content_sha256 = models.CharField(
        max_length=64, db_collation="C", help_text="Of what it says; two spellings of one record are one."
    )

    row_policy = OwnerPolicy(staff="view_traces", append_only=True, visible=OF_VISIBLE_RECEIPT)
    raw_text: ClassVar[tuple[str, ...]] = ("document",)
    retention: ClassVar[str] = "as long as its receipt"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "receipt_id",
        "feedback_id",
        "imported_at",
        "surface",
        "label_count",
        "document",
    )

    class Meta(OwnedModel.Meta):
        db_table = "retrieval_prme_label"
        verbose_name = "imported label record"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="retrieval_prme_label_owner_key"),
            models.UniqueConstraint(
                fields=["principal", "feedback_id"], name="retrieval_prme_label_feedback"
            ),
            models.CheckConstraint(
                name="retrieval_prme_label_surface", condition=Q(surface__in=["results", "context"])
            ),
        ]
        indexes = [models.Index(fields=["principal", "receipt"], name="retrieval_prme_label_receipt")]
