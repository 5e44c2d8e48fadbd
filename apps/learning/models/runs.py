"""What evaluations and holdouts have in common: they are asked for, run in the background, and end once."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.core.models import OwnedModel


class RunStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)
UNDER_WAY = Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])


class LearningRun(OwnedModel):
    """A question with its configuration, and how far its answer is. The answer itself is another, immutable row.

    `weaker_settings` name what the configuration asks less of than the gate policy that ruled at the start; a
    run with any of them, or with another reason to be, is exploratory and never promotes a profile.
    """

    requested_at = models.DateTimeField(help_text="The start: what was admitted later is not looked at.")
    scopes = ArrayField(models.CharField(max_length=64), null=True, help_text="Sorted; null = all.")
    config: Any = models.JSONField()
    gate_policy_id = models.UUIDField(help_text="The stored policy of kind gate that ruled at the start.")
    weaker_settings = ArrayField(models.CharField(max_length=64), default=list)
    exploratory = models.BooleanField()
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    phase = models.CharField(max_length=16, blank=True, help_text="What is being done now.")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0, help_text="0 = not known yet.")
    attempts = models.PositiveSmallIntegerField(default=0, help_text="How often a worker began it.")
    cancel_requested_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    failure_code = models.CharField(max_length=64, blank=True)

    class Meta(OwnedModel.Meta):
        abstract = True
        constraints = [
            *OwnedModel.Meta.constraints,
            models.CheckConstraint(
                name="%(app_label)s_%(class)s_finished",
                condition=Q(status__in=ENDED, finished_at__isnull=False)
                | (~Q(status__in=ENDED) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="%(app_label)s_%(class)s_failure",
                condition=Q(status="failed") & ~Q(failure_code="") | ~Q(status="failed") & Q(failure_code=""),
            ),
        ]

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


RUN_EXPORT = (
    "id",
    "requested_at",
    "scopes",
    "config",
    "gate_policy_id",
    "weaker_settings",
    "exploratory",
    "status",
    "started_at",
    "finished_at",
    "failure_code",
)
