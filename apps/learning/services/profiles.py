"""Making a ranking profile out of stored evidence.

The law: a profile is made from ids alone. Both decisions are computed again from stored receipts and labels, and held
against the gate that is in effect; what does not come out the same, or is not enough, makes none. There is no way to
hand in a decision, a metric or a multiplier.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import canonical, clock
from apps.core.db.locks import lock_principal
from apps.core.db.sessions import current_principal
from apps.core.problems import InvalidRequest
from apps.learning.exceptions import WrongBaseline
from apps.learning.models import RankingProfile
from apps.learning.pointer import scope_key_of
from apps.learning.scorer import FEATURES
from apps.learning.selectors.profiles import profile_of
from apps.learning.services.evidence import Evidence, evidence_for


def create_profile(
    *,
    evaluation_id: UUID,
    holdout_id: UUID,
    baseline_profile_id: UUID | None = None,
    effective_until: datetime | None = None,
    however_large: bool = False,
) -> RankingProfile:
    """Make the profile that an evaluation proposed and a holdout confirmed, in the session of their principal.

    The same evidence, baseline and term give the profile that is there. `however_large`: outside of a request,
    which computes only so much again. Raises UnknownEvaluation, UnknownHoldout,
    UnknownProfile, NotPromotable (with the reason), EvidenceNotReproducible, WrongBaseline, InvalidRequest (a term
    that is over).
    """
    owner = current_principal()
    if effective_until is not None and effective_until <= clock.now():
        raise InvalidRequest("This time is over", pointer="/effective_until")
    evidence = evidence_for(evaluation_id, holdout_id, however_large=however_large)
    # Only now: computing takes seconds, in which other calls of the principal need not wait.
    lock_principal(owner.principal_id)
    baseline = _baseline(evidence, baseline_profile_id)
    scope_set = evidence.scopes
    made_of: dict[str, Any] = {
        "principal_id": str(owner.principal_id),
        "scopes": list(scope_set) if scope_set is not None else None,
        "surface": evidence.surface,
        "formula": evidence.formula,
        "multipliers": evidence.multipliers,
        "baseline_profile_id": str(baseline) if baseline else None,
        "evaluation": {"id": str(evaluation_id), "manifest_sha256": evidence.evaluation_manifest},
        "holdout": {"id": str(holdout_id), "manifest_sha256": evidence.holdout_manifest},
        "scorer_contract": evidence.contract,
        "scoring_policy_sha256": evidence.policy_sha256,
        "effective_until": clock.iso(effective_until) if effective_until else None,
    }
    manifest = canonical.checksum(made_of)
    known = RankingProfile.objects.filter(principal_id=owner.principal_id, manifest_sha256=manifest).first()
    return known or RankingProfile.objects.create(
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        created_at=clock.now(),
        scopes=list(scope_set) if scope_set is not None else None,
        scope_key=scope_key_of(scope_set),
        surface=evidence.surface,
        formula=evidence.formula,
        multipliers=[evidence.multipliers[name] for name in FEATURES],
        baseline_profile_id=baseline,
        evaluation_id=evaluation_id,
        holdout_id=holdout_id,
        manifest_sha256=manifest,
        contract=evidence.contract,
        policy_id=evidence.policy_id,
        policy_sha256=evidence.policy_sha256,
        gate_policy_id=evidence.gate_policy_id,
        effective_until=effective_until,
        evidence=dict(evidence.kept),
    )


def _baseline(evidence: Evidence, named: UUID | None) -> UUID | None:
    """The profile that the holdout's baseline was, None for base. Raises UnknownProfile, WrongBaseline."""
    if named is None:
        if any(value != 1.0 for value in evidence.baseline_multipliers.values()):
            raise WrongBaseline("The holdout's baseline was not unity; name the profile that it was")
        return None
    profile = profile_of(named)
    same_scopes = profile.scope_key == scope_key_of(evidence.scopes)
    own = dict(zip(FEATURES, profile.multipliers, strict=True))
    if not same_scopes or own != evidence.baseline_multipliers:
        raise WrongBaseline("The holdout's baseline was not this profile")
    return profile.pk
