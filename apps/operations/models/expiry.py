"""How the draining of due rows goes, one row a registered kind."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import STAFF, CustomPolicy
from apps.core.models import Declared
from apps.operations.rules import WATCHERS, held_anywhere


class ExpiryState(Declared):
    """Moved by the deleting transaction itself, so that a rolled-back batch leaves no success behind."""

    name = models.CharField(max_length=100, primary_key=True)
    known_since = models.DateTimeField(db_default=Now(), editable=False)
    last_success_at = models.DateTimeField(null=True)
    last_drained_at = models.DateTimeField(null=True)
    processed_count = models.BigIntegerField(default=0)
    last_failure_at = models.DateTimeField(null=True)
    last_failure_code = models.CharField(max_length=100, blank=True)
    consecutive_failures = models.PositiveIntegerField(default=0)

    retention: ClassVar[str] = "as long as the installation"
    erasure: ClassVar[str] = "keep: names no principal"
    # Written and read by functions alone; staff look at it on the status pages.
    row_policy = CustomPolicy(
        rules=(("staff", "SELECT", STAFF, held_anywhere(*WATCHERS), None),), allow={STAFF: "r"}
    )

    class Meta:
        verbose_name = "expiry state"

    def __str__(self) -> str:
        return self.name
