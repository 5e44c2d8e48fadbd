"""Query sets: questions with everything that is relevant to them, made once and never changed."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.learning.models.evaluations import SHA256


class QuerySet(OwnedModel):
    """A set of judged queries of one principal."""

    name = models.CharField(max_length=200)
    source = models.CharField(max_length=12, help_text="Where it came from.")
    created_at = models.DateTimeField()
    num_queries = models.PositiveIntegerField()
    num_judgments = models.PositiveIntegerField()
    content_sha256 = models.CharField(max_length=64, db_collation="C")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "learning: days of the gate policy"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "name",
        "source",
        "created_at",
        "num_queries",
        "num_judgments",
        "content_sha256",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_query_set"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_query_set_owner_key"),
            models.CheckConstraint(
                name="learning_query_set_source", condition=Q(source__in=["api", "files", "control_set"])
            ),
            models.CheckConstraint(name="learning_query_set_hash", condition=Q(content_sha256__regex=SHA256)),
        ]
        indexes = [
            models.Index(
                F("principal"), F("created_at").desc(), F("id").desc(), name="learning_query_set_newest"
            ),
            models.Index(
                F("workspace"), F("created_at").desc(), F("id").desc(), name="learning_query_set_staff"
            ),
        ]


class JudgedQuery(OwnedModel):
    """One query with its judgments as parallel arrays; a document that is not among them is not relevant.

    `identities` are canonical JSON, since a document's identity may be a number or a text.
    """

    query_set: Any = models.ForeignKey(
        QuerySet, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="queries"
    )
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=512, db_collation="C", help_text="The id that its maker gave it.")
    text = models.TextField()
    query_identity = models.CharField(
        max_length=64, db_collation="C", help_text="Keyed hash of the normalised text."
    )
    group_name = models.CharField(max_length=512, null=True, db_collation="C")
    slice = models.CharField(max_length=512, null=True, db_collation="C")
    repos = ArrayField(models.CharField(max_length=256))
    identities = ArrayField(models.TextField())
    grades = ArrayField(models.SmallIntegerField())

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    raw_text: ClassVar[tuple[str, ...]] = ("text",)
    retention: ClassVar[str] = "as long as the query set"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "query_set_id",
        "position",
        "name",
        "text",
        "group_name",
        "slice",
        "repos",
        "identities",
        "grades",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_judged_query"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_judged_query_owner_key"),
            models.UniqueConstraint(fields=["query_set", "position"], name="learning_judged_query_position"),
            models.UniqueConstraint(fields=["query_set", "name"], name="learning_judged_query_name"),
            models.CheckConstraint(
                name="learning_judged_query_parallel",
                condition=Q(repos__len=F("identities__len")) & Q(grades__len=F("identities__len")),
            ),
        ]
