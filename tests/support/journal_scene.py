"""A journal that has been on for a month: rows of every disposition, copies, a review, processes, runs, samples."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.contrib.auth.models import User

from apps.accounts.models import Workspace
from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.observations.models import ExportRecord
from apps.observations.models.exports import Location
from apps.observations.selectors.staff import SAMPLES
from apps.observations.services import enrolments, exports
from apps.observations.services.reviews import SUBJECT
from apps.operations import expiry, reviews, samples
from apps.operations.models import Job, JobRun, Process
from apps.operations.models.reviews import Decision
from tests.support import journal

HOUR = timedelta(hours=1)
DISPOSITIONS = ("retained", "retained", "disabled", "filtered", "private")
LIVE, STALE = timedelta(seconds=6), timedelta(minutes=7)
JOB = "observations.expire"
STALE_RELEASE = "9f00ab12cd34"


@dataclass(frozen=True)
class Kept:
    """Ids of what the pages show: one row with text, feedback and trace, and a copy that is overdue."""

    observation: UUID
    overdue: UUID
    review: UUID
    enrolment: UUID


def keep(
    workspace: Workspace,
    principals: Sequence[PrincipalIdentity],
    staff: User,
    *,
    query: str,
    trace: UUID | None = None,
    rows: int = 24,
) -> Kept:
    """The first principal's rows are the newest. `staff` holds every grant; the caller has configured the journal."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        journal.set_policy(owner, workspace.pk)
        with staff_session(staff):
            enrolled = [_enrol(principal) for principal in principals]
            _stopped_once(workspace)
        _began(owner, workspace, timedelta(days=32))
        newest = _rows(owner, principals, query, rows, trace)
        overdue = _copies(owner, principals[0], staff)
    with staff_session(staff):
        review = reviews.decide(
            subject=SUBJECT,
            workspace_id=workspace.pk,
            decision=Decision.KEEP,
            next_due_at=clock.now() + timedelta(days=5),
            reason="the cases of the first month are still looked at",
        )
    _upkeep(workspace)
    return Kept(newest, overdue, review.pk, enrolled[0])


def _began(owner: Any, workspace: Workspace, ago: timedelta) -> None:
    owner.execute("ALTER TABLE core_storedpolicy DISABLE TRIGGER USER")
    owner.execute(
        "UPDATE core_storedpolicy SET effective_from = effective_from - %s "
        "WHERE workspace_id = %s AND kind = 'collection'",
        [ago, workspace.pk],
    )
    owner.execute("ALTER TABLE core_storedpolicy ENABLE TRIGGER USER")


def _enrol(principal: PrincipalIdentity) -> UUID:
    row = enrolments.enrol(
        principal_id=principal.principal_id,
        purpose=journal.PURPOSE,
        consent_version=journal.CONSENT,
        reason="agreed in writing",
    )
    return row.pk


def _stopped_once(workspace: Workspace) -> None:
    thrown = enrolments.throw_kill_switch(workspace_id=workspace.pk, reason="a source was being moved")
    enrolments.release_kill_switch(kill_switch_id=thrown.pk, reason="it has moved")


def _rows(
    owner: Any, principals: Sequence[PrincipalIdentity], query: str, rows: int, trace: UUID | None
) -> UUID:
    """Newest last. The newest has ten hits, feedback on two of them, a text that is nearly due, and its trace."""
    for at in range(rows, 0, -1):
        disposition = DISPOSITIONS[at % len(DISPOSITIONS)]
        journal.record(
            owner,
            principals[at % len(principals)],
            ago=at * 26 * HOUR,
            text=query if disposition == "retained" else None,
            disposition=disposition,
            corpus="private" if disposition == "private" else "shared",
            hits=tuple(uuid7() for _ in range(1 + at % 9)),
        )
    hits = tuple(uuid7() for _ in range(10))
    life = timedelta(hours=30)
    newest = journal.record(owner, principals[0], ago=2 * HOUR, text=query, text_life=life, hits=hits)
    for hit in hits[:2]:
        journal.feedback(owner, principals[0], newest, hit)
    owner.execute("ALTER TABLE observations_observation DISABLE TRIGGER USER")
    owner.execute(
        "UPDATE observations_observation SET purpose = %s, consent_version = %s",
        [journal.PURPOSE, journal.CONSENT],
    )
    owner.execute(
        "UPDATE observations_observation SET trace_id = %s, snapshot = %s WHERE id = %s",
        [trace, json.dumps(_snapshot(hits)), newest],
    )
    owner.execute("ALTER TABLE observations_observation ENABLE TRIGGER USER")
    return newest


