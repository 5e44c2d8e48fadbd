"""The owner's view of the journal: what lives, with its text where that lives, too."""

from typing import Any, ClassVar

from django.db import models


class VisibleObservation(models.Model):
    """A row of the view `observation_visible`: text only while it lives, and the earlier deadline of both."""

    id = models.UUIDField(primary_key=True)
    workspace_id = models.UUIDField()
    principal_id = models.UUIDField()
    trace_id = models.UUIDField(null=True)
    corpus = models.CharField(max_length=8)
    observed_at = models.DateTimeField()
    record_expires_at = models.DateTimeField()
    query_fingerprint = models.CharField(max_length=64)
    fingerprint_key_id = models.CharField(max_length=32)
    fingerprint_version = models.CharField(max_length=32)
    text_disposition = models.CharField(max_length=8)
    query_text = models.TextField(null=True)
    expires_at = models.DateTimeField()
    release = models.CharField(max_length=200, null=True)
    ranking_profile_id = models.UUIDField(null=True)
    purpose = models.CharField(max_length=64)
    consent_version = models.CharField(max_length=64)
    snapshot: Any = models.JSONField()

    retention: ClassVar[str] = "a view"

    class Meta:
        managed = False
        db_table = "observation_visible"

    def __str__(self) -> str:
        return f"observation {self.pk}"
