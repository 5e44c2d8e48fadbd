"""Routes of context ablation and presence."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from apps.core.api_answers import answer, id_of, query_values
from apps.core.schemas import parse
from apps.feedback import selectors
from apps.feedback.api.labels import body_as
from apps.feedback.api.outcomes import CURSOR, LIMIT
from apps.feedback.documents import AblationMade, AblationPage, AssessmentPage, AssessmentShown
from apps.feedback.schemas import AblationRequest, AssessmentRequest
from apps.feedback.services.ablations import ablate, assess
from apps.traces.api_base import MemoryAPIView
from apps.traces.schemas import PageRequest


class AblationsView(MemoryAPIView):
    @extend_schema(request=AblationRequest, responses={200: AblationMade})
    def post(self, request: Request, receipt_id: str) -> HttpResponse:
        """Take entries out of the context of a receipt, and see the text that remains.

        Exactly these entries go; everything else stays byte for byte, and nothing takes their place. The context is
        rendered again from the present texts and must still have the receipt's hash. The same entries are one record,
        however often they are taken out; a record holds no text. Codes beside the common ones: `unknown_receipt` 404;
        `node_not_in_receipt`, `not_in_context` 422; `context_changed`, `corrupt_receipt` 409.
        """
        submission = body_as(request, AblationRequest)
        return answer(self.in_session(lambda: ablate(receipt_id=id_of(receipt_id), submission=submission)))

    @extend_schema(responses={200: AblationPage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """List the ablations of a receipt, newest first, without texts. `unknown_receipt` 404."""
        query = parse(PageRequest, query_values(request, whole=("limit",)))
        return answer(self.in_session(lambda: selectors.ablations_page(query, receipt_id=id_of(receipt_id))))


class AssessmentsView(MemoryAPIView):
    @extend_schema(request=AssessmentRequest, responses={200: AssessmentShown})
    def post(self, request: Request, ablation_id: str) -> HttpResponse:
        """Say whether an answer was right with the context, and without the one entry that was taken out.

        The entry must be cited by the citation set that you name, and that one must be of the same context. The tier
        says what the entry's presence was worth: `load_bearing` 1, `cited_non_flipping` 0.6, `misleading` -1,
        `cited_wrong_noncuring` 0. It is listed and changes nothing. The same body under its `evaluation_id` gives the
        first record again. Codes beside the common ones: `unknown_ablation` 404; `several_targets`,
        `unknown_citation`, `not_cited` 422; `context_changed` (the citation is of another
        context), `idempotency_conflict` 409.
        """
        submission = body_as(request, AssessmentRequest)
        return answer(self.in_session(lambda: assess(ablation_id=id_of(ablation_id), submission=submission)))

    @extend_schema(responses={200: AssessmentPage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request, ablation_id: str) -> HttpResponse:
        """List the assessments of an ablation, newest first. `unknown_ablation` 404."""
        query = parse(PageRequest, query_values(request, whole=("limit",)))
        return answer(
            self.in_session(lambda: selectors.assessments_page(query, ablation_id=id_of(ablation_id)))
        )
