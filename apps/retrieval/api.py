"""Routes of receipts, native and imported."""

from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.core.api_answers import answer, id_of, query_values
from apps.core.api_parsers import LinesParser, StrictJSONParser
from apps.core.schemas import parse
from apps.retrieval import imported, selectors
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.requests import (
    ImportBody,
    ImportedReceiptShown,
    ImportShown,
    NoQuery,
    ReceiptsQuery,
    ReplayShown,
    RetrievalReceiptPage,
    RetrievalReceiptShown,
)
from apps.retrieval.services import ImportedReceipt, import_lines

FORMS: Any = [RetrievalReceiptShown, ImportedReceiptShown]
SHOWN: Any = PolymorphicProxySerializer(
    component_name="AnyReceiptShown",
    serializers=FORMS,
    resource_type_field_name=None,
)


class ReceiptsView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(
        responses={200: RetrievalReceiptPage},
        parameters=[
            OpenApiParameter("limit", int, description="1..50, default 10."),
            OpenApiParameter("cursor", str, description="`next_cursor` of the page before."),
            OpenApiParameter("form", str, enum=["native", "prme"], description="`native` by default."),
            OpenApiParameter("since", str, description="Aware time; from here on."),
            OpenApiParameter("until", str, description="Aware time; before it."),
            OpenApiParameter("formula", str, enum=["none", "weighted", "rank_fusion"]),
            OpenApiParameter("scope", str, many=True, description="Once for each scope of the exact set."),
            OpenApiParameter("query_identity", str, description="`query.identity` of a listed receipt."),
            OpenApiParameter("profile", str, enum=["none", "applied", "inapplicable", "request_override"]),
            OpenApiParameter("profile_id", OpenApiTypes.UUID, description="Of native receipts."),
            OpenApiParameter("mode", str, enum=["search", "context"], description="Of native receipts."),
            OpenApiParameter("trace_id", OpenApiTypes.UUID, description="Of native receipts."),
            OpenApiParameter("request_id", OpenApiTypes.UUID, description="Of imported receipts."),
        ],
    )
    def get(self, request: Request) -> HttpResponse:
        """List the receipts of your searches, newest first: when, of which query, under which profile.

        With `form=prme` those that you imported, the last import first.
        """
        query = parse(ReceiptsQuery, query_values(request, whole=("limit",), many=("scope",)))
        page = selectors.receipts_page if query.form == "native" else imported.imported_page
        return answer(page(query))


class ReceiptImportView(PrincipalAPIView):
    required_scope = "learning"
    parser_classes = (StrictJSONParser, LinesParser)
    max_body_bytes: ClassVar[int] = 32 * 1024 * 1024

    @extend_schema(
        request={"application/json": ImportBody, "application/x-ndjson": OpenApiTypes.BINARY},
        responses={200: ImportShown},
    )
    def post(self, request: Request) -> HttpResponse:
        """Import receipts and label records that PRME wrote, one a line, all or none.

        `application/x-ndjson` takes an exported file as it is. Each receipt is verified and, from version 2 on,
        replayed; its bytes stay as they came. The same again changes nothing. `invalid_receipt`,
        `later_version_claim`, `checksum_mismatch`, `replay_mismatch`, `invalid_label_record` 400 and
        `receipt_conflict` 409 name the `line`, from 1.
        """
        body = request.data
        if not isinstance(body, list) or request.content_type == StrictJSONParser.media_type:
            lines = parse(ImportBody, body).lines
            body = [(number, line.encode()) for number, line in enumerate(lines, start=1)]
        receipts: list[ImportedReceipt] = []
        counts = import_lines(lines=body, told=lambda _, found: receipts.extend(found))
        shown = [
            {
                "request_id": str(one.request_id),
                "receipt_id": str(one.receipt_id),
                "checksum": one.checksum,
                "stored": one.stored,
            }
            for one in receipts
        ]
        return answer(
            {
                "receipts": shown,
                "labels": counts.labels,
                "known_receipts": counts.known_receipts,
                "known_labels": counts.known_labels,
            }
        )


class ReceiptView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(responses={200: SHOWN})
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """Show one receipt: how each returned row was scored, as it was stored, byte for byte.

        It is verified and replayed before it is shown. An imported one is text, in `document`.
        `unknown_receipt` 404, `corrupt_receipt` 409.
        """
        parse(NoQuery, query_values(request))
        try:
            found = selectors.stored_receipt(id_of(receipt_id))
        except UnknownReceipt:
            return answer(imported.prme_shown(imported.prme_receipt(id_of(receipt_id))))
        return HttpResponse(selectors.receipt_shown(found), content_type="application/json")


class ReplayView(PrincipalAPIView):
    required_scope = "feedback"

    @extend_schema(responses={200: ReplayShown})
    def get(self, request: Request, receipt_id: str) -> HttpResponse:
        """Compute the scores and the order of a receipt again, from the receipt alone.

        It speaks of the returned rows only. `unknown_receipt` 404, `corrupt_receipt` 409 (bytes or schema),
        `replay_unavailable` 409 (an imported receipt of version 1).
        """
        parse(NoQuery, query_values(request))
        try:
            return answer(selectors.replay_shown(*selectors.replay_of(id_of(receipt_id))))
        except UnknownReceipt:
            return answer(imported.prme_replay_shown(id_of(receipt_id)))
