"""Ranking profiles, the pointer to the active one, and what four eyes and drills leave.

The law of these tables: a profile and a transition are never changed and stay as long as their principal, also
when the evidence behind them has had its term. What is active is the result of the newest transition of a pointer,
and is written nowhere else.
"""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.learning.pointer import TransitionKind
from apps.learning.scorer import FEATURES

LONGEST_SCOPE_KEY = 1100
"""Sixteen scopes of 64 characters and the signs between them."""


class Actor(models.TextChoices):
    STAFF = "staff", "staff"
    PRINCIPAL = "principal", "a principal"
    PLATFORM = "platform", "the platform"


class ProposalStatus(models.TextChoices):
    """`voided`: the pointer moved meanwhile. What is open past its time counts as lapsed."""

    OPEN = "open"
    APPROVED = "approved"
    WITHDRAWN = "withdrawn"
    VOIDED = "voided"


class Verdict(models.TextChoices):
    """Of a re-check: `regressed` where the baseline does better on what was judged since."""

    HOLDS = "holds"
    REGRESSED = "regressed"
    INSUFFICIENT = "insufficient_data"


def _user() -> Any:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )


def _owned(to: str, *, null: bool = False) -> Any:
    """A reference to a row of the same owner, bound by a key over both."""
    return models.ForeignKey(
        to, null=null, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )


def _scope_key() -> Any:
    return models.CharField(
        max_length=LONGEST_SCOPE_KEY, db_collation="C", help_text="The scope set as one text; * = all."
    )


class RankingProfile(OwnedModel):
    """Learned multipliers with the evidence for them; immutable.

    `evaluation_id` and `holdout_id` name what may be gone by its term; `evidence` keeps their decisions, gains and
    checksums. `policy_sha256` and `contract` are what the holdout was answered under: elsewhere the multipliers mean
    something else, and do not apply.
    """

    created_at = models.DateTimeField()
    scopes = ArrayField(models.CharField(max_length=64), null=True, help_text="Null = all.")
    scope_key = _scope_key()
    surface = models.CharField(max_length=8)
    formula = models.CharField(max_length=16)
    multipliers = ArrayField(
        models.FloatField(), help_text="semantic, lexical, graph, recency, salience, confidence"
    )
    baseline_profile: Any = _owned("learning.RankingProfile", null=True)
    evaluation_id = models.UUIDField()
    holdout_id = models.UUIDField()
    manifest_sha256 = models.CharField(
        max_length=64, db_collation="C", help_text="Over all that the profile is made of."
    )
    contract = models.CharField(max_length=32, help_text="Scorer contract version.")
    policy_id = models.UUIDField(null=True, help_text="The stored policy of kind scoring.")
    policy_sha256 = models.CharField(max_length=64, db_collation="C")
    gate_policy_id = models.UUIDField(help_text="The stored policy of kind gate that both decisions passed.")
    effective_until = models.DateTimeField(null=True)
    evidence: Any = models.JSONField()

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "created_at",
        "scopes",
        "surface",
        "formula",
        "multipliers",
        "baseline_profile_id",
        "evaluation_id",
        "holdout_id",
        "manifest_sha256",
        "contract",
        "policy_id",
        "policy_sha256",
        "gate_policy_id",
        "effective_until",
        "evidence",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_ranking_profile"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_ranking_profile_owner_key"),
            models.CheckConstraint(name="learning_ranking_profile_surface", condition=Q(surface="results")),
            models.CheckConstraint(name="learning_ranking_profile_formula", condition=Q(formula="weighted")),
            models.CheckConstraint(
                name="learning_ranking_profile_manifest",
                condition=Q(manifest_sha256__regex=r"^[0-9a-f]{64}$"),
            ),
            models.CheckConstraint(
                name="learning_ranking_profile_multipliers", condition=Q(multipliers__len=len(FEATURES))
            ),
        ]
        indexes = [
            models.Index(
                F("principal"),
                F("created_at").desc(),
                F("id").desc(),
                name="learning_profile_newest",
            )
        ]


class ActivationProposal(OwnedModel):
    """One person's wish to activate a profile, for a different one to approve.

    Bound to the profile and to the state of the pointer that the proposer saw; `version` is a checksum over both,
    which the approver hands back.
    """

    profile: Any = _owned("learning.RankingProfile")
    scope_key = _scope_key()
    expected_profile: Any = _owned("learning.RankingProfile", null=True)
    version = models.CharField(max_length=64, db_collation="C")
    proposed_by: Any = _user()
    proposed_at = models.DateTimeField()
    valid_until = models.DateTimeField()
    reason = models.TextField()
    status = models.CharField(max_length=10, choices=ProposalStatus.choices, default=ProposalStatus.OPEN)
    decided_by: Any = _user()
    decided_at = models.DateTimeField(null=True)

    row_policy = OwnerPolicy(staff="view_traces")
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "profile_id",
        "expected_profile_id",
        "version",
        "proposed_at",
        "valid_until",
        "status",
        "decided_at",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_activation_proposal"
        constraints = [
            models.UniqueConstraint(
                fields=["principal", "id"], name="learning_activation_proposal_owner_key"
            ),
            models.CheckConstraint(
                name="learning_activation_proposal_status", condition=Q(status__in=ProposalStatus.values)
            ),
        ]
        indexes = [
            models.Index(
                fields=["principal", "scope_key"],
                name="learning_proposal_open",
                condition=Q(status="open"),
            )
        ]


