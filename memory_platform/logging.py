"""Logs as lines of JSON, with nothing in them but what is on a list.

The law: a line carries an event (a constant), fields of the allow-list whose values are numbers or codes, and of
an exception its class and places. Messages of libraries and of the database driver may hold a query, a handle or
a secret, so of a foreign line only the constant template is kept, never what was filled in; where a library
fills in before it logs, only the place is told.
"""

import logging
import re
import sys
import traceback
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

ALLOWED = frozenset(
    {
        "event",
        "level",
        "logger",
        "timestamp",
        "request_id",
        "workspace_id",
        "caller",
        "method",
        "route",
        "status",
        "duration_ms",
        "job",
        "run_id",
        "attempt",
        "source",
        "kind",
        "code",
        "count",
        "seconds",
        "release",
        "pid",
        "where",
        "error",
        "frames",
    }
)
EVENT = re.compile(r"[a-z][a-z0-9_.]{0,79}")
CODE = re.compile(r"[A-Za-z0-9_.:/<>{}()\[\]+*?^$|\\,=@#~-]{0,200}")
REFUSED = "refused"
FOREIGN = "library_message"
MOST_FRAMES = 12
# Loggers of ours, whose message without arguments is a constant of our code.
OURS = ("apps.", "memory_platform")
# They say where a server listens and that it stops; what they fill in are addresses, signals and process ids.
PLAIN = ("gunicorn.error", "celery.apps.worker", "celery.beat", "celery.worker.consumer.connection")


def add_workspace(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """The workspace of the running session; never the principal."""
    # Logging is set up before Django's apps are; until then there is no session either.
    sessions = sys.modules.get("apps.core.db.sessions")
    workspace = getattr(sessions.current(), "workspace_id", None) if sessions is not None else None
    if workspace is not None:
        event.setdefault("workspace_id", str(workspace))
    return event


def shorten_exception(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """An exception as its class and the places it went through; its message is nobody's to print."""
    given = event.pop("exc_info", None)
    event.pop("stack_info", None)
    if not given:
        return event
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given if isinstance(given, BaseException) else None
    if error is not None:
        event["error"] = type(error).__name__
        event["frames"] = frames(error.__traceback__)
    return event


def frames(trace: TracebackType | None) -> list[str]:
    """`file:line function` of the innermost frames."""
    found = traceback.extract_tb(trace)[-MOST_FRAMES:]
    return [f"{_short(frame.filename)}:{frame.lineno}:{frame.name}" for frame in found]


def _short(path: str) -> str:
    return "/".join(path.rsplit("/", 3)[-3:])


def foreign_event(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Of a line that was not written by us: the template, or the place."""
    record: logging.LogRecord = event["_record"]
    constant = isinstance(record.msg, str) and (
        getattr(record, "filled_in", False) or record.name.startswith(OURS)
    )
    event["where"] = f"{record.module}:{record.lineno}"
    if record.name in PLAIN and record.levelno <= logging.INFO:
        event["event"] = event["event"][:200]
    else:
        event["event"] = record.msg[:200] if constant else FOREIGN
    return event


def keep_allowed(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    """Drop every field that is not on the list, and every value that is not a number or a code."""
    ours = not event.get("_foreign")
    kept: EventDict = {key: _value(value) for key, value in event.items() if key in ALLOWED}
    text = str(event.get("event", ""))
    kept["event"] = text if not ours or EVENT.fullmatch(text) else REFUSED
    return kept


def _value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, list):
        return [_value(part) for part in value]
    text = str(value)
    return text if CODE.fullmatch(text) else REFUSED


def mark_foreign(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    event["_foreign"] = True
    return event


COMMON: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    add_workspace,
    shorten_exception,
]


class _Formatter(structlog.stdlib.ProcessorFormatter):
    def format(self, record: logging.LogRecord) -> str:
        # By the time processors see the record, its arguments are filled in and gone.
        record.filled_in = bool(record.args)
        return super().format(record)


def formatter() -> logging.Formatter:
    """For every handler: one line of JSON a record."""
    return _Formatter(
        foreign_pre_chain=[foreign_event, mark_foreign, *COMMON],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            keep_allowed,
            structlog.processors.JSONRenderer(sort_keys=False),
        ],
    )


def configure_structlog() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *COMMON,
            keep_allowed,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(level: str) -> dict[str, Any]:
    """For Django's LOGGING and for gunicorn: everything goes to standard output through the one formatter."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "memory_platform.logging.formatter"}},
        "handlers": {
            "out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "json"}
        },
        "root": {"handlers": ["out"], "level": level},
        "loggers": {
            # The request line is ours; these would add the path, or print the exception to everyone.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            "gunicorn.error": {"handlers": [], "level": level, "propagate": True},
            "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
            # One line a task and state: the job's own lines say more.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
