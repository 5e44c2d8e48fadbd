"""Routes of receipts."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.core.api_answers import answer, id_of, query_values
from apps.core.schemas import parse
from apps.retrieval import selectors
from apps.retrieval.requests import (
    NoQuery,
    ReceiptsQuery,
    ReplayShown,
    RetrievalReceiptPage,
    RetrievalReceiptShown,
)


class ReceiptsView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(
        responses={200: RetrievalReceiptPage},
        parameters=[
            OpenApiParameter("limit", int, description="1..50, default 10."),
            OpenApiParameter("cursor", str, description="`next_cursor` of the page before."),
            OpenApiParameter("since", str, description="Aware time; from here on."),
            OpenApiParameter("until", str, description="Aware time; before it."),
            OpenApiParameter("profile", str, enum=["none", "applied", "inapplicable", "request_override"]),
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """List the receipts of your searches, newest first: when, of which query, under which profile."""
        query = parse(ReceiptsQuery, query_values(request, whole=("limit",)))
        return answer(selectors.receipts_page(query))


class ReceiptView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(responses={200: RetrievalReceiptShown})
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """Show one receipt: how each returned row was scored, as it was stored, byte for byte.

        It is verified and replayed before it is shown. `unknown_receipt` 404, `corrupt_receipt` 409.
        """
        parse(NoQuery, query_values(request))
        found = selectors.stored_receipt(id_of(receipt_id))
        return HttpResponse(selectors.receipt_shown(found), content_type="application/json")


class ReplayView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(responses={200: ReplayShown})
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """Compute the scores and the order of a receipt again, from the receipt alone.

        It speaks of the returned rows only. `unknown_receipt` 404, `corrupt_receipt` 409 (bytes or schema).
        """
        parse(NoQuery, query_values(request))
        return answer(selectors.replay_shown(*selectors.replay_of(id_of(receipt_id))))
