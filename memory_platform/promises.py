"""Promises kept, for the start page: the jobs that keep what was promised, with their last runs."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from apps.core import ui
from apps.observations.admin.status import ROUTE as JOURNAL_STATUS
from apps.observations.admin.status import may_watch
from apps.observations.selectors.staff import overdue_now
from apps.operations.models import JobRun
from apps.operations.selectors import Freshness, freshness

SHOWN = 8
RUNS = 16
# What was promised to people, in this order; jobs that are late or fail stand before all of them.
KEPT = (
    "observations.expire",
    "traces.expire",
    "traces.erase_text",
    "operations.resume_erasures",
    "feedback.verify_ledger",
    "retrieval.replay_sample",
    "operations.verify_audit",
)
JOURNAL = KEPT[0]


def promises(request: HttpRequest) -> ui.Records | ui.EmptyState:
    """Jobs with a strip of their last runs; the journal's with what is overdue in it. At most three reads."""
    known = [job for job in freshness() if job.last_success_at or _broken(job)]
    jobs = sorted((job for job in known if job.name != "operations.watch"), key=_place)[:SHOWN]
    if not jobs:
        return ui.EmptyState("No job has run yet.", "They start with the worker and the scheduler.", level=3)
    strips: dict[str, list[ui.Run]] = {job.name: [] for job in jobs}
    outcome = {"running": "running", "succeeded": "ok", "failed": "failed", "lost": "failed"}
    for run in _recent_runs(list(strips)):
        href = reverse("admin:operations_jobrun_change", args=[run.pk])
        words = f"{run.outcome} {run.started_at:%Y-%m-%d %H:%M} UTC"
        strips[run.name].append(ui.Run(outcome[run.outcome], words, href))  # type: ignore[arg-type]
    rows = [
        ui.Record(
            [
                job.name,
                ui.RunStrip(f"Last runs of {job.name}", strips[job.name][::-1]),
                format_html("{} {}", _kept(job), _journal(request) if job.name == JOURNAL else ""),
            ],
            tone="bad" if _broken(job) else "",
        )
        for job in jobs
    ]
    columns = [ui.Column("job"), ui.Column("last runs"), ui.Column("last success", later=True)]
    return ui.Records("Promises kept", columns, rows)


def _broken(job: Freshness) -> bool:
    return job.overdue or job.consecutive_failures > 0


def _place(job: Freshness) -> tuple[bool, int, str]:
    return not _broken(job), KEPT.index(job.name) if job.name in KEPT else len(KEPT), job.name


def _recent_runs(names: list[str]) -> list[JobRun]:
    """The newest runs of each job, newest first, in one query that walks the index by name."""
    query = (
        "SELECT run.* FROM unnest(%s::text[]) wanted(name) CROSS JOIN LATERAL ("
        "SELECT * FROM operations_jobrun WHERE operations_jobrun.name = wanted.name "
        "ORDER BY started_at DESC LIMIT %s) run"
    )
    return list(JobRun.objects.raw(query, [names, RUNS]))


def _kept(job: Freshness) -> Any:
    if job.consecutive_failures:
        return ui.Mark("bad", f"failed {job.consecutive_failures} times")
    success = ui.when(job.last_success_at, relative=True)
    return format_html("{} {}", ui.Mark("bad", "overdue"), success) if job.overdue else success


def _journal(request: HttpRequest) -> Any:
    """What the last sample found overdue in the journal, and the way to its status."""
    if not may_watch(request):
        return ""
    overdue = overdue_now()
    found: Any = "overdue rows: not measured"
    if overdue is not None:
        found = ui.Mark("bad", f"{ui.count(overdue)} overdue") if overdue else "nothing overdue"
    return format_html('· {} · <a href="{}">Journal status</a>', found, reverse(f"admin:{JOURNAL_STATUS}"))
