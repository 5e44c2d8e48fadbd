"""Errors of the feedback memory. The code is the whole message: no query, handle or source id is echoed."""

from apps.core.problems import InvalidRequest, NotFound, StateConflict, Unavailable, Unprocessable

INVALID = "invalid_memory_request"


class InvalidMemoryRequest(InvalidRequest):
    code = INVALID


class UnknownTrace(NotFound):
    code, title = "unknown_trace", "There is no such trace"


class UnknownSource(Unprocessable):
    code, title = "unknown_source", "The trace does not hold that source"


class StageOrderViolation(StateConflict):
    code, title = "stage_order_violation", "A source climbs one stage at a time"


class LegalHold(StateConflict):
    code, title = "legal_hold", "A legal hold keeps this"


class MemoryUnavailable(Unavailable):
    code, title = "memory_unavailable", "The feedback memory does not answer"


class SaveFailed(Exception):
    """A trace could not be saved: a bound was exceeded or the storage failed. The rows are answered anyway."""
