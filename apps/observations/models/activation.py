"""Runs that switch collection of a workspace on and off, and the evidence that they rest on."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.core.db.rowpolicy import API, STAFF, WORKSPACE, CustomPolicy, granted
from apps.core.models import WorkspaceModel

OPERATES = granted("operate_collection")
DECIDES = granted("operate_collection", "review_retention")
WATCHES = granted("operate_collection", "review_retention", "audit")
HERE = f"workspace_id = {WORKSPACE}"
POSTED = ("A1", "A5", "B7", "B8", "B9")
"""What is measured elsewhere, by CI at the commit or in a disposable database, and posted from there."""
POSTABLE = "item IN ('A1', 'A5', 'B7', 'B8', 'B9') AND part = 'machine'"


class RunState(models.TextChoices):
    """How far a run is. Every step needs the one before, except that `stopping` may follow any that is on."""

    DRAFT = "draft"
    PROVISIONED = "provisioned"
    READY = "ready"
    APPROVED = "approved"
    ENABLED = "enabled"
    PILOT_VERIFIED = "pilot_verified"
    STOPPING = "stopping"
    SHUTDOWN_VERIFIED = "shutdown_verified"
    SHUTDOWN_UNVERIFIED = "shutdown_unverified"
    EMPTIED = "emptied"


ENDED = (RunState.SHUTDOWN_VERIFIED, RunState.EMPTIED)


class Part(models.TextChoices):
    """Who decides: the machine by a probe, a human by an attestation."""

    MACHINE = "machine"
    HUMAN = "human"


class Result(models.TextChoices):
    PASS = "pass"
    FAIL = "fail"


def _user() -> Any:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )


class ActivationRun(WorkspaceModel):
    """One activation of a workspace's collection, from the first evidence to the empty journal."""

    state = models.CharField(max_length=20, choices=RunState.choices, default=RunState.DRAFT)
    mode = models.CharField(max_length=16, help_text="The mode that enabling publishes.")
    opened_by = _user()
    opened_at = models.DateTimeField(db_default=Now())
    requested_by = _user()
    requested_at = models.DateTimeField(null=True)
    approval_hash = models.CharField(
        max_length=64, blank=True, help_text="Over all evidence, what it is bound to, and the policy seen."
    )
    policy_hash = models.CharField(
        max_length=64, blank=True, help_text="Version of the policy that was seen."
    )
    valid_until = models.DateTimeField(null=True)
    approved_by = _user()
    approved_at = models.DateTimeField(null=True)
    enabled_by = _user()
    enabled_at = models.DateTimeField(null=True)
    generation = models.PositiveIntegerField(null=True, help_text="Policy version that enabling published.")
    stopped_by = _user()
    stopped_at = models.DateTimeField(null=True)
    stopped_generation = models.PositiveIntegerField(null=True)
    fenced = models.BooleanField(
        default=False, db_default=False, help_text="The transaction that stopped held the fence exclusively."
    )

    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", API, HERE, None),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_open", "INSERT", STAFF, None, OPERATES),
            ("staff_decide", "UPDATE", STAFF, DECIDES, DECIDES),
        ),
        allow={API: "r", STAFF: "raw"},
    )
    retention: ClassVar[str] = "activation evidence: 1826 days"
    erasure: ClassVar[str] = "keep: staff, not principals"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "state",
        "mode",
        "opened_at",
        "requested_at",
        "approval_hash",
        "valid_until",
        "approved_at",
        "enabled_at",
        "generation",
        "stopped_at",
        "stopped_generation",
        "fenced",
    )

    class Meta:
        db_table = "observations_activation_run"
        verbose_name = "activation run"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"],
                condition=~Q(state__in=["shutdown_verified", "emptied"]),
                name="observations_activation_one",
            ),
            models.CheckConstraint(
                name="observations_activation_state", condition=Q(state__in=RunState.values)
            ),
            models.CheckConstraint(
                name="observations_activation_mode", condition=Q(mode__in=["hash", "platform-text"])
            ),
            models.CheckConstraint(
                name="observations_activation_four_eyes",
                condition=Q(approved_by__isnull=True) | ~Q(approved_by=F("requested_by")),
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-opened_at", "-id"], name="observations_activation_newest"),
            models.Index(fields=["opened_at"], name="observations_activation_age"),
        ]


class Evidence(WorkspaceModel):
    """One result for one item of a run. Append-only: a newer row names the one that it supersedes."""

    run = models.ForeignKey(ActivationRun, on_delete=models.PROTECT, related_name="evidence", db_index=False)
    item = models.CharField(max_length=3)
    part = models.CharField(max_length=8, choices=Part.choices)
    object_type = models.CharField(max_length=64, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    object_version = models.CharField(max_length=64, blank=True)
    release = models.CharField(max_length=64, blank=True)
    schema_sha256 = models.CharField(max_length=64)
    roles_sha256 = models.CharField(max_length=64)
    settings_sha256 = models.CharField(max_length=64, help_text="Over the names of settings, never values.")
    generation = models.PositiveIntegerField(help_text="Version of the collection policy then.")
    result = models.CharField(max_length=4, choices=Result.choices)
    measured: Any = models.JSONField(default=dict, help_text="Numbers, enumerations and hashes.")
    method = models.CharField(max_length=64, help_text="A probe and its version, or `attestation`.")
    note = models.CharField(max_length=500, blank=True)
    actor = _user()
    second_actor = _user()
    token_id = models.UUIDField(null=True, help_text="The token that posted it; null for staff.")
    observed_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())
    supersedes: Any = models.OneToOneField(
        "self", null=True, on_delete=models.PROTECT, related_name="superseded_by"
    )

    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", API, f"({HERE}) AND {POSTABLE}", None),
            ("api_post", "INSERT", API, None, f"({HERE}) AND {POSTABLE}"),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_record", "INSERT", STAFF, None, DECIDES),
        ),
        allow={API: "ra", STAFF: "ra"},
    )
    retention: ClassVar[str] = "activation evidence: 1826 days"
    erasure: ClassVar[str] = "keep: staff, not principals"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "run_id",
        "item",
        "part",
        "object_type",
        "object_id",
        "object_version",
        "release",
        "schema_sha256",
        "roles_sha256",
        "settings_sha256",
        "generation",
        "result",
        "measured",
        "method",
        "observed_at",
        "recorded_at",
        "supersedes_id",
    )

    class Meta:
        db_table = "observations_evidence"
        verbose_name = "evidence"
        verbose_name_plural = "evidence"
        constraints = [
            models.CheckConstraint(name="observations_evidence_part", condition=Q(part__in=Part.values)),
            models.CheckConstraint(
                name="observations_evidence_result", condition=Q(result__in=Result.values)
            ),
        ]
        indexes = [
            models.Index(fields=["run", "item", "part", "-recorded_at"], name="observations_evidence_item")
        ]
