"""The lexical index (terms, postings, statistics) and the vector index, all per owner."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from apps.core.db.rowpolicy import Unowned
from apps.core.models import Declared

from .nodes import BULK, Node


class CorpusKind(models.IntegerChoices):
    """The corpora of an owner, each with its own statistics; the number is the `kind` of its terms."""

    CLAIMS = 1, "claims"
    CODE = 2, "code"
    PASSAGES = 3, "passages"


def _owner() -> Any:
    return models.ForeignKey(
        "accounts.Principal",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )


class Term(Declared):
    """A term of an owner's lexicon, with the number of live nodes that have it."""

    pk = models.CompositePrimaryKey("principal_id", "kind", "term")
    principal: Any = _owner()
    kind = models.SmallIntegerField(choices=CorpusKind.choices)
    term = models.CharField(max_length=130, db_collation="C")
    term_no = models.IntegerField()
    df = models.IntegerField()

    row_policy = BULK
    retention: ClassVar[str] = "as long as a node has the term"
    erasure: ClassVar[str] = "delete"

    class Meta:
        constraints = [models.UniqueConstraint(fields=["principal", "term_no"], name="graph_term_number")]


class Posting(Declared):
    """How often a node has a term. Written and removed with its node; without foreign keys, for speed."""

    pk = models.CompositePrimaryKey("principal_id", "term_no", "node_no")
    principal: Any = _owner()
    term_no = models.IntegerField()
    node_no = models.IntegerField()
    tf = models.IntegerField()
    len = models.IntegerField(help_text="Sum of the node's term counts.")

    row_policy = BULK
    retention: ClassVar[str] = "as long as the node"
    erasure: ClassVar[str] = "delete"

    class Meta:
        # The number first: an index that begins with the owner could be taken for the reading of a term.
        indexes = [models.Index(fields=["node_no", "principal"], name="graph_posting_node")]


class Corpus(Declared):
    """What BM25 needs of one corpus, and a digest that changes whenever the corpus does.

    `vectors` counts those of the active embedder. `revision` counts the statements that changed the corpus;
    `content` is the XOR of a hash of each live node, so that equal digests mean equal corpora.
    """

    pk = models.CompositePrimaryKey("principal_id", "kind")
    principal: Any = _owner()
    kind = models.SmallIntegerField(choices=CorpusKind.choices)
    nodes = models.IntegerField(db_default=0)
    total_len = models.BigIntegerField(db_default=0)
    vectors = models.IntegerField(db_default=0)
    languages = models.JSONField(db_default={})
    revision = models.BigIntegerField(db_default=0)
    content = models.BigIntegerField(db_default=0)

    row_policy = BULK
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    # Deleting a node moves the statistics, and would make the row anew.
    erasure_after: ClassVar[tuple[str, ...]] = ("graph.node",)


class Embedder(Declared):
    """A vector space. Queries use the one active; another is filled beside it and then takes over."""

    id = models.SmallAutoField(primary_key=True)
    name = models.CharField(max_length=24, help_text="The adapter.")
    model_id = models.CharField(max_length=200, unique=True)
    dims = models.SmallIntegerField()
    state = models.CharField(
        max_length=10,
        choices=[(s, s) for s in ("registered", "filling", "active", "retired")],
        db_default="registered",
    )
    config = models.JSONField(db_default={}, help_text="Address and prefixes of a remote one; no secret.")
    nominate_at = models.FloatField(null=True, help_text="Cosine from which claims are near duplicates.")
    same_at = models.FloatField(null=True, help_text="Cosine from which two claims of one answer are one.")
    precise_floor = models.FloatField(null=True)
    activated_at = models.DateTimeField(null=True)

    row_policy = Unowned(
        "vector spaces of the installation", app="r", api="r", staff="r", maintenance="r", monitor="r"
    )
    retention: ClassVar[str] = "until retired and emptied"
    erasure: ClassVar[str] = "keep: names no principal"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "name", "model_id", "dims", "state", "activated_at")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="active"), name="graph_embedder_one_active"
            )
        ]


class Vector(Declared):
    """A node's vector in one space, or the reason why it has none."""

    pk = models.CompositePrimaryKey("principal_id", "embedder_id", "node_id")
    principal: Any = _owner()
    embedder: Any = models.ForeignKey(
        Embedder, on_delete=models.PROTECT, db_index=False, db_constraint=False, related_name="+"
    )
    node: Any = models.ForeignKey(
        Node, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    vec = HalfVectorField(null=True)
    state = models.CharField(max_length=6, choices=[(s, s) for s in ("ready", "empty", "failed")])
    text_sha256 = models.BinaryField(max_length=32)
    tries = models.SmallIntegerField(db_default=0)
    next_try_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=64, null=True)
    created_at = models.DateTimeField(db_default=Now())

    row_policy = BULK
    retention: ClassVar[str] = "as long as the node"
    erasure: ClassVar[str] = "cascade"

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="graph_vector_ready_has_one",
                condition=Q(state="ready", vec__isnull=False) | ~Q(state="ready"),
            )
        ]
        indexes = [models.Index(fields=["principal", "node"], name="graph_vector_node")]
