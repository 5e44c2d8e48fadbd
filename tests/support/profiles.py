"""Ranking profiles as creation leaves them, without the evidence behind them, and commands on their pointers."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.learning.models import RankingProfile
from apps.learning.pointer import scope_key_of
from apps.learning.policy import gate_in_effect
from apps.learning.services.pointers import (
    Command,
    activate_profile,
    deactivate_profile,
    roll_back_profile,
)
from apps.retrieval.policy import SCORER_CONTRACT, in_force

LEXICAL = (0.25, 4.0, 1.0, 1.0, 1.0, 1.0)
RECENT = (1.0, 1.0, 1.0, 4.0, 1.0, 1.0)


def make_profile(
    principal: PrincipalIdentity,
    multipliers: Sequence[float] = LEXICAL,
    *,
    scopes: Sequence[str] | None = None,
    baseline: UUID | None = None,
    **more: Any,
) -> UUID:
    """A profile for the scorer that is in force; `more` replaces its columns."""
    with principal_session(principal):
        ruling = in_force(principal.workspace_id)
        given: dict[str, Any] = {
            "workspace_id": principal.workspace_id,
            "principal_id": principal.principal_id,
            "created_at": clock.now(),
            "scopes": list(scopes) if scopes is not None else None,
            "scope_key": scope_key_of(tuple(scopes) if scopes is not None else None),
            "surface": "results",
            "formula": "weighted",
            "multipliers": list(multipliers),
            "baseline_profile_id": baseline,
            "evaluation_id": uuid7(),
            "holdout_id": uuid7(),
            "manifest_sha256": uuid7().hex * 2,
            "contract": SCORER_CONTRACT,
            "policy_id": ruling.reference.id,
            "policy_sha256": ruling.reference.sha256,
            "gate_policy_id": gate_in_effect(principal.workspace_id).id,
            "evidence": {},
        }
        return RankingProfile.objects.create(**given | more).pk


def activate(
    principal: PrincipalIdentity, profile: UUID, *, expected: UUID | None = None, key: str = ""
) -> dict[str, Any]:
    with principal_session(principal):
        command = Command(key or str(uuid7()), expected)
        return activate_profile(profile_id=profile, command=command).answer


def deactivate(
    principal: PrincipalIdentity, profile: UUID, *, expected: UUID | None, key: str = ""
) -> dict[str, Any]:
    with principal_session(principal):
        command = Command(key or str(uuid7()), expected)
        return deactivate_profile(profile_id=profile, command=command).answer


def roll_back(
    principal: PrincipalIdentity, profile: UUID, *, to: UUID | None, expected: UUID | None, key: str = ""
) -> dict[str, Any]:
    with principal_session(principal):
        command = Command(key or str(uuid7()), expected)
        return roll_back_profile(profile_id=profile, to=to, command=command).answer
