"""What staff with `manage_profiles` do for a principal beside its pointer: evaluate, hold out, make a profile, look
whether evidence still reproduces.

Each is the principal's own service under that principal's identity, with the user as actor and an audit entry.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from apps.core import audit, clock
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden, NotFound, StateConflict
from apps.core.reasons import check_reason
from apps.core.schemas import parse
from apps.learning.exceptions import NotPromotable, UnknownEvaluation, UnknownHoldout, UnknownProfile
from apps.learning.models import Evaluation, Holdout, RankingProfile
from apps.learning.pointer import scope_key_of
from apps.learning.requests import EvaluationRequest, HoldoutRequest
from apps.learning.schemas import RankingMultipliers
from apps.learning.scorer import FEATURES
from apps.learning.selectors.evaluations import evaluation_of
from apps.learning.selectors.profiles import pointer_at, profile_of
from apps.learning.services.evaluations import cancel_evaluation, start_evaluation
from apps.learning.services.evidence import TOO_LARGE, evidence_for
from apps.learning.services.holdouts import cancel_holdout, start_holdout
from apps.learning.services.profiles import create_profile

GRANT = "manage_profiles"
EVALUATION, HOLDOUT = "learning.evaluation", "learning.holdout"
PROFILE = "learning.rankingprofile"


def start_evaluation_for(
    *, principal_id: UUID, scopes: Sequence[str] | None, surface: str, key: str, reason: str
) -> UUID:
    """Ask for an evaluation of a principal under the gate policy, once a key; its id.

    Raises Forbidden, InvalidRequest (the reason), StateConflict (idempotency_conflict).
    """
    check_reason(reason)
    with acting_for(principal_id):
        request = parse(EvaluationRequest, {"scopes": scopes, "surface": surface})
        return _evaluation_asked(request, key, reason)


def repeat_evaluation_for(*, evaluation_id: UUID, key: str, reason: str) -> UUID:
    """Ask the question of an evaluation again, on the labels of now and under the gate policy of now.

    Raises UnknownEvaluation, Forbidden, InvalidRequest (the reason).
    """
    check_reason(reason)
    with acting_for(_owner(Evaluation, evaluation_id, UnknownEvaluation)):
        before = Evaluation.objects.get(pk=evaluation_id)
        asked = {"scopes": before.scopes, "surface": before.surface, "query_groups": before.query_groups}
        return _evaluation_asked(parse(EvaluationRequest, asked), key, reason)


def _evaluation_asked(request: EvaluationRequest, key: str, reason: str) -> UUID:
    began = clock.now()
    made = start_evaluation(idempotency_key=key, request=request)
    # A known key gives the run that is there, which has its entry.
    if Evaluation.objects.filter(pk=made, requested_at__gte=began).exists():
        audit.record("learning.start_evaluation", EVALUATION, made, reason=reason)
    return made


def cancel_evaluation_for(*, evaluation_id: UUID, reason: str) -> None:
    """Have a principal's evaluation stop. Raises UnknownEvaluation, AlreadyEnded, Forbidden."""
    check_reason(reason)
    with acting_for(_owner(Evaluation, evaluation_id, UnknownEvaluation)):
        cancel_evaluation(evaluation_id=evaluation_id)
        audit.record("learning.cancel_evaluation", EVALUATION, evaluation_id, reason=reason)


def start_holdout_for(*, evaluation_id: UUID, query_set_id: UUID, key: str, reason: str) -> UUID:
    """Hold an evaluation's proposal out on a query set, under the gate policy, once a key; its id.

    What is active on its scope set now is the baseline, since only from there can a profile of it go active. Raises
    UnknownEvaluation, UnknownQuerySet, NoProposal, QueriesOverlap, Forbidden, InvalidRequest (the reason).
    """
    check_reason(reason)
    with acting_for(_owner(Evaluation, evaluation_id, UnknownEvaluation)):
        request = HoldoutRequest(
            evaluation_id=evaluation_id,
            query_set_id=query_set_id,
            baseline_multipliers=_active_multipliers(evaluation_id),
        )
        began = clock.now()
        made = start_holdout(idempotency_key=key, request=request)
        if Holdout.objects.filter(pk=made, requested_at__gte=began).exists():
            audit.record("learning.start_holdout", HOLDOUT, made, reason=reason)
        return made


