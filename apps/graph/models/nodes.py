"""Retrievable units: claims, code and passages in one table, with the provenance of passages beside it."""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import Declared, OwnedModel
from apps.graph.digests import DIGEST_VERSION

READ = OwnerPolicy(staff=("view_traces", "curate"), shared=True)
BULK = OwnerPolicy(shared=True)
"""Rows without a workspace, read in bulk by their owner; staff never see them."""

LIVE = "n.archived_at IS NULL AND n.superseded_at IS NULL"
INSTRUCTS = "n.kind = 'episodic' AND n.durability > 0 AND n.subkind IN ('preference', 'decision', 'pattern')"
"""SQL on the alias n: a claim that instructs beyond one conversation, whoever said it."""
STANDING = f"{LIVE} AND (n.pinned OR ({INSTRUCTS} AND n.asserted_by = 2))"
"""SQL on the alias n: what is pinned, and what a person said that holds beyond one conversation. An inference that
is not pinned never stands. Its index is `graph_node_standing`."""
STANDING_PLACE = (
    "(CASE WHEN n.pinned THEN 0 WHEN n.subkind = 'preference' THEN 1 "
    "WHEN n.subkind = 'decision' THEN 2 ELSE 3 END)"
)
"""Their order, before the newest first: pinned, preferences, decisions, patterns."""


class Kind(models.TextChoices):
    EPISODIC = "episodic", "claim"
    STRUCTURAL = "structural", "code"
    PASSAGE = "passage", "passage"


class Durability(models.IntegerChoices):
    CONVERSATION = 0, "conversation"
    PROJECT = 1, "project"
    GLOBAL = 2, "global"


class AssertedBy(models.IntegerChoices):
    INFERRED = 0, "inferred"
    ASSISTANT = 1, "assistant"
    USER = 2, "user"


class Epistemic(models.TextChoices):
    OBSERVED = "observed"
    ASSERTED = "asserted"
    INFERRED = "inferred"
    CONDITIONAL = "conditional"
    UNVERIFIED = "unverified"
    HYPOTHETICAL = "hypothetical"
    DEPRECATED = "deprecated"


class Node(OwnedModel):
    """A unit of memory. `node_no` is its short number inside the owner's indexes.

    `scope` is a hard fence and never changes; `project` says where a claim was learned. A row is live while
    neither archived nor superseded; only live rows are in the indexes.
    """

    node_no = models.IntegerField(editable=False)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    subkind = models.CharField(max_length=24)
    label = models.CharField(max_length=512, blank=True)
    body = models.TextField(blank=True)
    language = models.CharField(max_length=32, db_default="simple")
    symbol = models.CharField(max_length=300, null=True, blank=True)
    digest = models.CharField(max_length=64)
    digest_version = models.SmallIntegerField(db_default=DIGEST_VERSION)
    scope = models.CharField(max_length=64, db_default="default")
    project = models.CharField(max_length=128, null=True, blank=True)
    conversation = models.CharField(max_length=128, null=True, blank=True)
    durability = models.SmallIntegerField(choices=Durability.choices, db_default=Durability.PROJECT)
    reach = models.CharField(
        max_length=8, choices=[("here", "here"), ("anywhere", "anywhere")], db_default="here"
    )
    reach_judged = models.BooleanField(db_default=False)
    source = models.CharField(
        max_length=8, choices=[("agent", "agent"), ("user", "user")], db_default="agent"
    )
    asserted_by = models.SmallIntegerField(choices=AssertedBy.choices, db_default=AssertedBy.INFERRED)
    epistemic = models.CharField(max_length=12, choices=Epistemic.choices, db_default=Epistemic.OBSERVED)
    confidence = models.FloatField(db_default=1.0)
    weight = models.FloatField(db_default=1.0)
    access_count = models.IntegerField(db_default=0)
    useful_count = models.IntegerField(db_default=0)
    unhelpful_count = models.IntegerField(db_default=0)
    ignored_count = models.IntegerField(db_default=0)
    accessed_at = models.DateTimeField(null=True, blank=True)
    pinned = models.BooleanField(db_default=False)
    superseded_by: Any = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="supersedes",
    )
    superseded_at = models.DateTimeField(null=True, blank=True)
    stale_at = models.DateTimeField(null=True, blank=True)
    stale_cooled_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    archived_by = models.CharField(max_length=64, null=True, blank=True)
    archived_reason = models.CharField(max_length=1000, null=True, blank=True)
    origin_node_id = models.UUIDField(null=True, blank=True)
    shared_by = models.UUIDField(null=True, blank=True)
    event_at = models.DateTimeField(null=True, blank=True)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now())

    row_policy = READ
    raw_text: ClassVar[tuple[str, ...]] = ("label", "body", "archived_reason")
    retention: ClassVar[str] = "until deleted; archived claims of upkeep 60 days"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "kind",
        "subkind",
        "scope",
        "project",
        "epistemic",
        "confidence",
        "weight",
        "pinned",
        "created_at",
        "updated_at",
        "archived_at",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "node_no"], name="graph_node_number"),
            models.UniqueConstraint(
                fields=["principal", "scope", "project", "conversation", "kind", "digest"],
                nulls_distinct=False,
                name="graph_node_digest",
            ),
            models.CheckConstraint(
                name="graph_node_ranges", condition=Q(confidence__range=(0.05, 1), weight__range=(1, 10))
            ),
            models.CheckConstraint(name="graph_node_kind", condition=Q(kind__in=Kind.values)),
            models.CheckConstraint(
                name="graph_node_global_has_no_home",
                condition=~Q(durability=2) | Q(project__isnull=True, conversation__isnull=True),
            ),
            models.CheckConstraint(
                name="graph_node_conversation_stays",
                condition=~Q(durability=0) | Q(conversation__isnull=False, reach="here"),
            ),
            models.CheckConstraint(
                name="graph_node_code_stays", condition=~Q(kind="structural") | Q(reach="here")
            ),
            models.CheckConstraint(
                name="graph_node_digest_form", condition=Q(digest__regex="^[0-9a-f]{64}$")
            ),
        ]
        indexes = [
            # Who deletes a node looks for those that it superseded.
            models.Index(
                fields=["principal", "superseded_by"],
                name="graph_node_superseded",
                condition=Q(superseded_by__isnull=False),
            ),
            models.Index(
                fields=["principal", "-updated_at"],
                name="graph_node_live",
                condition=Q(archived_at__isnull=True, superseded_at__isnull=True),
            ),
            models.Index(
                F("principal"),
                Case(
                    When(pinned=True, then=0),
                    When(subkind="preference", then=1),
                    When(subkind="decision", then=2),
                    default=3,
                ),
                F("updated_at").desc(),
                name="graph_node_standing",
                condition=Q(archived_at__isnull=True, superseded_at__isnull=True)
                & (
                    Q(pinned=True)
                    | Q(
                        kind=Kind.EPISODIC,
                        asserted_by=AssertedBy.USER,
                        durability__gt=Durability.CONVERSATION,
                        subkind__in=("preference", "decision", "pattern"),
                    )
                ),
            ),
        ]


