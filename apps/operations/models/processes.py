"""Heartbeats of web, worker and beat processes."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.core.ids import uuid7
from apps.core.models import Declared
from apps.operations.rules import kept_by_processes


class ProcessKind(models.TextChoices):
    WEB = "web"
    WORKER = "worker"
    BEAT = "beat"


class Process(Declared):
    """One process, as it last reported. Unseen for 60 s, it is not live."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=8, choices=ProcessKind.choices)
    release = models.CharField(max_length=64, blank=True, help_text="Build id; empty when unknown.")
    host = models.CharField(max_length=255, blank=True)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_default=Now())
    report: Any = models.JSONField(default=dict, help_text="What apps registered to report, by app.")

    retention: ClassVar[str] = "heartbeats: 1 day"
    erasure: ClassVar[str] = "keep: names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "kind",
        "release",
        "host",
        "pid",
        "started_at",
        "seen_at",
    )
    row_policy = kept_by_processes()

    class Meta:
        verbose_name = "process"
        verbose_name_plural = "processes"
        indexes = [models.Index(fields=["-seen_at"], name="operations_process_seen")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pid}"
