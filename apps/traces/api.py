"""Routes that write about a trace."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from apps.traces.api_base import KEY_HEADER, MemoryAPIView, answer, body_of, id_of
from apps.traces.schemas import UseReceipt, UsesRequest
from apps.traces.services.uses import record_uses


class UsesView(MemoryAPIView):
    @extend_schema(request=UsesRequest, responses={200: UseReceipt}, parameters=[KEY_HEADER])
    def post(self, request: Request, trace_id: str) -> HttpResponse:
        """Record that sources of a trace were selected, validated or used.

        One stage at a time, in the order of the array; one refused entry refuses the batch. Codes beside the
        common ones: `invalid_memory_request` 400, `unknown_trace` 404, `unknown_source` 422,
        `stage_order_violation` and `idempotency_conflict` 409, `memory_unavailable` 503.
        """
        call = body_of(request, UsesRequest)
        return answer(
            self.in_session(
                lambda: record_uses(
                    trace_id=id_of(trace_id), idempotency_key=call.idempotency_key, uses=call.uses
                )
            )
        )
