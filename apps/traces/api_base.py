"""What all routes about traces share: sessions that retry, strict arguments, canonical answers."""

from collections.abc import Callable, Collection
from typing import TypeVar

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError
from drf_spectacular.utils import OpenApiParameter
from psycopg import errors as pg
from pydantic import BaseModel
from rest_framework.request import Request

from apps.accounts.api_base import PrincipalAPIView
from apps.core.api_answers import answer, id_of, query_values
from apps.core.db.sessions import principal_session
from apps.core.problems import InvalidRequest
from apps.traces.exceptions import INVALID, InvalidMemoryRequest, MemoryUnavailable
from apps.traces.schemas import parse_call

__all__ = ["KEY_HEADER", "RETRIED", "MemoryAPIView", "answer", "body_of", "id_of", "query_of", "retried"]

log = structlog.get_logger(__name__)

R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

TRIES = 3
RETRIED = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation)
"""What another try may cure. A unique violation is another call's work, which the next try then sees."""

KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="In place of `idempotency_key`; both are refused.",
)


def retried(work: Callable[[], R], *, on_failure: Callable[[], Exception] = MemoryUnavailable) -> R:
    """Run a whole transaction up to three times. Raises `on_failure` when the storage does not take it."""
    for attempt in range(1, TRIES + 1):
        try:
            return work()
        except (OperationalError, InterfaceError, IntegrityError) as error:
            curable = isinstance(error.__cause__, RETRIED)
            if curable and attempt < TRIES:
                continue
            if isinstance(error, IntegrityError) and not curable:
                raise
            log.error("feedback memory unavailable")
            raise on_failure() from None
    raise AssertionError("unreachable")


class MemoryAPIView(PrincipalAPIView):
    """A route about traces. Its view must be marked `own_transactions`, since it retries transactions."""

    required_scope = "feedback"

    def in_session(self, work: Callable[[], R]) -> R:
        """Run `work` in a session of the caller, again after a deadlock; 503 `memory_unavailable` otherwise."""

        def once() -> R:
            with principal_session(self.principal):
                return work()

        return retried(once)


def body_of(request: Request, model: type[M], *, nullable: Collection[str] = ()) -> M:
    """The body as a model, with the idempotency key out of the header where it is there."""
    try:
        data = request.data
    except InvalidRequest as refused:
        raise InvalidMemoryRequest(refused.detail, pointer=refused.pointer) from None
    if not isinstance(data, dict):
        raise InvalidMemoryRequest("The body is an object", pointer="")
    header = request.headers.get("Idempotency-Key")
    if header is not None and "idempotency_key" in model.model_fields:
        if "idempotency_key" in data:
            raise InvalidMemoryRequest("The key comes once, not also as header", pointer="/idempotency_key")
        data = data | {"idempotency_key": header}
    return parse_call(model, data, nullable=nullable)


def query_of(
    request: Request, model: type[M], *, whole: Collection[str] = (), many: Collection[str] = ()
) -> M:
    """The query string as a model. `whole` are integers, `many` may come more than once."""
    return parse_call(model, query_values(request, whole=whole, many=many, code=INVALID))
