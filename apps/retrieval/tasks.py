"""Upkeep of receipts: that what was stored still gives its own scores, and that what was imported goes in time."""

from collections import Counter, defaultdict
from datetime import timedelta
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import UnknownPrincipal, maintenance_session, principal_session
from apps.operations import alarms, expiry, samples
from apps.operations.tasks_base import daily, every, task
from apps.retrieval import retention
from apps.retrieval.exceptions import CorruptReceipt, UnknownReceipt
from apps.retrieval.selectors import stored_receipt

SOURCE, DRIFT = "retrieval.replay_sample", "drift"
SAMPLE = 200
"""Receipts drawn in each workspace."""


@task(
    name=SOURCE,
    schedule=daily("02:20"),
    lease=timedelta(minutes=30),
    soft_limit=timedelta(minutes=25),
    misfire="run_once",
)
def replay_sample() -> dict[str, int]:
    """Replay a sample of each workspace's receipts; one that does not reproduce is an alarm, and stays as it is."""
    drawn = _draw(SAMPLE)
    replayed: Counter[UUID] = Counter()
    drifted: Counter[UUID] = Counter()
    for (workspace, principal), receipts in drawn.items():
        checked, failed = _replay(principal, receipts)
        replayed[workspace] += checked
        drifted[workspace] += failed
    _tell(replayed, drifted)
    return {"replayed": replayed.total(), "drifted": drifted.total()}


@task(
    name="retrieval.expire_imported",
    schedule=every(hours=1),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
)
def expire_imported() -> dict[str, int]:
    """Delete imported receipts past their time, by the term in effect, with the label records that name them."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT retrieval_redate_prme()")
    return expiry.drain(retention.IMPORTED).counts


def _draw(size: int) -> dict[tuple[UUID, UUID], list[UUID]]:
    """Receipts by (workspace, principal)."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT workspace_id, principal_id, receipt_id FROM retrieval_sample_receipts(%s)", [size]
        )
        rows = cursor.fetchall()
    drawn: dict[tuple[UUID, UUID], list[UUID]] = defaultdict(list)
    for workspace, principal, receipt in rows:
        drawn[workspace, principal].append(receipt)
    return drawn


def _replay(principal: UUID, receipts: list[UUID]) -> tuple[int, int]:
    """How many were there, and how many of them do not hold."""
    checked = failed = 0
    try:
        with principal_session(principal):
            for receipt in receipts:
                try:
                    stored_receipt(receipt)
                except UnknownReceipt:  # its trace went since the draw
                    continue
                except CorruptReceipt:
                    failed += 1
                checked += 1
    except UnknownPrincipal:  # disabled or erased since
        return 0, 0
    return checked, failed


def _tell(replayed: Counter[UUID], drifted: Counter[UUID]) -> None:
    readings = [
        samples.Reading(name, counts[workspace], None, workspace)
        for name, counts in (("receipts_replayed", replayed), ("receipts_drifted", drifted))
        for workspace in replayed
    ]
    samples.record(readings)
    for workspace, checked in replayed.items():
        failed = drifted[workspace]
        found = {DRIFT: {"drifted": failed, "replayed": checked}} if failed else {}
        alarms.settle(source=SOURCE, readings=found, workspace=workspace)
