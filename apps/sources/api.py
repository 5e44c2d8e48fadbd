"""Routes that bring text into the memory."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_base import PrincipalAPIView
from apps.core.schemas import parse
from apps.sources.schemas import NodesBatch, NodesBatchResult
from apps.sources.services import import_nodes

INVALID = "invalid_memory_request"


class NodesBatchView(PrincipalAPIView):
    required_scope = "memory"
    max_body_bytes: ClassVar[int] = 32 * 1024 * 1024

    @extend_schema(request=NodesBatch, responses={200: NodesBatchResult})
    def post(self, request: Request) -> Response:
        """Import up to 500 passages, each with a result of its own.

        The same text at the same place is `unchanged` and brings its provenance up to date; another text
        replaces the old row. Vectors follow in the background; until then the words find the passage.
        Codes of items: `invalid_item`, `text_too_long`, `bad_identity`.
        """
        batch = parse(NodesBatch, request.data, code=INVALID)
        results = import_nodes(items=batch.items)
        return Response(NodesBatchResult(results=results).model_dump(mode="json", exclude_none=True))
