"""Calls about ranking profiles, and their answers as the schema of the API shows them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from apps.core.schemas import AwareTime, Handle, StrictModel, Text
from apps.core.scopes import MAX_SCOPES, are_scopes
from apps.learning.applicability import Cause
from apps.learning.pointer import ALL_SCOPES, scope_key_of
from apps.retrieval.receipts.schemas import ProfileStatus

LONGEST_REASON = 1000

Reason = Annotated[Text, Field(max_length=LONGEST_REASON)]


def _scope_list(given: list[str]) -> list[str]:
    """Each may hold several, joined by commas; `*` stands alone."""
    names = [name for part in given for name in part.split(",")]
    if names != [ALL_SCOPES] and not are_scopes(names):
        raise PydanticCustomError("bad_scope", "Scopes are at most 16 slugs of at most 64 characters, or *")
    return names


ScopeList = Annotated[list[str], Field(min_length=1, max_length=MAX_SCOPES), AfterValidator(_scope_list)]


def _scope_set(names: list[str]) -> tuple[str, ...] | None:
    return None if names == [ALL_SCOPES] else tuple(sorted(set(names)))


class ProfilesQuery(StrictModel):
    """`GET /v1/learning/profiles`."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None


class TransitionsQuery(StrictModel):
    """`GET /v1/learning/transitions`: of all pointers, or of one scope set (`*`: that of all scopes)."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    scopes: ScopeList | None = None

    @property
    def scope_key(self) -> str | None:
        return None if self.scopes is None else scope_key_of(_scope_set(self.scopes))


class ActiveQuery(StrictModel):
    """`GET /v1/learning/active`: of exactly these scopes; `*`, or none: of all."""

    scopes: ScopeList = [ALL_SCOPES]

    @property
    def scope_set(self) -> tuple[str, ...] | None:
        return _scope_set(self.scopes)


class NoQuery(StrictModel):
    """A route without parameters."""


class ProfileRequest(StrictModel):
    """`POST /v1/learning/profiles`: ids alone; decisions are computed again from what is stored."""

    evaluation_id: UUID
    holdout_id: UUID
    baseline_profile_id: UUID | None = Field(
        None, description="Needed where the holdout's baseline was not unity."
    )
    effective_until: AwareTime | None = Field(None, description="From then on it no longer applies.")


class ActivateRequest(StrictModel):
    """`POST …/{id}/activate`. `expected_active`: the profile that you saw active, null at base scoring."""

    change_id: Handle
    expected_active: UUID | None
    reason: Reason = ""


class DeactivateRequest(ActivateRequest):
    """`POST …/{id}/deactivate`."""


class RollbackRequest(ActivateRequest):
    """`POST …/{id}/rollback`. `to`: a profile that was active before, null for base scoring."""

    to: UUID | None


class PolicyNamed(BaseModel):
    id: str | None
    sha256: str


class ProfileShown(BaseModel):
    """A ranking profile; immutable."""

    profile_id: str
    created_at: str
    scopes: list[str] | None
    surface: Literal["results"]
    formula: Literal["weighted"]
    multipliers: dict[str, float]
    baseline_profile_id: str | None
    evaluation_id: str
    holdout_id: str
    manifest_sha256: str
    scorer_contract: str
    scoring_policy: PolicyNamed
    gate_policy_id: str
    effective_until: str | None
    evidence: dict[str, Any]


class ProfileMade(ProfileShown):
    """The profile that the evidence makes; that of before where it was made before."""


class ProfilePage(BaseModel):
    profiles: list[ProfileShown]
    next_cursor: str | None


class ProfileDetail(BaseModel):
    """A profile and how it stands now. `inapplicable` says why it would not apply, null where it would."""

    profile: ProfileShown
    active: bool
    has_been_active: bool
    inapplicable: Cause | None


class TransitionShown(BaseModel):
    """An accepted command; `active` is the profile after it, null at base. Without `changed` nothing moved."""

    transition_id: str
    timestamp: str
    kind: Literal["activate", "deactivate", "rollback", "expire"]
    scopes: list[str] | None
    profile_id: str
    expected_active: str | None
    active: str | None
    changed: bool
    change_id: str | None
    actor: Literal["principal", "staff", "platform"]
    proposal_id: str | None
    reason: str | None
    evidence: dict[str, Any]


class TransitionMade(TransitionShown):
    """What the command did; that of before where its `change_id` was known."""


class TransitionPage(BaseModel):
    transitions: list[TransitionShown]
    next_cursor: str | None


class ActiveShown(BaseModel):
    """What requests of exactly these scopes (null: all) are ranked with."""

    scopes: list[str] | None
    active: str | None
    status: ProfileStatus
    reason: Cause | None
    multipliers: dict[str, float] | None
    transition: TransitionShown | None


class OrderShown(BaseModel):
    """The newest receipt of a recent query; node ids in their order now and under the profile. No words of it."""

    receipt_id: str
    timestamp: str
    now: list[str]
    then: list[str]
    moved: int = Field(description="Rows that would stand elsewhere.")


class PreviewShown(BaseModel):
    """What an activation would touch, replayed from receipts of exactly this scope set."""

    profile_id: str
    days: int
    receipts: int
    receipts_a_day: float
    orders: list[OrderShown]
