"""Answer citations: what an answer cited out of a receipt's context. They are evidence, and rank nothing."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel

MAX_CITED = 1000
LONGEST_ANSWER_ID = 512


class CitationMethod(models.TextChoices):
    MODEL_REPORTED = "model_reported"
    APPLICATION_VERIFIED = "application_verified"
    HUMAN_VERIFIED = "human_verified"


class CitationSet(OwnedModel):
    """The citations of one answer. An empty set says that none were reported; no row says nothing.

    Nodes are named without a key, so that the record can be audited after they are gone.
    """

    citation_id = models.UUIDField(help_text="The caller's; unique among all keys of the principal.")
    receipt: Any = models.ForeignKey(
        "retrieval.Receipt",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="citations",
    )
    receipt_checksum = models.CharField(max_length=64, db_collation="C")
    context_sha256 = models.CharField(max_length=64, db_collation="C")
    answer_id = models.CharField(max_length=LONGEST_ANSWER_ID)
    answer_sha256 = models.CharField(max_length=64, db_collation="C", null=True)
    method = models.CharField(max_length=24, choices=CitationMethod.choices)
    node_ids = ArrayField(models.UUIDField())
    admitted_at = models.DateTimeField(help_text="The server's.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "label"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "citation_id",
        "receipt_id",
        "receipt_checksum",
        "context_sha256",
        "answer_id",
        "answer_sha256",
        "method",
        "node_ids",
        "admitted_at",
    )

    class Meta(OwnedModel.Meta):
        db_table = "feedback_citation"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="feedback_citation_owner_key"),
            models.UniqueConstraint(fields=["principal", "citation_id"], name="feedback_citation_citation"),
            models.CheckConstraint(
                name="feedback_citation_method", condition=Q(method__in=CitationMethod.values)
            ),
            models.CheckConstraint(
                name="feedback_citation_hashes",
                condition=Q(context_sha256__regex=r"^[0-9a-f]{64}$")
                & (Q(answer_sha256__isnull=True) | Q(answer_sha256__regex=r"^[0-9a-f]{64}$")),
            ),
            models.CheckConstraint(name="feedback_citation_nodes", condition=Q(node_ids__len__lte=MAX_CITED)),
        ]
        indexes = [
            models.Index(fields=["principal", "receipt", "admitted_at"], name="feedback_citation_receipt"),
            models.Index(fields=["workspace", "admitted_at"], name="feedback_citation_age"),
        ]