def _active_multipliers(evaluation_id: UUID) -> RankingMultipliers:
    """Of the profile that is active on the scope set of an evaluation; unity at base."""
    scopes = evaluation_of(evaluation_id).scopes
    active = pointer_at(scope_key_of(tuple(scopes) if scopes is not None else None)).active
    if active is None:
        return RankingMultipliers()
    return RankingMultipliers(**dict(zip(FEATURES, profile_of(active).multipliers, strict=True)))


def cancel_holdout_for(*, holdout_id: UUID, reason: str) -> None:
    """Have a principal's holdout stop. Raises UnknownHoldout, AlreadyEnded, Forbidden."""
    check_reason(reason)
    with acting_for(_owner(Holdout, holdout_id, UnknownHoldout)):
        cancel_holdout(holdout_id=holdout_id)
        audit.record("learning.cancel_holdout", HOLDOUT, holdout_id, reason=reason)


def create_profile_for(
    *, holdout_id: UUID, baseline_profile_id: UUID | None, effective_until: datetime | None, reason: str
) -> RankingProfile:
    """Make the profile that a holdout and its evaluation carry. Raises as `create_profile`, and Forbidden."""
    check_reason(reason)
    with acting_for(_owner(Holdout, holdout_id, UnknownHoldout)):
        evaluation_id = Holdout.objects.values_list("evaluation_id", flat=True).get(pk=holdout_id)
        made = create_profile(
            evaluation_id=evaluation_id,
            holdout_id=holdout_id,
            baseline_profile_id=baseline_profile_id,
            effective_until=effective_until,
        )
        audit.record(
            "learning.create_profile",
            PROFILE,
            made.pk,
            reason=reason,
            details={"evaluation": str(evaluation_id), "holdout": str(holdout_id)},
        )
        return made


def _owner(model: type[Evaluation | Holdout], key: UUID, missing: type[NotFound]) -> UUID:
    """Whose it is, where the staff session sees it. Raises `missing`."""
    current_staff()
    owner: UUID | None = model._default_manager.filter(pk=key).values_list("principal_id", flat=True).first()
    if owner is None:
        raise missing
    return owner


class Reproduction(StrEnum):
    """What computing the evidence of a profile again has come to."""

    HOLDS = "holds"
    BELOW_GATE = "below_gate"
    DIFFERS = "differs"
    GONE = "gone"
    TOO_LARGE = "too_large"


def reproduction_for(*, profile_id: UUID) -> Reproduction:
    """Compute both decisions of a profile again from what is stored now; nothing is written.

    Raises UnknownProfile, Forbidden.
    """
    current_staff()
    found = RankingProfile.objects.filter(pk=profile_id)
    row = found.values_list("principal_id", "evaluation_id", "holdout_id").first()
    if row is None:
        raise UnknownProfile
    owner, evaluation_id, holdout_id = row
    with acting_for(owner):
        try:
            evidence_for(evaluation_id, holdout_id)
        except NotFound:
            return Reproduction.GONE
        except NotPromotable as refused:
            too_large = refused.more.get("reason") == TOO_LARGE
            return Reproduction.TOO_LARGE if too_large else Reproduction.BELOW_GATE
        except StateConflict:
            return Reproduction.DIFFERS
    return Reproduction.HOLDS


@contextmanager
def acting_for(principal_id: UUID) -> Iterator[None]:
    """As the principal, with the user as actor. Raises Forbidden without the grant on its workspace."""
    try:
        with act_for(principal_id, GRANT):
            yield
    except GrantMissing:
        raise Forbidden from None
