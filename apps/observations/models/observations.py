"""A record of a served search, its text where one may be kept, and feedback on its hits."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import API, OWN, STAFF, CustomPolicy, granted
from apps.core.models import Declared, OwnedModel

# `statement_timestamp`, so that a long transaction does not keep expired rows readable.
LIVING = (
    "record_expires_at > statement_timestamp() "
    "AND observed_at > statement_timestamp() - interval '2160 hours'"
)
TEXT_LIVING = (
    "text_expires_at > statement_timestamp() AND observed_at > statement_timestamp() - interval '2160 hours'"
)
NOT_AHEAD = "observed_at <= statement_timestamp() + interval '5 minutes'"
VISIBLE_PARENT = (
    "EXISTS (SELECT FROM public.observations_observation o "
    "WHERE o.principal_id = observations_observation_feedback.principal_id "
    "AND o.id = observations_observation_feedback.observation_id)"
)
MINE = f"principal_id = {OWN}"


class Corpus(models.TextChoices):
    SHARED = "shared"
    PRIVATE = "private"


class Disposition(models.TextChoices):
    """What became of the query's text; a retained one reads `expired` once it is gone."""

    PRIVATE = "private"
    DISABLED = "disabled"
    FILTERED = "filtered"
    RETAINED = "retained"


class Observation(OwnedModel):
    """One served search of an enrolled principal, without its text."""

    trace: Any = models.ForeignKey(
        "traces.Trace",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    corpus = models.CharField(max_length=8, choices=Corpus.choices)
    observed_at = models.DateTimeField()
    record_expires_at = models.DateTimeField(help_text="From here on nobody reads it.")
    query_fingerprint = models.CharField(max_length=64, db_collation="C")
    fingerprint_key_id = models.CharField(max_length=32)
    fingerprint_version = models.CharField(max_length=32)
    text_disposition = models.CharField(max_length=8, choices=Disposition.choices)
    release = models.CharField(max_length=200, null=True, help_text="Build id of the process that served it.")
    ranking_profile_id = models.UUIDField(null=True)
    purpose = models.CharField(max_length=64)
    consent_version = models.CharField(max_length=64)
    snapshot: Any = models.JSONField(help_text="Ids, ranks and hashes of what was returned; no text.")

    row_policy = CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {LIVING}", f"({MINE}) AND {LIVING} AND {NOT_AHEAD}"),
            ("staff", "SELECT", STAFF, f"({granted('view_traces')}) AND {LIVING}", None),
        ),
        allow={API: "ra", STAFF: "r"},
    )
    raw_text: ClassVar[tuple[str, ...]] = ("query_fingerprint",)
    retention: ClassVar[str] = "observation: 2160 hours at most"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "trace_id",
        "corpus",
        "observed_at",
        "record_expires_at",
        "text_disposition",
        "purpose",
        "consent_version",
        "snapshot",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(
                fields=["principal", "id", "observed_at", "text_disposition"],
                name="observations_observation_text_key",
            ),
            models.CheckConstraint(
                name="observations_observation_corpus", condition=Q(corpus__in=Corpus.values)
            ),
            models.CheckConstraint(
                name="observations_observation_disposition",
                condition=Q(text_disposition__in=Disposition.values),
            ),
            models.CheckConstraint(
                name="observations_observation_private",
                condition=~Q(corpus="private") | Q(text_disposition="private"),
            ),
            models.CheckConstraint(
                name="observations_observation_fingerprint",
                condition=Q(query_fingerprint__regex=r"^[0-9a-f]{64}$"),
            ),
        ]
        indexes = [
            models.Index(fields=["record_expires_at"], name="observations_expiry"),
            models.Index(fields=["workspace", "record_expires_at"], name="observations_last_record"),
            models.Index(
                F("principal"), F("observed_at").desc(), F("id").desc(), name="observations_history"
            ),
            models.Index(
                F("workspace"), F("observed_at").desc(), F("id").desc(), name="observations_explorer"
            ),
            models.Index(
                fields=["principal", "trace"],
                name="observations_trace",
                condition=Q(trace__isnull=False),
            ),
        ]


class ObservationText(Declared):
    """The query of an observation. Deleting the row is the scrub; the observation is never rewritten."""

    observation: Any = models.OneToOneField(
        Observation,
        primary_key=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="text",
    )
    workspace: Any = models.ForeignKey(
        "accounts.Workspace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    principal: Any = models.ForeignKey(
        "accounts.Principal",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    observed_at = models.DateTimeField()
    text_disposition = models.CharField(max_length=8, default=Disposition.RETAINED)
    query_text = models.TextField()
    text_expires_at = models.DateTimeField()

    row_policy = CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {TEXT_LIVING}", f"({MINE}) AND {TEXT_LIVING} AND {NOT_AHEAD}"),
        ),
        allow={API: "ra"},
    )
    raw_text: ClassVar[tuple[str, ...]] = ("query_text",)
    retention: ClassVar[str] = "observation text: 90 days of 24 hours at most"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = ("observation_id", "query_text", "text_expires_at")

    class Meta:
        db_table = "observations_observation_text"
        constraints = [
            models.CheckConstraint(
                name="observations_observation_text_retained", condition=Q(text_disposition="retained")
            ),
        ]
        indexes = [
            models.Index(fields=["text_expires_at"], name="observations_text_expiry"),
            models.Index(fields=["workspace", "text_expires_at"], name="observations_last_text"),
        ]


class ObservationFeedback(OwnedModel):
    """What a principal says of one hit of its observation. It lives and dies with the observation."""

    observation: Any = models.ForeignKey(
        Observation, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="feedback"
    )
    hit_id = models.UUIDField()
    helpful = models.BooleanField()
    cited = models.BooleanField(null=True, help_text="Null: unknown.")
    withdrawn_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    row_policy = CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {VISIBLE_PARENT}", f"({MINE}) AND {VISIBLE_PARENT}"),
            ("staff", "SELECT", STAFF, f"({granted('view_traces')}) AND {VISIBLE_PARENT}", None),
        ),
        allow={API: "raw", STAFF: "r"},
    )
    retention: ClassVar[str] = "observation: 2160 hours at most"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "observation_id",
        "hit_id",
        "helpful",
        "cited",
        "withdrawn_at",
        "created_at",
        "updated_at",
    )

    class Meta(OwnedModel.Meta):
        db_table = "observations_observation_feedback"
        constraints = [
            models.UniqueConstraint(
                fields=["principal", "id"], name="observations_observation_feedback_owner_key"
            ),
            models.UniqueConstraint(
                fields=["principal", "observation", "hit_id"], name="observations_observation_feedback_once"
            ),
        ]
