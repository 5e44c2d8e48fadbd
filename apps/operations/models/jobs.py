"""Background work: what is declared, what ran, who holds which lease."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.core.ids import uuid7
from apps.core.models import Declared
from apps.operations.rules import kept_by_processes


class Job(Declared):
    """A declared task as the installation knows it: when it last ran, succeeded and failed."""

    name = models.CharField(max_length=100, primary_key=True)
    known_since = models.DateTimeField(db_default=Now(), editable=False)
    last_started_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    last_failure_at = models.DateTimeField(null=True)
    last_failure_code = models.CharField(max_length=100, blank=True)
    consecutive_failures = models.PositiveIntegerField(default=0)

    retention: ClassVar[str] = "as long as the installation"
    erasure: ClassVar[str] = "keep: names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "name",
        "last_started_at",
        "last_success_at",
        "last_failure_at",
        "last_failure_code",
        "consecutive_failures",
    )
    row_policy = kept_by_processes("raw")

    class Meta:
        verbose_name = "job"

    def __str__(self) -> str:
        return self.name


class Outcome(models.TextChoices):
    """How a run ended. `lost`: its process died or was killed at the hard limit."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"


class JobRun(Declared):
    """One run of a task: times, outcome and counts, never text."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    lease_key = models.CharField(max_length=140, help_text="The task, and a hash of its arguments.")
    arguments = models.JSONField(default=list, help_text="Ids and numbers.")
    attempt = models.PositiveSmallIntegerField(default=0)
    process_id = models.UUIDField(null=True)
    asked_at = models.DateTimeField(help_text="When the call was sent.")
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    # A run that is still `running` then cannot be alive: the hard limit ends it before.
    lease_expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices, default=Outcome.RUNNING)
    code = models.CharField(max_length=100, blank=True, help_text="Class of what failed.")
    counts = models.JSONField(default=dict)

    retention: ClassVar[str] = "job_runs: 90 days"
    erasure: ClassVar[str] = "keep: ids in arguments name nobody once their rows are gone, 90 days at most"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "name",
        "started_at",
        "finished_at",
        "outcome",
        "code",
        "counts",
    )
    row_policy = kept_by_processes("raw")

    class Meta:
        verbose_name = "job run"
        indexes = [
            models.Index(fields=["name", "-started_at"], name="operations_jobrun_by_name"),
            models.Index(fields=["lease_key", "-started_at"], name="operations_jobrun_by_key"),
            models.Index(fields=["-started_at", "-id"], name="operations_jobrun_newest"),
            models.Index(
                fields=["lease_expires_at"],
                name="operations_jobrun_running",
                condition=models.Q(outcome="running"),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="operations_jobrun_finished",
                condition=models.Q(outcome="running", finished_at__isnull=True)
                | (~models.Q(outcome="running") & models.Q(finished_at__isnull=False)),
            )
        ]


class Lease(Declared):
    """Who may run a task now. Taken by compare-and-swap, free again by its time."""

    key = models.CharField(max_length=140, primary_key=True)
    holder = models.UUIDField(help_text="The job run.")
    taken_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()

    retention: ClassVar[str] = "until released or expired; rows go with the heartbeats after 1 day"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = kept_by_processes()

    class Meta:
        verbose_name = "lease"


class ScheduleDeclaration(Declared):
    """What the code last declared of a scheduled task: tells a change by staff, which stays, from ours."""

    name = models.CharField(max_length=100, primary_key=True)
    declared: Any = models.JSONField()
    applied_at = models.DateTimeField(db_default=Now())

    retention: ClassVar[str] = "as long as the installation"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = kept_by_processes()

    class Meta:
        verbose_name = "declared schedule"

    def __str__(self) -> str:
        return self.name
