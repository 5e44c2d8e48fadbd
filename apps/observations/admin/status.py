"""Journal status: is anything kept longer than promised?

The answer comes from the monitor's functions, in a session of their own: a zero that the role of staff reads proves
nothing. The rest of the page is read as the user, and each part fails alone.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db import Error as StorageError
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html

from apps.core import ui
from apps.core.access import workspaces_with
from apps.core.admin.failing import not_measured, part
from apps.core.db.sessions import own_transactions, staff_session
from apps.observations import status
from apps.observations.admin.kill_switch_head import kill_switch
from apps.observations.admin.status_parts import (
    backlog,
    deployment,
    expiry_runs,
    outcomes,
    processes,
    workspaces,
)
from apps.observations.admin.words import REASONS, said

ROUTE = "observations_status"
GRANTS = ("view_traces", "operate_collection", "audit")


def urls(wrap: Callable[[Any], Any]) -> list[URLPattern]:
    """Routes below `/admin/`; `wrap` is the site's check of who comes in."""
    # The mark of own transactions must be on what is resolved.
    return [path("observations/status/", wrap(own_transactions(status_page)), name=ROUTE)]


def may_watch(request: HttpRequest) -> bool:
    """Whether there is a workspace whose journal the user may look after."""
    return bool(workspaces_with(request, *GRANTS))


def status_page(request: HttpRequest) -> HttpResponseBase:
    """Whole, and rendered inside of the user's session."""
    user = int(request.user.pk or 0)
    with staff_session(user):
        if request.method not in ("GET", "HEAD") or not may_watch(request):
            raise Http404
    reading = read()
    with staff_session(user):
        request.current_app = admin.site.name
        context = {**admin.site.each_context(request), **page_context(request, reading)}
        response = TemplateResponse(request, "observations/page.html", context)
        response["Cache-Control"] = "no-store"
        return response.render()


def read() -> status.Reading | ui.Notice:
    """The status; in its place a notice, where it cannot be read."""
    try:
        return status.read()
    except (StorageError, status.Unreadable) as error:
        return not_measured("status", error)


def page_context(request: HttpRequest, reading: status.Reading | ui.Notice) -> dict[str, Any]:
    measured = reading if isinstance(reading, status.Reading) else None
    return {
        "title": "Journal status",
        "kill_switch": kill_switch(request),
        "notices": verdict(reading),
        "facts": ui.Facts(facts(measured), first=True),
        "sections": [
            _section("Workspaces", "workspaces", lambda: workspaces(request)),
            _section("Runs of expiry", "runs", lambda: expiry_runs(request)),
            _section("Backlog", "backlog", lambda: backlog(), "the most that was overdue, hour by hour"),
            _section("Processes", "processes", lambda: processes(request)),
            _section("What became of searches", "searches", lambda: outcomes(request), "live processes"),
            _section("This deployment", "deployment", lambda: deployment()),
        ],
    }


def _section(title: str, anchor: str, content: Callable[[], Any], note: str = "") -> ui.Section:
    return ui.Section(title=title, anchor=anchor, note=note, content=part(anchor, content))


def verdict(reading: status.Reading | ui.Notice) -> list[ui.Notice]:
    """The answer in words: kept, not kept and why, or not known, which is as bad."""
    if isinstance(reading, ui.Notice):
        why = "The status of the journal could not be read. Nobody knows whether something is kept for too long."
        return [ui.Notice("bad", f"Not measured. {why}")]
    if not reading.alarm:
        return [ui.Notice("ok", "Nothing is kept longer than promised.")]
    tone: ui.Tone = "warn" if reading.young else "bad"
    return [_told(reason, tone) for reason in reading.reasons]


def _told(reason: str, tone: ui.Tone) -> ui.Notice:
    words, remedy = REASONS.get(reason, (f"{said(reason, {}).capitalize()}.", ""))
    return ui.Notice(tone, format_html("{} {} <code>{}</code>", words, remedy, reason))


def facts(reading: status.Reading | None) -> list[ui.Fact]:
    """The numbers of the reading; not one of them is 0 when nothing was read."""
    if reading is None:
        names = ("overdue records", "overdue texts", "oldest overdue", "last success", "last drained")
        return [ui.Fact(name, "not measured") for name in names]
    values = reading.values
    counts = {name: values[name] for name in values if name.startswith("expired_")}
    found = [
        ui.Fact(f"overdue {name.removeprefix('expired_').replace('_', ' ')}", _overdue(value))
        for name, value in counts.items()
    ]
    oldest = timedelta(seconds=float(values["oldest_overdue_seconds"]))
    failures = int(values["consecutive_failures"])
    return [
        *found,
        ui.Fact("oldest overdue", ui.duration(oldest) if oldest else ui.nothing("nothing is overdue")),
        ui.Fact("last success", ui.when(values["last_success_at"], relative=True)),
        ui.Fact("last drained", ui.when(values["last_drained_at"], relative=True)),
        ui.Fact("failures in a row", ui.Mark("bad", str(failures)) if failures > 1 else str(failures)),
        ui.Fact("checked", ui.when(values["checked_at"])),
    ]


def _overdue(value: int | None) -> Any:
    return ui.Mark("bad", ui.count(value)) if value else ui.count(value)
