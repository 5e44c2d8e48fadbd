"""The feedback memory: traces, the sources they returned, the paths walked, uses and activation.

The law of this module: a trace, its sources and paths and the answers to mutating calls are never changed by a
runtime role; they go by the definer functions of `sql` alone, all together. Retrieval is not use, use is not
confirmation.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy, granted
from apps.core.models import OwnedModel

MAX_SOURCES = 300
MAX_PATHS = 4
MAX_STEPS = 2
STAGES = ("retrieved", "selected", "validated", "used")
SELECTED, VALIDATED, USED = 1, 2, 3

ALIVE = "expires_at > statement_timestamp()"
# A hold stops deletion, not hiding: past its time a held trace is seen by those who review retention.
HELD = (
    f"({granted('review_retention')}) AND "
    "public.operations_held(ARRAY['traces.trace', 'traces.principal'], ARRAY[id, principal_id])"
)


def of_visible_trace(table: str) -> str:
    """SQL: the trace of the row is visible to whoever asks, by the trace's own policy."""
    return (
        "EXISTS (SELECT FROM public.traces_trace t "
        f"WHERE t.principal_id = {table}.principal_id AND t.id = {table}.trace_id)"
    )


class Mode(models.TextChoices):
    SEARCH = "search"
    SCAN = "scan"
    FETCH = "fetch"
    CONTEXT = "context"


class Trace(OwnedModel):
    """One successful retrieval as it was answered."""

    recorded_at = models.DateTimeField()
    mode = models.CharField(max_length=8, choices=Mode.choices)
    query = models.TextField(
        null=True, help_text="Its only home; null where the filter refuses it or erased."
    )
    request = models.JSONField(help_text="Every field of the request but the query.")
    settings = models.JSONField(help_text="Effective window, fusion, truncation flags, counts a channel.")
    recording = models.JSONField(default=dict, help_text="What was recorded and what was not, by position.")
    scopes = ArrayField(
        models.CharField(max_length=64), null=True, help_text="Null = all of the principal's."
    )
    source_count = models.SmallIntegerField()
    policy_id = models.UUIDField(help_text="The stored policy of kind memory that ruled.")
    retrieval_receipt_id = models.UUIDField(null=True)
    profile_id = models.UUIDField(null=True)
    latency_ms = models.IntegerField(help_text="Milliseconds from the call to the saving of the trace.")
    context_tokens = models.IntegerField(null=True)
    query_erased_at = models.DateTimeField(null=True)
    retention_class = models.CharField(max_length=32, default="trace")
    expires_at = models.DateTimeField(
        help_text="From here on nobody reads it, whether or not it is deleted yet."
    )

    row_policy = OwnerPolicy(
        staff="view_traces", append_only=True, visible=ALIVE, staff_visible=f"({ALIVE}) OR ({HELD})"
    )
    raw_text: ClassVar[tuple[str, ...]] = ("query",)
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "recorded_at",
        "mode",
        "query",
        "request",
        "settings",
        "recording",
        "scopes",
        "source_count",
        "retrieval_receipt_id",
        "profile_id",
        "latency_ms",
        "query_erased_at",
        "retention_class",
        "expires_at",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.CheckConstraint(name="traces_trace_mode", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(
                name="traces_trace_source_count",
                condition=Q(source_count__gte=0, source_count__lte=MAX_SOURCES),
            ),
            models.CheckConstraint(
                name="traces_trace_scopes",
                condition=Q(scopes__isnull=True) | Q(scopes__len__gte=1, scopes__len__lte=16),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"), F("recorded_at").desc(), F("id").desc(), name="traces_trace_history"
            ),
            models.Index(
                F("workspace"), F("recorded_at").desc(), F("id").desc(), name="traces_trace_explorer"
            ),
            models.Index(fields=["expires_at"], name="traces_trace_expiry"),
            models.Index(
                fields=["workspace", "recorded_at"],
                name="traces_trace_text",
                condition=Q(query__isnull=False),
            ),
        ]


