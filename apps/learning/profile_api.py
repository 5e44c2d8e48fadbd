"""Routes of ranking profiles: they are made from ids, and moved by commands that say what they expect."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from apps.core.api_answers import answer, id_of, query_values
from apps.core.schemas import parse
from apps.learning.api import CURSOR, LIMIT, LearningAPIView
from apps.learning.profile_documents import (
    ActivateRequest,
    ActiveQuery,
    ActiveShown,
    DeactivateRequest,
    NoQuery,
    PreviewShown,
    ProfileDetail,
    ProfileMade,
    ProfilePage,
    ProfileRequest,
    ProfilesQuery,
    RollbackRequest,
    TransitionMade,
    TransitionPage,
    TransitionsQuery,
)
from apps.learning.selectors import profiles as selectors
from apps.learning.selectors.preview import preview_activation
from apps.learning.services.pointers import (
    Command,
    activate_profile,
    deactivate_profile,
    roll_back_profile,
)
from apps.learning.services.profiles import create_profile

SCOPES = OpenApiParameter(
    "scopes", str, many=True, description="Slugs, repeated or joined by commas; `*` is the set of all scopes."
)


class ProfilesView(LearningAPIView):
    @extend_schema(responses={200: ProfilePage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request) -> HttpResponse:
        """List your ranking profiles, newest first."""
        query = parse(ProfilesQuery, query_values(request, whole=("limit",)))
        return answer(selectors.profiles_page(query))

    @extend_schema(request=ProfileRequest, responses={201: ProfileMade})
    def post(self, request: Request) -> HttpResponse:
        """Make a profile of an evaluation and the holdout that confirmed it. Nothing is activated.

        Both decisions are computed again from stored receipts and labels; there is no way to send one. The same
        evidence and term give the same profile. What is larger than 10,000 label records is refused with the reason
        `too_large`; an operator makes its profile. `unknown_evaluation`, `unknown_holdout`, `unknown_profile` 404;
        `not_promotable` (with `reason`), `not_reproducible`, `wrong_baseline` 409.
        """
        call = parse(ProfileRequest, request.data)
        made = create_profile(
            evaluation_id=call.evaluation_id,
            holdout_id=call.holdout_id,
            baseline_profile_id=call.baseline_profile_id,
            effective_until=call.effective_until,
        )
        return answer(selectors.profile_shown(made), status=201)


class ProfileView(LearningAPIView):
    @extend_schema(responses={200: ProfileDetail})
    def get(self, request: Request, profile_id: str) -> HttpResponse:
        """Show a profile with its evidence, and whether it is active and would apply. `unknown_profile` 404."""
        parse(NoQuery, query_values(request))
        return answer(selectors.profile_detail(id_of(profile_id)))


class PreviewView(LearningAPIView):
    @extend_schema(responses={200: PreviewShown})
    def get(self, request: Request, profile_id: str) -> HttpResponse:
        """Show what an activation would touch: receipts a day, and how recent queries would be ordered.

        Replayed from receipts of exactly the profile's scope set; it speaks of returned rows only.
        `unknown_profile` 404.
        """
        parse(NoQuery, query_values(request))
        return answer(preview_activation(id_of(profile_id)).shown())


class ActivateView(LearningAPIView):
    @extend_schema(request=ActivateRequest, responses={200: TransitionMade})
    def post(self, request: Request, profile_id: str) -> HttpResponse:
        """Rank requests of exactly the profile's scope set with it.

        The same `change_id` gives the same transition again. `unknown_profile` 404; `stale_state` (with `active`),
        `wrong_baseline`, `not_promotable` (with `reason`), `approval_required`, `idempotency_conflict` 409.
        """
        call = parse(ActivateRequest, request.data)
        return answer(activate_profile(profile_id=id_of(profile_id), command=command_of(call)).answer)


class DeactivateView(LearningAPIView):
    @extend_schema(request=DeactivateRequest, responses={200: TransitionMade})
    def post(self, request: Request, profile_id: str) -> HttpResponse:
        """Return the profile's scope set to base scoring. Where it is there already, that is recorded, too.

        `unknown_profile` 404; `stale_state`, `idempotency_conflict` 409.
        """
        call = parse(DeactivateRequest, request.data)
        return answer(deactivate_profile(profile_id=id_of(profile_id), command=command_of(call)).answer)


class RollbackView(LearningAPIView):
    @extend_schema(request=RollbackRequest, responses={200: TransitionMade})
    def post(self, request: Request, profile_id: str) -> HttpResponse:
        """Take the profile's scope set back to a profile that was active there before, or to base scoring.

        `unknown_profile` 404; `stale_state`, `never_active`, `not_promotable`, `idempotency_conflict` 409.
        """
        call = parse(RollbackRequest, request.data)
        moved = roll_back_profile(profile_id=id_of(profile_id), to=call.to, command=command_of(call))
        return answer(moved.answer)


class ActiveView(LearningAPIView):
    @extend_schema(responses={200: ActiveShown}, parameters=[SCOPES])
    def get(self, request: Request) -> HttpResponse:
        """Show what requests of exactly these scopes are ranked with; without any, of all scopes."""
        query = parse(ActiveQuery, query_values(request, many=("scopes",)))
        return answer(selectors.active_shown(query.scope_set))


class TransitionsView(LearningAPIView):
    @extend_schema(responses={200: TransitionPage}, parameters=[LIMIT, CURSOR, SCOPES])
    def get(self, request: Request) -> HttpResponse:
        """List every accepted command, newest first, also those that changed nothing."""
        query = parse(TransitionsQuery, query_values(request, whole=("limit",), many=("scopes",)))
        return answer(selectors.transitions_page(query))


def command_of(call: ActivateRequest) -> Command:
    return Command(call.change_id, call.expected_active, call.reason)