class RollbackDrill(OwnedModel):
    """A rehearsal on a pointer that no request can reach: the profile goes active, is seen to apply, and goes back."""

    profile: Any = _owned("learning.RankingProfile")
    drilled_at = models.DateTimeField()
    actor = models.CharField(max_length=10, choices=Actor.choices)
    actor_user: Any = _user()
    reason = models.TextField()
    passed = models.BooleanField()
    evidence: Any = models.JSONField(help_text="Each step with what was expected and what was seen.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "profile_id",
        "drilled_at",
        "actor",
        "passed",
        "evidence",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_rollback_drill"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_rollback_drill_owner_key"),
            models.CheckConstraint(name="learning_rollback_drill_actor", condition=Q(actor__in=Actor.values)),
        ]
        indexes = [
            models.Index(F("principal"), F("profile"), F("drilled_at").desc(), name="learning_drill_newest")
        ]


class Recheck(OwnedModel):
    """What an active profile is worth on labels admitted since it was made; written when there is something new."""

    profile: Any = _owned("learning.RankingProfile")
    checked_at = models.DateTimeField()
    input_sha256 = models.CharField(
        max_length=64, db_collation="C", help_text="Over the labels and receipts."
    )
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    groups = models.PositiveIntegerField(help_text="Query groups judged since.")
    ndcg_gain = models.FloatField(null=True, help_text="Mean over groups, against the baseline.")
    interval_low = models.FloatField(null=True)
    interval_high = models.FloatField(null=True)

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "profile_id",
        "checked_at",
        "verdict",
        "groups",
        "ndcg_gain",
        "interval_low",
        "interval_high",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.CheckConstraint(name="learning_recheck_verdict", condition=Q(verdict__in=Verdict.values)),
        ]
        indexes = [
            models.Index(F("principal"), F("profile"), F("checked_at").desc(), name="learning_recheck_newest")
        ]


class Transition(OwnedModel):
    """One accepted command on a pointer: who made what of which state, and why. Also when nothing changed.

    The pointer is (principal, scope_key). `profile` is the one that the command named; the state before and after
    are `expected_profile` and `resulting_profile`, null at base.
    """

    scopes = ArrayField(models.CharField(max_length=64), null=True, help_text="Null = all.")
    scope_key = _scope_key()
    recorded_at = models.DateTimeField()
    kind = models.CharField(max_length=10)
    profile: Any = _owned("learning.RankingProfile")
    expected_profile: Any = _owned("learning.RankingProfile", null=True)
    resulting_profile: Any = _owned("learning.RankingProfile", null=True)
    change_id = models.CharField(
        max_length=128, null=True, help_text="The command's key; null = the platform."
    )
    actor = models.CharField(max_length=10, choices=Actor.choices)
    actor_user: Any = _user()
    proposal: Any = _owned("learning.ActivationProposal", null=True)
    drill_id = models.UUIDField(null=True, help_text="The rehearsal that it belongs to.")
    reason = models.TextField(blank=True)
    evidence: Any = models.JSONField(default=dict)

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "scopes",
        "recorded_at",
        "kind",
        "profile_id",
        "expected_profile_id",
        "resulting_profile_id",
        "change_id",
        "actor",
        "proposal_id",
        "drill_id",
        "reason",
        "evidence",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            # Also the index by which a search finds the newest transition of its pointer.
            models.UniqueConstraint(
                fields=["principal", "scope_key", "recorded_at"], name="learning_transition_order"
            ),
            models.CheckConstraint(
                name="learning_transition_kind", condition=Q(kind__in=[kind.value for kind in TransitionKind])
            ),
            models.CheckConstraint(name="learning_transition_actor", condition=Q(actor__in=Actor.values)),
            models.CheckConstraint(
                name="learning_transition_result",
                condition=~Q(kind__in=["deactivate", "expire"]) | Q(resulting_profile__isnull=True),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"),
                F("recorded_at").desc(),
                F("id").desc(),
                name="learning_transition_newest",
                condition=Q(drill_id__isnull=True),
            )
        ]
