"""Alarms, where they are sent, and each sending."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import APP, STAFF, SUPERUSER, CustomPolicy, granted
from apps.core.ids import uuid7
from apps.core.models import Declared
from apps.operations.rules import OPERATORS, WATCHERS, by_grant


class Alarm(Declared):
    """Something needs a human; one is open per workspace, source and reason. Codes and numbers, no text."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    source = models.CharField(max_length=140, help_text="Who raised it, e.g. traces.expire.")
    reason = models.CharField(max_length=100, help_text="A code, e.g. overdue.")
    details: Any = models.JSONField(default=dict, help_text="Counts, ages and codes of the last reading.")
    opened_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())
    times_seen = models.PositiveIntegerField(default=1)
    last_notice_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    acknowledge_reason = models.CharField(max_length=500, blank=True)
    resolved_at = models.DateTimeField(null=True)

    retention: ClassVar[str] = "alarms: 400 days after they are resolved"
    erasure: ClassVar[str] = "keep: codes and counts, names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "source",
        "reason",
        "details",
        "opened_at",
        "last_seen_at",
        "acknowledged_at",
        "resolved_at",
    )
    row_policy = CustomPolicy(
        rules=(
            ("app", "ALL", APP, "true", "true"),
            ("staff", "SELECT", STAFF, by_grant(*WATCHERS), None),
            ("staff_acknowledge", "UPDATE", STAFF, by_grant(*OPERATORS), by_grant(*OPERATORS)),
        ),
        allow={APP: "raw", STAFF: "rw"},
    )

    class Meta:
        verbose_name = "alarm"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "source", "reason"],
                name="operations_alarm_one_open",
                condition=models.Q(resolved_at__isnull=True),
                nulls_distinct=False,
            )
        ]
        indexes = [models.Index(fields=["-opened_at", "-id"], name="operations_alarm_newest")]

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


# A destination of the whole installation gets every workspace's notices, so no workspace's operator sets it up.
SET_UP = f"({granted(*OPERATORS)}) OR (workspace_id IS NULL AND {SUPERUSER})"


class DestinationKind(models.TextChoices):
    EMAIL = "email"
    WEBHOOK = "webhook"


class DestinationUse(models.TextChoices):
    """`test` destinations get test alarms only, `live` ones real alarms only."""

    LIVE = "live"
    TEST = "test"


class Destination(Declared):
    """Where notices of alarms go: those of its workspace; without one, all."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=DestinationKind.choices)
    use = models.CharField(max_length=4, choices=DestinationUse.choices, default=DestinationUse.LIVE)
    address = models.CharField(max_length=500, help_text="An e-mail address, or an https URL.")
    # The signing secret is derived from the installation's key, this row and the generation: none is stored.
    secret_generation = models.PositiveIntegerField(default=1, editable=False)
    active = models.BooleanField(default=True)
    confirmed_at = models.DateTimeField(null=True, editable=False)
    confirmed_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "until staff remove it"
    erasure: ClassVar[str] = "keep: addresses of operators, of no principal"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "name", "kind", "use", "active", "confirmed_at")
    row_policy = CustomPolicy(
        rules=(
            ("app", "SELECT", APP, "true", None),
            ("staff", "SELECT", STAFF, by_grant(*WATCHERS), None),
            ("staff_write", "ALL", STAFF, SET_UP, SET_UP),
        ),
        allow={APP: "r", STAFF: "rawd"},
    )

    class Meta:
        verbose_name = "destination"
        constraints = [
            models.CheckConstraint(
                name="operations_destination_https",
                condition=models.Q(kind="email") | models.Q(address__startswith="https://"),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Notice(models.TextChoices):
    OPENED = "opened"
    REPEATED = "repeated"
    RESOLVED = "resolved"
    TEST = "test"


class Delivery(Declared):
    """One notice to one destination, with its retries."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # PostgreSQL cascades, by constraints in SQL: staff may not delete deliveries themselves.
    destination: Any = models.ForeignKey(
        Destination, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    alarm: Any = models.ForeignKey(
        Alarm, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    notice = models.CharField(max_length=8, choices=Notice.choices)
    body: Any = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, db_default=Now())
    delivered_at = models.DateTimeField(null=True)
    gave_up_at = models.DateTimeField(null=True)
    last_code = models.CharField(max_length=100, blank=True)

    retention: ClassVar[str] = "alarms: 400 days"
    erasure: ClassVar[str] = "keep: codes and counts, names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "notice",
        "created_at",
        "attempts",
        "delivered_at",
        "gave_up_at",
        "last_code",
    )
    row_policy = CustomPolicy(
        rules=(
            ("app", "ALL", APP, "true", "true"),
            ("staff", "SELECT", STAFF, by_grant(*WATCHERS), None),
            ("staff_test", "INSERT", STAFF, None, f"({by_grant(*OPERATORS)}) AND notice = 'test'"),
        ),
        allow={APP: "raw", STAFF: "ra"},
    )

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                name="operations_delivery_due",
                condition=models.Q(next_attempt_at__isnull=False),
            ),
            models.Index(fields=["-created_at", "-id"], name="operations_delivery_newest"),
        ]
