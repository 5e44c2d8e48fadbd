"""The journal as a subject of retention reviews: since when it keeps, what is told, and how its lives get shorter."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Q

from apps.core import clock, policies
from apps.core.db.sessions import maintenance_session
from apps.core.problems import InvalidRequest
from apps.observations.constants import LEAST_RECORD_HOURS, RECORD_HOURS, TEXT_DAYS
from apps.observations.policy import KIND, collecting, first_enabled
from apps.observations.selectors.staff import overdue_copies
from apps.observations.standing import known
from apps.operations import reviews
from apps.operations.models import Alarm, RetentionReview

SUBJECT = "observations"
LIMITS = ("text_days", "record_hours")
LEAST = {"text_days": 1, "record_hours": LEAST_RECORD_HOURS}
ATTEMPTS, PAUSE_SECONDS = 20, 0.25


class StillLonger(RuntimeError):
    """Rows that other transactions held were left with their old deadline; the job runs again."""


def register() -> None:
    """At start-up."""
    subject = reviews.Subject(SUBJECT, starts, start_of, check, shorten, carry_out, first_enabled)
    reviews.register_subject(subject)
    reviews.register_inputs(SUBJECT, "journal", counts)
    reviews.register_inputs(SUBJECT, "curation", not_curated)
    reviews.register_inputs(SUBJECT, "corpus", corpus_changes)
    reviews.register_inputs(SUBJECT, "deletions", deletions)
    reviews.register_inputs(SUBJECT, "alarms", alarms_of_the_period)


def starts() -> dict[UUID, datetime]:
    """When each workspace began to keep."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, first_enabled_at FROM observations_collection_starts()")
        return dict(cursor.fetchall())


def start_of(workspace_id: UUID) -> datetime | None:
    return first_enabled([workspace_id]).get(workspace_id)


def check(workspace_id: UUID, limits: Mapping[str, int]) -> None:
    """Raises InvalidRequest unless each limit is lower than what is in force now."""
    now = _in_force(workspace_id)
    for name, value in limits.items():
        if name not in LIMITS:
            raise InvalidRequest("Limits are text_days and record_hours", pointer=f"/limits/{name}")
        if not LEAST[name] <= value < now[name]:
            raise InvalidRequest("A shortening is lower than what is in force", pointer=f"/limits/{name}")


def shorten(workspace_id: UUID, limits: Mapping[str, int], reason: str) -> None:
    """Publish the lower limits, in force for new rows at once."""
    before = policies.followed(workspace_id, KIND)
    policies.publish_policy(
        workspace_id=workspace_id,
        kind=KIND,
        document={**before.document, **limits},
        if_match=before.hash,
        reason=reason,
    )
    known.forget()


def carry_out(workspace_id: UUID, limits: Mapping[str, int]) -> None:
    """Move old rows' deadlines earlier, batch after batch. Raises StillLonger when some stay held by others."""
    record_hours = limits.get("record_hours", RECORD_HOURS)
    text_hours = min(limits.get("text_days", TEXT_DAYS) * 24, record_hours)
    for _ in range(ATTEMPTS):
        while _batch(
            "SELECT records + texts FROM observations_shorten(%s, %s, %s)", workspace_id, record_hours
        ):
            pass
        while _batch("SELECT observations_shorten_texts(%s, %s, %s)", workspace_id, text_hours):
            pass
        if not _living_longer(workspace_id, record_hours, text_hours):
            return
        time.sleep(PAUSE_SECONDS)
    raise StillLonger


def counts(workspace_id: UUID) -> dict[str, Any]:
    """Useful cases by age in days (null: not measured), and distinct queries of the last seven days."""
    young, middle, old, distinct, _ = _counted(workspace_id)
    return {
        "useful_0_7": young,
        "useful_8_30": middle,
        "useful_31_90": old,
        "distinct_queries_a_week": distinct,
    }


def not_curated(workspace_id: UUID) -> dict[str, Any]:
    """Nothing here promotes cases, so that nobody measures how many; who does registers under the same name."""
    return {"curated_a_week": None}


def corpus_changes(workspace_id: UUID) -> dict[str, Any]:
    """Passages of the workspace that came or were put away in the period. Deleted ones leave nothing to count."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM observations_corpus_changes(%s, %s)", [workspace_id, _period_began(workspace_id)]
        )
        standing, added, put_away = cursor.fetchone()
    return {
        "passages": standing,
        "passages_added": added,
        "passages_put_away": put_away,
        "passages_deleted": None,
    }


def deletions(workspace_id: UUID) -> dict[str, Any]:
    """What should be gone: copies past their deadline whose deletion nobody has attested, open erasures."""
    *_, erasures = _counted(workspace_id)
    overdue = overdue_copies().filter(workspace_id=workspace_id).count()
    return {"overdue_copies": overdue, "incomplete_erasures": erasures}


def alarms_of_the_period(workspace_id: UUID) -> dict[str, Any]:
    """Alarms of the journal's upkeep, of the installation and of the workspace, seen in the period."""
    began = _period_began(workspace_id)
    found = Alarm.objects.filter(
        Q(source=f"expiry:{SUBJECT}") | Q(source__startswith=f"{SUBJECT}."),
        Q(workspace=None) | Q(workspace_id=workspace_id),
        last_seen_at__gte=began,
    )
    return {"alarms": found.count(), "days": (clock.now() - began).days}


def _period_began(workspace_id: UUID) -> datetime:
    """At the review before this one; at the first, when keeping began."""
    before = RetentionReview.objects.filter(workspace_id=workspace_id, subject=SUBJECT).order_by("-made_at")
    last = before.values_list("made_at", flat=True).first()
    return last or start_of(workspace_id) or clock.now()


def _counted(workspace_id: UUID) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM observations_review_counts(%s)", [workspace_id])
        return tuple(cursor.fetchone())


def _in_force(workspace_id: UUID) -> dict[str, int]:
    ruling = collecting(policies.followed(workspace_id, KIND).document)
    # Hashes only: there is no text to shorten.
    return {"text_days": ruling.text_days or 0, "record_hours": ruling.record_hours}


def _batch(sql: str, workspace_id: UUID, hours: int) -> int:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', '5s', true)",
            [str(settings.OBSERVATION_STATEMENT_TIMEOUT_MS)],
        )
        cursor.execute(sql, [workspace_id, hours, settings.OBSERVATION_EXPIRE_BATCH])
        return int(cursor.fetchone()[0])


def _living_longer(workspace_id: UUID, record_hours: int, text_hours: int) -> int:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT observations_living_longer(%s, %s, %s)", [workspace_id, record_hours, text_hours]
        )
        return int(cursor.fetchone()[0])