class TraceSource(OwnedModel):
    """One source version that a trace returned, however many rows showed it."""

    trace: Any = models.ForeignKey(
        Trace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="sources"
    )
    position = models.SmallIntegerField()
    source_id = models.CharField(max_length=66, db_collation="C")
    repo = models.CharField(max_length=256)
    type = models.CharField(max_length=32)
    identity = models.JSONField()
    version = models.CharField(max_length=256)
    content_source = models.CharField(max_length=16)
    index_updated_at = models.CharField(
        max_length=256, null=True, help_text="Of a live body: the index's own version, never hashed."
    )
    node_id = models.UUIDField(null=True, help_text="No key: the node may be gone.")
    axes = ArrayField(models.CharField(max_length=8))
    rank = models.SmallIntegerField(null=True)
    graph_rank = models.SmallIntegerField(null=True)
    hop = models.SmallIntegerField(null=True)
    score = models.FloatField(null=True)
    components = models.JSONField(default=dict)
    location = models.CharField(max_length=64)
    folded_under = models.SmallIntegerField(null=True)

    row_policy = OwnerPolicy(staff="view_traces", append_only=True, visible=of_visible_trace("traces_source"))
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "trace_id",
        "position",
        "source_id",
        "repo",
        "type",
        "identity",
        "version",
        "content_source",
        "axes",
        "rank",
        "score",
        "location",
    )

    class Meta(OwnedModel.Meta):
        db_table = "traces_source"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="traces_source_owner_key"),
            models.UniqueConstraint(fields=["principal", "trace", "source_id"], name="traces_source_once"),
            models.UniqueConstraint(fields=["trace", "position"], name="traces_source_position"),
            models.CheckConstraint(
                name="traces_source_source_id", condition=Q(source_id__regex=r"^s:[0-9a-f]{64}$")
            ),
            models.CheckConstraint(
                name="traces_source_axes",
                condition=Q(axes__len__gte=1) & Q(axes__contained_by=["keyword", "graph"]),
            ),
            models.CheckConstraint(
                name="traces_source_place", condition=Q(position__gte=0, position__lt=MAX_SOURCES)
            ),
        ]
        indexes = [models.Index(fields=["principal", "source_id"], name="traces_source_seen")]


class PathEdge(OwnedModel):
    """One step of a verified path by which a graph row was reached; the mention in its own direction."""

    source_row: Any = models.ForeignKey(
        TraceSource,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="path_edges",
    )
    path_no = models.SmallIntegerField()
    step = models.SmallIntegerField()
    repo = models.CharField(max_length=256)
    src_slug = models.CharField(max_length=256)
    dst_slug = models.CharField(max_length=256)
    kind = models.CharField(max_length=32)
    edge_key = models.TextField(
        db_collation="C", help_text="Canonical JSON array [repo, src_slug, dst_slug, kind]."
    )

    row_policy = OwnerPolicy(
        staff="view_traces",
        append_only=True,
        visible=(
            "EXISTS (SELECT FROM public.traces_source s "
            "WHERE s.principal_id = traces_path_edge.principal_id AND s.id = traces_path_edge.source_row_id)"
        ),
    )
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = ("source_row_id", "path_no", "step", "edge_key")

    class Meta(OwnedModel.Meta):
        db_table = "traces_path_edge"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="traces_path_edge_owner_key"),
            models.UniqueConstraint(fields=["source_row", "path_no", "step"], name="traces_path_edge_step"),
            models.CheckConstraint(
                name="traces_path_edge_bounds",
                condition=Q(path_no__gte=0, path_no__lt=MAX_PATHS, step__gte=0, step__lt=MAX_STEPS),
            ),
        ]
        indexes = [models.Index(fields=["principal", "edge_key"], name="traces_path_edge_key")]


def _stage_times(stage: int) -> Q:
    """Exactly as many times are set as the stage says, in the ladder's order."""
    columns = ("selected_at", "validated_at", "used_at")
    return Q(stage=stage, **{f"{name}__isnull": number >= stage for number, name in enumerate(columns)})


