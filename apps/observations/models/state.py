"""How upkeep of the journal goes, and for which database it is open."""

from typing import ClassVar

from django.db import models

from apps.core.db.rowpolicy import CustomPolicy
from apps.core.models import Declared


class MaintenanceState(Declared):
    """One row, written and read by the owner's functions alone.

    The identity (system identifier of the cluster, oid of the database) is that for which the journal is open; a
    restored or copied database has another. `drained_*` is that for which a restore was drained.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    last_success_at = models.DateTimeField(null=True)
    last_drained_at = models.DateTimeField(null=True)
    processed_count = models.BigIntegerField(default=0)
    last_failure_at = models.DateTimeField(null=True)
    last_failure_code = models.CharField(max_length=100, default="", blank=True)
    consecutive_failures = models.PositiveIntegerField(default=0)
    system_identifier = models.BigIntegerField(
        null=True, help_text="Null: forgotten, so the journal is closed."
    )
    database_oid = models.BigIntegerField(null=True)
    drained_at = models.DateTimeField(null=True, help_text="Last drain of the restore gate.")
    drained_system_identifier = models.BigIntegerField(null=True)
    drained_database_oid = models.BigIntegerField(null=True)

    retention: ClassVar[str] = "as long as the installation"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = CustomPolicy(rules=())

    class Meta:
        db_table = "observations_maintenance_state"
        verbose_name = "maintenance state"
        constraints = [
            models.CheckConstraint(name="observations_maintenance_state_one", condition=models.Q(id=1))
        ]
