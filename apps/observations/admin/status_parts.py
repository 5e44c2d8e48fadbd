"""What the status page shows below its verdict, each read in the user's session."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.access import current_workspace, workspace_choices, workspaces_with
from apps.observations.admin.words import OUTCOMES, said
from apps.observations.fingerprints import active_key
from apps.observations.policy import collecting, mode_of, weaker
from apps.observations.retention import NAME
from apps.observations.selectors import staff
from apps.observations.services.staff import is_open
from apps.operations.admin.jobs import run_strip
from apps.operations.models import Process
from apps.operations.rules import WATCHERS
from apps.operations.selectors import LIVE_WITHIN

SEES = ("view_traces", "operate_collection", "audit")
JOB = f"{NAME}.expire"
HOURS = 72
MOST_PROCESSES = 60
NEEDS = "Shown to whoever holds operate collection, review retention or audit."
GATE = {True: "open for this database", False: "closed: restored or copied"}


def seen(request: HttpRequest) -> list[Any]:
    """The workspaces that the page speaks of: the chosen one, or all on which the user holds a grant of it."""
    held, chosen = workspaces_with(request, *SEES), current_workspace(request)
    return [w for w in workspace_choices(request) if w.pk in held and (chosen is None or w.pk == chosen.pk)]


def workspaces(request: HttpRequest) -> ui.Records:
    """Mode and generation, and until when the last row and the last text are left; three reads for all of them."""
    shown = seen(request)
    modes = staff.policies_of([workspace.pk for workspace in shown])
    deadlines = staff.last_deadlines()
    stopped = {stop.workspace_id for stop in staff.stops()}
    rows = []
    for workspace in shown:
        policy, last = modes.get(workspace.pk), deadlines.get(workspace.pk)
        off = settings.OBSERVATION_KILL_SWITCH or None in stopped or workspace.pk in stopped
        rows.append(
            ui.Record(
                [
                    workspace.name,
                    ui.deadline(last.record if last else None, absent="no record is left"),
                    ui.deadline(last.text if last else None, absent="no text is left"),
                    _mode(policy.document) if policy else ui.nothing("not measured"),
                    _generation(policy, workspace.pk),
                    ui.Mark("warn", "stopped") if off else "not stopped",
                ]
            )
        )
    columns = [
        ui.Column("workspace"),
        ui.Column("last record until", named=True),
        ui.Column("last text until", named=True),
        ui.Column("mode", named=True),
        ui.Column("generation", named=True),
        ui.Column("kill switch", named=True),
    ]
    return ui.Records("Until when anything is left", columns, rows)


def _mode(document: dict[str, Any]) -> SafeString:
    """The weaker of this deployment's ceiling and the workspace's own."""
    own = collecting(document).mode
    ruling = weaker(mode_of(settings.OBSERVATION_MODE_CEILING), own)
    shown = format_html('<span class="ob-nowrap">{}</span>', ruling)
    return shown if ruling == own else format_html("{} (the ceiling; its policy says {})", shown, own)


def _generation(policy: Any, workspace_id: UUID) -> Any:
    if policy is None or policy.workspace_id != workspace_id:
        return ui.nothing("none of its own: the default rules")
    return str(policy.version)


def expiry_runs(request: HttpRequest) -> Any:
    if not workspaces_with(request, *WATCHERS):
        return NEEDS
    strip = run_strip(JOB)
    if not strip.runs:
        why = "They start with the worker and the scheduler, every 15 minutes."
        return ui.EmptyState("Expiry has not run yet.", why, level=3)
    href = f"{reverse('admin:operations_jobrun_changelist')}?name={JOB}"
    return format_html('{}<p class="gv-after"><a href="{}">All runs of {}</a></p>', strip, href, JOB)


def backlog() -> SafeString:
    """Overdue rows by hour as they were sampled. An hour without a sample is a gap, never 0."""
    since, most = staff.backlog(HOURS)
    hours = [since + timedelta(hours=at) for at in range(HOURS)]
    names = dict(zip(staff.SAMPLES, ("records", "texts"), strict=True))
    series = [
        ui.Series(shown, [most.get((name, hour)) for hour in hours], "line", tone)
        for (name, shown), tone in zip(names.items(), ("bad", "0"), strict=True)
    ]
    drawn = ui.Trend(
        f"Overdue rows, {HOURS} hours",
        [f"{hour:%m-%d %H:%M}" for hour in hours],
        series,
        label_name="Hour (UTC)",
        empty="Not measured: no sample was taken in this time. They come every 5 minutes.",
        zeros=True,
    )
    return carded(drawn)


def carded(content: ui.Part) -> SafeString:
    return format_html('<div class="gv-card">{}</div>', content)


def processes(request: HttpRequest) -> Any:
    """Each process as it last reported, stale ones first: what it knows is what it admits by."""
    if not workspaces_with(request, *WATCHERS):
        return NEEDS
    names = {str(workspace.pk): workspace.name for workspace in seen(request)}
    found = list(Process.objects.order_by("-seen_at")[:MOST_PROCESSES])
    stale = [process for process in found if not _live(process)]
    live = sorted((p for p in found if _live(p)), key=lambda p: (p.kind, p.started_at))
    columns = [
        ui.Column("process"),
        ui.Column("release", later=True),
        ui.Column("mode and generation, as it knows them", "main"),
        ui.Column("writes", later=True),
        ui.Column("seen"),
    ]
    empty = ui.EmptyState("No process has reported.", "Each writes a heartbeat every 10 seconds.", level=3)
    rows = [_process(process, names) for process in (*stale, *live)]
    return ui.Records("Processes", columns, rows, empty=empty)


def _live(process: Process) -> bool:
    return process.seen_at > clock.now() - LIVE_WITHIN


def _process(process: Process, names: dict[str, str]) -> ui.Record:
    told = process.report.get(NAME) or {}
    mark: Any = ui.when(process.seen_at, relative=True)
    if not _live(process):
        mark = format_html("{} {}", ui.Mark("bad", "stale"), mark)
    more = ui.Facts(
        [
            ui.Fact("host", process.host or ui.nothing("unknown")),
            ui.Fact("started", ui.when(process.started_at, relative=True)),
            ui.Fact("ceiling", told.get("ceiling", "not reported")),
            ui.Fact("kill switch of its settings", _yes(told.get("killed"), "on", "off")),
            ui.Fact("restore gate", _yes(told.get("gate_open"), GATE[True], GATE[False])),
        ]
    )
    cells = [
        format_html('<span class="ob-nowrap">{} {}</span>', process.kind, process.pid),
        _release(process.release),
        _knows(told, names),
        format_html('<span class="ob-seen">{}</span>', _circuit(told)),
        format_html('<span class="ob-seen">{}</span>', mark),
    ]
    return ui.Record(cells, more, "" if _live(process) else "bad", f"p-{process.pk}")


def _release(release: str) -> Any:
    if not release:
        return ui.nothing("unknown")
    shown = format_html('<code title="{}">{}</code>', release, release[:12])
    return shown if release == settings.RELEASE else format_html("{} {}", ui.Mark("warn", "another"), shown)


def _knows(told: dict[str, Any], names: dict[str, str]) -> Any:
    """Of the workspaces that the user sees; a process forgets them after five seconds without a search."""
    if "error" in told:
        return ui.Mark("bad", f"cannot tell: {told['error']}")
    if not told:
        return ui.nothing("not reported")
    held = {names[key]: value for key, value in (told.get("workspaces") or {}).items() if key in names}
    if not held:
        return ui.nothing("nothing in memory: reads it anew at the next search")
    pairs = ((name, value.get("mode"), value.get("generation")) for name, value in sorted(held.items()))
    return format_html_join(", ", "{}: {}, generation {}", pairs)


def _circuit(told: dict[str, Any]) -> Any:
    closed = told.get("circuit_closed")
    return (
        ui.Mark("warn", "held back: the circuit is open")
        if closed is False
        else _yes(closed, "let through", "")
    )


def _yes(value: bool | None, yes: str, no: str) -> Any:
    return ui.nothing("not reported") if value is None else yes if value else no


def outcomes(request: HttpRequest) -> Any:
    """Counts of the live web processes since each began: what was admitted and stored, and why the rest was not."""
    if not workspaces_with(request, *WATCHERS):
        return NEEDS
    admitted: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for process in Process.objects.filter(seen_at__gt=clock.now() - LIVE_WITHIN):
        told = process.report.get(NAME) or {}
        admitted.update(told.get("admissions") or {})
        stored.update(told.get("writes") or {})
    rows = [
        *_counted(admitted, "admitted", "not admitted"),
        *_counted(stored, "stored", "not stored"),
    ]
    empty = ui.EmptyState("No search was looked at yet.", "Counts begin anew with each process.", level=3)
    columns = [ui.Column("outcome", "main"), ui.Column("code", later=True), ui.Column("searches", "num")]
    return ui.Records("What became of searches", columns, rows, empty=empty)


def _counted(counts: Counter[str], good: str, bad: str) -> list[ui.Record]:
    """The good outcome first, then the reasons against it, the most frequent first."""
    rows = [ui.Record([good, good, ui.count(counts[good])])] if good in counts else []
    return rows + [
        ui.Record([f"{bad}: {said(code, OUTCOMES)}", code, ui.count(count)])
        for code, count in counts.most_common()
        if code != good
    ]


def deployment() -> SafeString:
    """What this process was started with, and whether the journal is this database's."""
    days = settings.OBSERVATION_TEXT_DAYS
    facts = ui.Facts(
        [
            ui.Fact("ceiling", mode_of(settings.OBSERVATION_MODE_CEILING)),
            ui.Fact("restore gate", GATE[True] if is_open() else ui.Mark("bad", GATE[False])),
            ui.Fact("kill switch of the settings", "on" if settings.OBSERVATION_KILL_SWITCH else "off"),
            ui.Fact("text days at most", str(days) if days else "hashes only"),
            ui.Fact("fingerprint key", "set" if active_key() else ui.Mark("warn", "none")),
            ui.Fact("release", settings.RELEASE or ui.nothing("unknown")),
        ]
    )
    return carded(facts)
