"""The routes of the front door."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.core.api_answers import answer, id_of, query_values
from apps.core.schemas import parse
from apps.search.documents import SearchAnswer
from apps.search.explain import explain
from apps.search.explained import ExplainQuery, Explanation
from apps.search.schemas import SearchRequest
from apps.search.services import search
from apps.traces.api_base import body_of


class SearchView(PrincipalAPIView):
    required_scope = "search"

    @extend_schema(request=SearchRequest, responses={200: SearchAnswer})
    def post(self, request: Request) -> HttpResponse:
        """Search the memory, scan what is new in it, or fetch nodes by their ids.

        `node_ids` make it a fetch, a blank query a scan. Every successful call is recorded as a trace before it is
        answered; where that was not possible, `memory_error` says why, and the rows are there all the same.
        Codes beside the common ones: `invalid_memory_request` 400, `unavailable` 503.
        """
        call = body_of(request, SearchRequest, nullable=("scopes",))
        fitted = search(caller=self.principal, request=call, verified=self.caller.via in {"token", "jwt"})
        return HttpResponse(fitted.body, content_type="application/json")


class ExplainView(PrincipalAPIView):
    required_scope = "search"

    @extend_schema(
        responses={200: Explanation},
        parameters=[
            OpenApiParameter("receipt_id", str, required=True, description="Of one of your searches."),
            OpenApiParameter("node_id", str, required=True, description="Any node."),
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """Say why a node stands where it does in the answer of a receipt, or why it is none of its rows.

        A returned row is explained by what was recorded; any other node is asked of the memory as it is now. A node
        of somebody else is `absent`. `unknown_receipt` 404, `corrupt_receipt` 409.
        """
        query = parse(ExplainQuery, query_values(request))
        return answer(
            explain(caller=self.principal, receipt_id=id_of(query.receipt_id), node_id=id_of(query.node_id))
        )
