"""How the API reads bodies."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from apps.core.problems import InvalidRequest, PayloadTooLarge
from apps.core.schemas import loads


class StrictJSONParser(BaseParser):
    """JSON as `schemas.loads` takes it, up to the view's `max_body_bytes` (else the setting
    DATA_UPLOAD_MAX_MEMORY_SIZE). A larger body is refused by its declared length, before it is read."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return loads(_body(stream, media_type, parser_context or {}))


class LinesParser(BaseParser):
    """Lines of JSON, not looked into: numbered from 1, each as its bytes without the newline; blank ones left out.

    The same limit as for JSON.
    """

    media_type = "application/x-ndjson"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        lines = _body(stream, media_type, parser_context or {}).split(b"\n")
        return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def _body(stream: IO[Any], media_type: str | None, context: Mapping[str, Any]) -> bytes:
    if str(context.get("encoding", "utf-8")).lower().replace("-", "") not in {"utf8", "usascii"}:
        raise UnsupportedMediaType(media_type or "")
    limit = _limit(context.get("view"))
    if _declared_length(stream) > limit:
        raise PayloadTooLarge(f"The body may hold {limit} bytes", limit=limit)
    try:
        body: bytes = stream.read(limit + 1)
    except OSError:
        raise InvalidRequest("The body could not be read") from None
    if len(body) > limit:
        raise PayloadTooLarge(f"The body may hold {limit} bytes", limit=limit)
    return body


def _limit(view: Any) -> int:
    return int(getattr(view, "max_body_bytes", None) or settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0)


def _declared_length(stream: Any) -> int:
    try:
        return int(getattr(stream, "META", {}).get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
