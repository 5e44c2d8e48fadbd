"""Keys by which a repeated call is known."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import OwnerPolicy

from .base import OwnedModel


class IdempotencyKey(OwnedModel):
    """What a principal sent under a key, as a digest, and the record from which the answer is rendered again.

    Past `expires_at` it counts as absent. It is deleted only with its record, by whoever deletes that.
    """

    key = models.CharField(max_length=128)
    tool = models.CharField(max_length=64)
    payload_sha256 = models.BinaryField(max_length=32)
    receipt_id = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)

    retention: ClassVar[str] = "as long as its record"
    erasure: ClassVar[str] = "delete"
    row_policy = OwnerPolicy()

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "key"], name="core_idempotencykey_key"),
        ]
        indexes = [models.Index(fields=["principal", "receipt_id"], name="core_idempotencykey_receipt")]