class Passage(Declared):
    """Where a passage came from, exactly as source identity needs it; `content_source` is always `index`."""

    node: Any = models.OneToOneField(
        Node, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="passage"
    )
    workspace: Any = models.ForeignKey(
        "accounts.Workspace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    principal: Any = models.ForeignKey(
        "accounts.Principal",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    repo = models.CharField(max_length=300)
    type = models.CharField(max_length=24)
    identity = models.JSONField()
    part = models.IntegerField(db_default=0)
    version = models.CharField(max_length=128)
    path = models.CharField(max_length=512, null=True, blank=True)
    slug = models.CharField(max_length=256, null=True, blank=True)
    number = models.BigIntegerField(null=True, blank=True)
    url = models.CharField(max_length=2048, null=True, blank=True)
    state = models.CharField(max_length=64, null=True, blank=True)
    labels = ArrayField(models.CharField(max_length=256), db_default=[])
    milestone = models.CharField(max_length=256, null=True, blank=True)
    assignee = models.CharField(max_length=256, null=True, blank=True)
    session = models.CharField(max_length=256, null=True, blank=True)
    position = models.IntegerField(null=True, blank=True)

    row_policy = READ
    raw_text: ClassVar[tuple[str, ...]] = ("url",)
    retention: ClassVar[str] = "as long as the node"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "node",
        "repo",
        "type",
        "identity",
        "part",
        "version",
        "path",
    )

    class Meta:
        indexes = [
            models.Index(fields=["principal", "repo", "type", "identity"], name="graph_passage_identity"),
            models.Index(
                fields=["principal", "repo", "session", "position"],
                name="graph_passage_session",
                condition=Q(session__isnull=False),
            ),
            models.Index(
                fields=["principal", "slug", "repo"],
                name="graph_passage_page",
                condition=Q(slug__isnull=False),
            ),
        ]


class Attribute(Declared):
    """A row that is only read with its node or in bulk; its key begins with the owner."""

    principal: Any = models.ForeignKey(
        "accounts.Principal",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    node: Any = models.ForeignKey(
        Node, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )

    row_policy = BULK
    retention: ClassVar[str] = "as long as the node"
    erasure: ClassVar[str] = "cascade"

    class Meta:
        abstract = True


class Entity(Attribute):
    """A subject that a claim is about."""

    pk = models.CompositePrimaryKey("principal_id", "node_id", "entity_key")
    entity_key = models.CharField(max_length=120)
    name = models.CharField(max_length=140)

    class Meta:
        indexes = [models.Index(fields=["principal", "entity_key"], name="graph_entity_key")]


class Path(Attribute):
    """A file that a claim speaks of."""

    pk = models.CompositePrimaryKey("principal_id", "node_id", "path")
    path = models.CharField(max_length=512)
    project = models.CharField(max_length=128, null=True)

    class Meta:
        indexes = [models.Index(fields=["principal", "project", "path"], name="graph_path_project")]
