"""The route of the front door."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.search.documents import SearchAnswer
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
