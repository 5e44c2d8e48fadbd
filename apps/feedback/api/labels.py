"""Routes of judgments and citations."""

from typing import TypeVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request

from apps.core.api_answers import answer, id_of, query_values
from apps.core.problems import InvalidRequest
from apps.core.schemas import parse
from apps.feedback import selectors
from apps.feedback.api.outcomes import CURSOR, LIMIT
from apps.feedback.documents import CitationPage, CitationSetShown, JudgmentPage, JudgmentShown
from apps.feedback.schemas import CitationsRequest, JudgmentRequest, JudgmentsQuery
from apps.feedback.services.citations import record_citations
from apps.feedback.services.judgments import record_judgment
from apps.traces.api_base import MemoryAPIView
from apps.traces.schemas import PageRequest

M = TypeVar("M", bound=BaseModel)

NARROWING = [
    OpenApiParameter("node", str, description="Records that speak of this node."),
    OpenApiParameter("surface", str, enum=["results", "context"]),
    OpenApiParameter("method", str, enum=["explicit_user", "structured_evaluation"]),
    OpenApiParameter("annotator", str, description="`principal`, or the name of whoever judged for you."),
]


def body_as(request: Request, model: type[M]) -> M:
    data = request.data
    if not isinstance(data, dict):
        raise InvalidRequest("The body is an object", pointer="")
    return parse(model, data)


def _query(request: Request) -> JudgmentsQuery:
    return parse(JudgmentsQuery, query_values(request, whole=("limit",)))


class ReceiptJudgmentsView(MemoryAPIView):
    @extend_schema(request=JudgmentRequest, responses={200: JudgmentShown})
    def post(self, request: Request, receipt_id: str) -> HttpResponse:
        """Judge what a receipt returned, or correct a judgment.

        `labels` maps node ids to true (relevant) or false; what you leave out stays unknown. `supersedes` names an
        earlier record that the new labels replace, for the nodes that they name; `withdraws` takes labels back.
        One entry that does not hold refuses all. The same body under its `feedback_id` gives the first record
        again. Codes beside the common ones: `unknown_receipt` 404; `node_not_in_receipt`, `not_in_context`,
        `no_content`, `unknown_judgment`, `node_not_in_judgment` 422; `idempotency_conflict`, `other_annotator`,
        `corrupt_receipt` 409.
        """
        submission = body_as(request, JudgmentRequest)
        return answer(
            self.in_session(lambda: record_judgment(receipt_id=id_of(receipt_id), submission=submission))
        )

    @extend_schema(responses={200: JudgmentPage}, parameters=[LIMIT, CURSOR, *NARROWING])
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """List the judgments of one receipt, newest first. `unknown_receipt` 404."""
        query = _query(request)
        if query.receipt is not None:
            raise InvalidRequest("The receipt is in the path", pointer="/receipt")
        return answer(self.in_session(lambda: selectors.judgments_page(query, receipt_id=id_of(receipt_id))))


class JudgmentsView(MemoryAPIView):
    @extend_schema(
        responses={200: JudgmentPage},
        parameters=[
            LIMIT,
            CURSOR,
            OpenApiParameter("receipt", str, description="Of this receipt."),
            *NARROWING,
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """List your judgments by admission, newest first, with which of their labels are in force."""
        query = _query(request)
        return answer(self.in_session(lambda: selectors.judgments_page(query)))


class CitationsView(MemoryAPIView):
    @extend_schema(request=CitationsRequest, responses={200: CitationSetShown})
    def post(self, request: Request, receipt_id: str) -> HttpResponse:
        """Record what an answer cited out of the context of a receipt.

        An empty `cited_node_ids` says that the answer cited nothing, which is not the same as saying nothing.
        Citations rank nothing. The same body under its `citation_id` gives the first record again. Codes beside the
        common ones: `unknown_receipt` 404; `node_not_in_receipt`, `not_in_context`, `no_content` 422;
        `idempotency_conflict`, `corrupt_receipt` 409.
        """
        submission = body_as(request, CitationsRequest)
        return answer(
            self.in_session(lambda: record_citations(receipt_id=id_of(receipt_id), submission=submission))
        )

    @extend_schema(responses={200: CitationPage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """List the citation sets of a receipt, newest first, and its state over all. `unknown_receipt` 404."""
        query = parse(PageRequest, query_values(request, whole=("limit",)))
        return answer(self.in_session(lambda: selectors.citations_page(query, receipt_id=id_of(receipt_id))))
