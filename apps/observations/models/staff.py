"""The staff's view of the journal: what lives, without fingerprint and without text."""

from typing import Any, ClassVar

from django.db import models


class StaffObservation(models.Model):
    """A row of the view `observation_staff`. `text_expires_at` is null where no text lives."""

    id = models.UUIDField(primary_key=True)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    principal: Any = models.ForeignKey(
        "accounts.Principal", on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    trace_id = models.UUIDField(null=True)
    corpus = models.CharField(max_length=8)
    observed_at = models.DateTimeField()
    record_expires_at = models.DateTimeField()
    fingerprint_key_id = models.CharField(max_length=32)
    fingerprint_version = models.CharField(max_length=32)
    text_disposition = models.CharField(max_length=8)
    text_expires_at = models.DateTimeField(null=True)
    release = models.CharField(max_length=200, null=True)
    ranking_profile_id = models.UUIDField(null=True)
    purpose = models.CharField(max_length=64)
    consent_version = models.CharField(max_length=64)
    snapshot: Any = models.JSONField()

    retention: ClassVar[str] = "a view"

    class Meta:
        managed = False
        db_table = "observation_staff"
        verbose_name = "observation"

    def __str__(self) -> str:
        return f"observation {self.pk}"