def _snapshot(hits: Sequence[UUID]) -> dict[str, Any]:
    """Each hit with hashes of its own; the fourth was cut on its way."""

    def digest(*words: object) -> str:
        return hashlib.sha256(repr(words).encode()).hexdigest()

    shown = []
    for rank, hit in enumerate(hits, 1):
        whole, cut = digest("text", rank), rank == 4
        shown.append(
            {
                **journal.hit_of(hit, rank),
                "sourceRef": digest("source", rank // 2),
                "indexedContentHash": whole,
                "retrievedContentHash": whole,
                "returnedContentHash": digest("excerpt", rank) if cut else whole,
                "excerpted": cut,
            }
        )
    counts = {"availableCount": len(hits), "returnedCount": len(hits), "omittedHits": False}
    return {"version": 1, **counts, "hits": shown}


def _copies(owner: Any, principal: PrincipalIdentity, staff: User) -> UUID:
    """Three copies: overdue, attested, outstanding."""
    made = []
    for location in (Location.FILE, Location.API, Location.API):
        with principal_session(principal):
            exports.export(location=location)
            made.append(ExportRecord.objects.order_by("-id").values_list("pk", flat=True)[0])
    owner.execute("ALTER TABLE observations_export_record DISABLE TRIGGER USER")
    for days, key in ((40, made[0]), (9, made[1])):
        owner.execute(
            "UPDATE observations_export_record SET exported_at = exported_at - %s, "
            "earliest_expires_at = now() - interval '9 days', latest_expires_at = now() - interval '2 days' "
            "WHERE id = %s",
            [timedelta(days=days), key],
        )
    owner.execute("ALTER TABLE observations_export_record ENABLE TRIGGER USER")
    with staff_session(staff):
        exports.attest_deletion(export_id=made[1], reason="the owner confirmed it in writing")
    return made[0]


def _upkeep(workspace: Workspace) -> None:
    """A real run of expiry, and what would be there of the days before it."""
    expiry.drain("observations")
    now = clock.now()
    for at in range(96):
        _run(now - at * timedelta(minutes=15), failed=at == 5)
    Job.objects.update_or_create(name=JOB, defaults={"last_success_at": now - timedelta(minutes=4)})
    for hours in range(72):
        if hours in (30, 31, 32):
            continue
        overdue = 3.0 if hours == 20 else 0.0
        taken = [samples.Reading(name, overdue) for name in SAMPLES]
        samples.record(taken, at=now - hours * HOUR - timedelta(minutes=1))
    _processes(workspace, now)


def _run(at: datetime, *, failed: bool) -> None:
    JobRun.objects.create(
        name=JOB,
        lease_key=JOB,
        asked_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=1),
        lease_expires_at=at + timedelta(minutes=15),
        outcome="failed" if failed else "succeeded",
        code="sqlstate_57014" if failed else "",
        counts={} if failed else {"records": 2, "texts": 1},
    )


def beat() -> None:
    """The processes that live report again; a picture may be taken minutes after the scene was made."""
    Process.objects.exclude(release=STALE_RELEASE).update(seen_at=clock.now() - LIVE)


def _processes(workspace: Workspace, now: datetime) -> None:
    known = {str(workspace.pk): {"mode": "platform-text", "generation": 1}}
    told = {
        "gate_open": True,
        "ceiling": "platform-text",
        "killed": False,
        "workspaces": {},
        "circuit_closed": True,
        "admissions": {},
        "writes": {},
    }
    searches = {
        "workspaces": known,
        "admissions": {"admitted": 214, "not_enrolled": 1204, "private_not_allowed": 17},
        "writes": {"stored": 213, "failed": 1},
    }
    for pid, (kind, ago, report) in enumerate(
        (
            ("web", LIVE, searches),
            ("web", LIVE, {}),
            ("worker", LIVE, {}),
            ("beat", LIVE, {}),
            ("worker", STALE, {}),
        )
    ):
        Process.objects.create(
            kind=kind,
            release=STALE_RELEASE if ago is STALE else "",
            host=f"app-{pid}.example.org",
            pid=3120 + pid,
            started_at=now - timedelta(hours=5),
            seen_at=now - ago,
            report={"observations": {**told, **report}},
        )