class Use(OwnedModel):
    """The stage that a source reached for a trace. Without a row it was only retrieved."""

    trace: Any = models.ForeignKey(
        Trace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="uses"
    )
    source_id = models.CharField(max_length=66, db_collation="C")
    stage = models.SmallIntegerField()
    selected_at = models.DateTimeField()
    validated_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True)

    row_policy = OwnerPolicy(staff="view_traces", visible=of_visible_trace("traces_use"))
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "trace_id",
        "source_id",
        "stage",
        "selected_at",
        "validated_at",
        "used_at",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "trace", "source_id"], name="traces_use_once"),
            models.CheckConstraint(
                name="traces_use_stage",
                condition=_stage_times(SELECTED) | _stage_times(VALIDATED) | _stage_times(USED),
            ),
        ]


class Activation(OwnedModel):
    """Decaying interest of a principal in a source version, as of `updated_at`. Shown; it ranks nothing."""

    source_id = models.CharField(max_length=66, db_collation="C")
    retrieved = models.FloatField()
    usage = models.FloatField()
    updated_at = models.DateTimeField()

    row_policy = OwnerPolicy(staff="view_traces")
    retention: ClassVar[str] = "activation"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = ("source_id", "retrieved", "usage", "updated_at")

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "source_id"], name="traces_activation_source"),
            # NaN is greater than any number to PostgreSQL, so the upper bound refuses it.
            models.CheckConstraint(
                name="traces_activation_bounds",
                condition=Q(retrieved__gte=0, retrieved__lte=10, usage__gte=0, usage__lte=10),
            ),
        ]
        indexes = [models.Index(fields=["updated_at"], name="traces_activation_age")]


class ReceiptKind(models.TextChoices):
    USE = "use"
    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    ROLLED_BACK = "rolled_back"


class Actor(models.TextChoices):
    PRINCIPAL = "principal"
    STAFF = "staff"


class ActionReceipt(OwnedModel):
    """The stored answer to a mutating call about a trace, from which a replay is rendered byte for byte."""

    trace: Any = models.ForeignKey(
        Trace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="receipts"
    )
    kind = models.CharField(max_length=12, choices=ReceiptKind.choices)
    recorded_at = models.DateTimeField()
    actor = models.CharField(max_length=12, choices=Actor.choices)
    reason = models.TextField(null=True)
    confirmation: Any = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="reversals",
    )
    non_applied_reason = models.CharField(max_length=32, null=True)
    policy_id = models.UUIDField(help_text="The stored policy of kind memory that ruled.")
    body = models.TextField(help_text="Canonical JSON of the answer without its reason.")

    row_policy = OwnerPolicy(
        staff="view_traces", append_only=True, visible=of_visible_trace("traces_action_receipt")
    )
    raw_text: ClassVar[tuple[str, ...]] = ("reason",)
    retention: ClassVar[str] = "trace"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "trace_id",
        "kind",
        "recorded_at",
        "actor",
        "reason",
        "confirmation_id",
        "non_applied_reason",
        "body",
    )

    class Meta(OwnedModel.Meta):
        db_table = "traces_action_receipt"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="traces_action_receipt_owner_key"),
            models.CheckConstraint(
                name="traces_action_receipt_kind", condition=Q(kind__in=ReceiptKind.values)
            ),
            models.CheckConstraint(name="traces_action_receipt_actor", condition=Q(actor__in=Actor.values)),
            models.CheckConstraint(
                name="traces_action_receipt_reverses",
                condition=Q(kind__in=["corrected", "rolled_back"], confirmation__isnull=False)
                | Q(kind__in=["use", "confirmed"], confirmation__isnull=True),
            ),
        ]
        indexes = [
            models.Index(
                fields=["principal", "trace", "recorded_at", "id"], name="traces_action_receipt_audit"
            ),
            models.Index(
                fields=["principal", "confirmation"],
                name="traces_action_receipt_reversal",
                condition=Q(confirmation__isnull=False),
            ),
            models.Index(
                fields=["workspace", "recorded_at"],
                name="traces_action_receipt_text",
                condition=Q(reason__isnull=False),
            ),
        ]
