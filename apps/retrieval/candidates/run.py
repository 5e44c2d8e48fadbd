"""Channels in one round trip, each in a savepoint of its own, so that one may fail alone."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import connection

logger = logging.getLogger(__name__)

Statement = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Channel:
    """A statement, and what is set before it and set back after it."""

    statement: Statement
    before: Sequence[str] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one channel, or the class of its error."""

    rows: Sequence[tuple[Any, ...]] = ()
    error: str | None = None

    @property
    def milliseconds(self) -> float:
        """Time in the database, as the statement measured it."""
        return float(self.rows[0][-1]) if self.rows else 0.0


def answer_all(channels: Sequence[Channel]) -> list[Answer]:
    """Ask each channel; one round trip for all.

    When one fails (its timeout, a missing index), each is run again by itself, so that the others' rows are in
    place and the session stays usable.
    """
    if not channels:
        return []
    session: psycopg.Connection[Any] = connection.connection
    try:
        return _together(session, channels)
    except psycopg.Error:
        _run(session, "ROLLBACK TO SAVEPOINT channels")
    return [_alone(session, channel) for channel in channels]


def _together(session: "psycopg.Connection[Any]", channels: Sequence[Channel]) -> list[Answer]:
    with session.pipeline():
        _run(session, "SAVEPOINT channels")
        cursors = [_ask(session, channel) for channel in channels]
        _run(session, "RELEASE SAVEPOINT channels")
    return [Answer(cursor.fetchall()) for cursor in cursors]


def _ask(session: "psycopg.Connection[Any]", channel: Channel) -> "psycopg.Cursor[Any]":
    for sql in channel.before:
        _run(session, sql)
    cursor = _run(session, *channel.statement)
    for sql in channel.after:
        _run(session, sql)
    return cursor


def _alone(session: "psycopg.Connection[Any]", channel: Channel) -> Answer:
    _run(session, "SAVEPOINT channels")
    try:
        answer = Answer(_ask(session, channel).fetchall())
    except psycopg.Error as error:
        _run(session, "ROLLBACK TO SAVEPOINT channels")
        logger.warning("channel_failed sqlstate=%s", error.sqlstate)
        answer = Answer(error=f"database_{error.sqlstate or 'unknown'}")
    _run(session, "RELEASE SAVEPOINT channels")
    return answer


def _run(
    session: "psycopg.Connection[Any]", sql: str, values: dict[str, Any] | None = None
) -> "psycopg.Cursor[Any]":
    # The session's own cursors bind on the client, which a pipeline does not know.
    return psycopg.Cursor(session).execute(sql, values)
