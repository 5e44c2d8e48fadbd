"""Reads of profiles, pointers and transitions, in the session of their principal."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.learning.applicability import cause_against
from apps.learning.exceptions import UnknownProfile
from apps.learning.models import RankingProfile, Transition
from apps.learning.pointer import Pointer, scope_key_of
from apps.learning.profile_documents import ProfilesQuery, TransitionsQuery
from apps.learning.scorer import FEATURES
from apps.learning.selectors.active import resolve, scorer_in
from apps.retrieval.policy import in_force

NEWEST_PROFILES = ("-created_at", "-id")


def profile_of(profile_id: UUID) -> RankingProfile:
    """A profile of the caller. Raises UnknownProfile."""
    found = RankingProfile.objects.filter(
        principal_id=current_principal().principal_id, pk=profile_id
    ).first()
    if found is None:
        raise UnknownProfile
    return found


def transitions_at(scope_key: str) -> QuerySet[Transition]:
    """All transitions of a pointer of the caller, newest first."""
    owner = current_principal().principal_id
    return Transition.objects.filter(principal_id=owner, scope_key=scope_key).order_by("-recorded_at")


def pointer_at(scope_key: str) -> Pointer:
    """Where a pointer of the caller stands."""
    newest = transitions_at(scope_key).values_list("resulting_profile_id", "recorded_at").first()
    return Pointer(*newest) if newest else Pointer()


def has_been_active(scope_key: str, profile_id: UUID) -> bool:
    """Whether the pointer ever was at this profile."""
    return transitions_at(scope_key).filter(resulting_profile_id=profile_id).exists()


def scope_set_of(profile: RankingProfile) -> tuple[str, ...] | None:
    return None if profile.scopes is None else tuple(profile.scopes)


def profile_shown(profile: RankingProfile) -> dict[str, Any]:
    """A profile as the API shows it; it never changes."""
    return {
        "profile_id": str(profile.pk),
        "created_at": clock.iso(profile.created_at),
        "scopes": profile.scopes,
        "surface": profile.surface,
        "formula": profile.formula,
        "multipliers": dict(zip(FEATURES, profile.multipliers, strict=True)),
        "baseline_profile_id": _text(profile.baseline_profile_id),
        "evaluation_id": str(profile.evaluation_id),
        "holdout_id": str(profile.holdout_id),
        "manifest_sha256": profile.manifest_sha256,
        "scorer_contract": profile.contract,
        "scoring_policy": {"id": _text(profile.policy_id), "sha256": profile.policy_sha256},
        "gate_policy_id": str(profile.gate_policy_id),
        "effective_until": clock.iso(profile.effective_until) if profile.effective_until else None,
        "evidence": profile.evidence,
    }


def profile_detail(profile_id: UUID) -> dict[str, Any]:
    """A profile with how it stands: active or not, and why it would not apply. Raises UnknownProfile."""
    profile = profile_of(profile_id)
    ruling = in_force(profile.workspace_id)
    cause = cause_against(profile, scorer_in(ruling), at=clock.now())
    return {
        "profile": profile_shown(profile),
        "active": pointer_at(profile.scope_key).active == profile.pk,
        "has_been_active": has_been_active(profile.scope_key, profile.pk),
        "inapplicable": cause,
    }


def profiles_page(query: ProfilesQuery) -> dict[str, Any]:
    """A page of the caller's profiles, newest first."""
    owner = current_principal().principal_id
    page = KeysetPage.of(
        RankingProfile.objects.filter(principal_id=owner),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="ranking_profiles",
        order=NEWEST_PROFILES,
    )
    return {"profiles": [profile_shown(row) for row in page.items], "next_cursor": page.next_cursor}


def active_shown(scopes: tuple[str, ...] | None) -> dict[str, Any]:
    """What a request of exactly these scopes (None: all) is ranked with now."""
    resolved = resolve(scopes, in_force(current_principal().workspace_id))
    newest = transitions_at(scope_key_of(scopes)).first()
    return {
        "scopes": None if scopes is None else list(scopes),
        "active": _text(resolved.use.id),
        "status": resolved.use.status,
        "reason": resolved.use.reason,
        "multipliers": dict(resolved.multipliers) if resolved.multipliers else None,
        "transition": transition_shown(newest) if newest else None,
    }


def transition_shown(row: Transition) -> dict[str, Any]:
    """A transition as the API shows it; it never changes. `active` is the profile after it, null at base."""
    return {
        "transition_id": str(row.pk),
        "timestamp": clock.iso(row.recorded_at),
        "kind": row.kind,
        "scopes": row.scopes,
        "profile_id": str(row.profile_id),
        "expected_active": _text(row.expected_profile_id),
        "active": _text(row.resulting_profile_id),
        "changed": row.expected_profile_id != row.resulting_profile_id,
        "change_id": row.change_id,
        "actor": row.actor,
        "proposal_id": _text(row.proposal_id),
        "reason": row.reason or None,
        "evidence": row.evidence,
    }


def transitions_page(query: TransitionsQuery) -> dict[str, Any]:
    """A page of the caller's transitions, newest first; rehearsals are left out."""
    owner = current_principal().principal_id
    rows = Transition.objects.filter(principal_id=owner, drill_id__isnull=True)
    if query.scope_key is not None:
        rows = rows.filter(scope_key=query.scope_key)
    page = KeysetPage.of(
        rows,
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="ranking_transitions",
        filters={"scopes": query.scope_key},
    )
    return {"transitions": [transition_shown(row) for row in page.items], "next_cursor": page.next_cursor}


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None
