"""Routes of history and outcomes."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from apps.feedback import selectors
from apps.feedback.documents import (
    ActivationList,
    LearnedEdgePage,
    OutcomeReceipt,
    TraceDetail,
    TracePage,
)
from apps.feedback.schemas import ActivationQuery, HistoryQuery, OutcomeRequest
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.traces.api_base import KEY_HEADER, MemoryAPIView, answer, body_of, id_of, query_of
from apps.traces.models import ReceiptKind
from apps.traces.schemas import PageRequest
from apps.traces.services.erase import erase_trace

LIMIT = OpenApiParameter("limit", int, description="1..50, default 10.")
CURSOR = OpenApiParameter("cursor", str, description="`next_cursor` of the page before.")


class TracesView(MemoryAPIView):
    @extend_schema(
        responses={200: TracePage},
        parameters=[
            LIMIT,
            CURSOR,
            OpenApiParameter("mode", str, enum=["search", "scan", "fetch", "context"]),
            OpenApiParameter("since", str, description="Aware time; from here on."),
            OpenApiParameter("until", str, description="Aware time; before it."),
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """List your traces, newest first.

        Rows that were there when a walk began are each returned once, whatever arrives meanwhile.
        """
        query = query_of(request, HistoryQuery, whole=("limit",))
        return answer(self.in_session(lambda: selectors.history(query)))


class TraceView(MemoryAPIView):
    @extend_schema(responses={200: TraceDetail}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request, trace_id: str) -> HttpResponse:
        """Show one trace: its sources with stages and activation as of now, its receipts oldest first.

        The cursor pages the receipts. `unknown_trace` 404.
        """
        query = query_of(request, PageRequest, whole=("limit",))
        return answer(
            self.in_session(
                lambda: selectors.trace_detail(id_of(trace_id), limit=query.limit, cursor=query.cursor)
            )
        )

    @extend_schema(responses={204: None})
    def delete(self, request: Request, trace_id: str) -> HttpResponse:
        """Erase one trace with its retrieval receipt and all that hangs on it.

        What it lent to edges is taken back first. `unknown_trace` 404, `legal_hold` 409.
        """
        self.in_session(lambda: erase_trace(trace_id=id_of(trace_id)))
        return HttpResponse(status=204)


class OutcomesView(MemoryAPIView):
    @extend_schema(request=OutcomeRequest, responses={200: OutcomeReceipt}, parameters=[KEY_HEADER])
    def post(self, request: Request, trace_id: str) -> HttpResponse:
        """Confirm sources that were used, or reverse a confirmation.

        Codes beside the common ones: `invalid_memory_request` 400; `unknown_trace`, `unknown_confirmation` 404;
        `unknown_source`, `source_ids_required`, `confirmation_id_required` 422; `used_source_required`,
        `idempotency_conflict` 409; `memory_unavailable` 503.
        """
        call = body_of(request, OutcomeRequest)
        outcome = Outcome(
            kind=ReceiptKind(call.outcome),
            reason=call.reason,
            source_ids=tuple(call.source_ids) if call.source_ids is not None else None,
            confirmation_id=call.confirmation_id,
        )
        return answer(
            self.in_session(
                lambda: record_outcome(
                    trace_id=id_of(trace_id), idempotency_key=call.idempotency_key, outcome=outcome
                )
            )
        )


class LearnedEdgesView(MemoryAPIView):
    @extend_schema(responses={200: LearnedEdgePage}, parameters=[LIMIT, CURSOR])
    def get(self, request: Request) -> HttpResponse:
        """List the edges that gained strength from your confirmations. Strength is not relevance."""
        query = query_of(request, PageRequest, whole=("limit",))
        return answer(
            self.in_session(lambda: selectors.learned_edges(limit=query.limit, cursor=query.cursor))
        )


class ActivationView(MemoryAPIView):
    @extend_schema(
        responses={200: ActivationList},
        parameters=[
            OpenApiParameter("source_id", str, many=True, required=True, description="1..50 of them.")
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """Show the activation of sources as of now. Reading writes nothing."""
        query = query_of(request, ActivationQuery, many=("source_id",))
        return answer(self.in_session(lambda: selectors.current_activation(query.source_id)))
