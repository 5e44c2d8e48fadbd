"""Alarms: what is wrong, since when, who knows?"""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import (
    Done,
    GovernedAction,
    ModelAdmin,
    Preview,
    ReasonForm,
    choice_filter,
    workspaces_with,
)
from apps.core.admin.changelist import KeysetChangeList
from apps.operations import alarms
from apps.operations.models import Alarm, Delivery, Job
from apps.operations.rules import OPERATORS, WATCHERS

WATCH_JOB = "operations.watch"
STALE_SECONDS = 180

# Reasons in words; a code that is not here is shown as it is.
WORDS: dict[str, str] = {
    "overdue": "has not succeeded in time",
    "failing": "fails again and again",
    "lost": "lost its process while running",
    "soft_limit": "ran into its time limit",
    "delivery_failed": "notices do not arrive",
    "no_worker": "no worker is live",
    "no_beat": "no scheduler is live",
    "broken_chain": "the audit chain is broken",
    "ledger_drift": "strength differs from its credits",
    "hold_check_failed": "holds cannot be read, so nothing is deleted",
    "backlog": "more is due than gets deleted",
    "no_destination": "are missing: nobody is told of an alarm",
    "no_confirmed_destination": "have not been confirmed by a person in 180 days",
}


def register_words(words: Mapping[str, str]) -> None:
    """Have reasons of alarms of another app read as sentences."""
    WORDS.update(words)


def in_words(alarm: Alarm) -> str:
    """`Expiry of traces: has not succeeded in time`; the source stays a code that can be searched for."""
    words = WORDS.get(alarm.reason, alarm.reason.replace("_", " "))
    return f"{alarm.source} {words}"


def _by_state(rows: QuerySet[Alarm], value: str) -> QuerySet[Alarm]:
    if value == "acknowledged":
        return rows.filter(resolved_at__isnull=True, acknowledged_at__isnull=False)
    return rows.filter(resolved_at__isnull=value != "closed")


STATE = choice_filter(
    "state",
    "state",
    [("open", "open"), ("acknowledged", "open and acknowledged"), ("closed", "closed")],
    default="open",
    narrow=_by_state,
)


class AcknowledgeAlarm(GovernedAction):
    name, path, label, kind = "acknowledge", "<uuid:object_id>/acknowledge/", "Acknowledge…", "primary"
    grants = OPERATORS

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        if getattr(obj, "workspace_id", None) is None:
            return bool(workspaces_with(request, *cls.grants))
        return super().permitted(model_admin, request, obj)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        if obj.resolved_at:
            return "It is closed already."
        return "It is acknowledged already." if obj.acknowledged_at else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        state = {"state": alarm_state(obj).text, "acknowledged": str(bool(obj.acknowledged_at))}
        summary = (
            f"{in_words(obj)}. No more notices are repeated; the alarm stays open until its cause is gone."
        )
        return Preview(summary, "I take it up", state)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        alarms.acknowledge(alarm_id=obj.pk, reason=data["reason"])
        return Done(f"You have taken up: {in_words(obj)}.")


def alarm_state(alarm: Alarm) -> ui.Mark:
    if alarm.resolved_at:
        return ui.Mark("plain", "closed")
    if alarm.acknowledged_at:
        return ui.Mark("run", "taken up")
    return ui.Mark("bad", "open")


@admin.register(Alarm)
class AlarmAdmin(ModelAdmin):
    list_display = ("what", "state", "since", "last_seen", "scope")
    list_select_related = ("workspace", "acknowledged_by")
    list_filter = (STATE,)
    keyset = ("-opened_at", "-id")
    view_grants = WATCHERS
    superuser_sees = True
    page_template = "core/page.html"
    governed = (AcknowledgeAlarm,)

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Alarms of the installation stand beside those of the workspace: both need someone."""
        from django.db.models import Q

        from apps.core.access import current_workspace

        workspace = current_workspace(request)
        if workspace is None:
            return rows
        return rows.filter(Q(workspace_id=workspace.pk) | Q(workspace_id__isnull=True))

    @admin.display(description="what is wrong")
    def what(self, obj: Alarm) -> str:
        return in_words(obj)

    @admin.display(description="state")
    def state(self, obj: Alarm) -> ui.Mark:
        return alarm_state(obj)

    @admin.display(description="since")
    def since(self, obj: Alarm) -> SafeString:
        return ui.when(obj.opened_at, relative=not obj.resolved_at)

    @admin.display(description="last seen")
    def last_seen(self, obj: Alarm) -> SafeString:
        return ui.when(obj.last_seen_at)

    @admin.display(description="workspace")
    def scope(self, obj: Alarm) -> Any:
        return obj.workspace or "installation"

    def object_title(self, obj: Any) -> str:
        return in_words(obj)

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        """Nothing is only good news when someone has looked."""
        last = Job.objects.filter(name=WATCH_JOB).values_list("last_success_at", flat=True).first()
        if last is None or (clock.now() - last).total_seconds() > STALE_SECONDS:
            why = ui.Notice("bad", "But nobody has looked: the watch of alarms has no recent reading.")
            return ui.EmptyState("No alarm is recorded.", why)
        return ui.EmptyState("No open alarm.", SafeString(f"Last reading {ui.when(last, relative=True)}."))

    def page_context(self, request: HttpRequest, obj: Alarm) -> dict[str, Any]:
        by = obj.acknowledged_by
        facts = [
            ui.Fact("state", alarm_state(obj)),
            ui.Fact("since", ui.when(obj.opened_at, relative=True)),
            ui.Fact("last seen", ui.when(obj.last_seen_at, relative=True)),
            ui.Fact("seen", f"{ui.count(obj.times_seen)} times"),
            ui.Fact("of", obj.workspace or "the installation"),
            ui.Fact("closed", ui.when(obj.resolved_at, absent="still open")),
            ui.Fact("id", ui.short_id(obj.pk, "alarm id", main=True)),
        ]
        if by:
            facts.insert(
                1, ui.Fact("taken up by", f"{by.get_full_name() or by.username}: {obj.acknowledge_reason}")
            )
        sections = [
            ui.Section(title="Last reading", anchor="reading", content=reading(obj)),
            ui.Section(title="Notices", anchor="notices", content=deliveries(obj)),
        ]
        return {"facts": ui.Facts(facts, first=True), "sections": sections}


def reading(alarm: Alarm) -> Any:
    """Values of the last reading, each against its name."""
    if not alarm.details:
        return "This alarm carries no numbers."
    return ui.Facts(
        [ui.Fact(name.replace("_", " "), _value(name, value)) for name, value in alarm.details.items()]
    )


def _value(name: str, value: Any) -> Any:
    """`page` is where staff act upon it: a path of the admin, never an address elsewhere."""
    if name == "page" and isinstance(value, str) and value.startswith("admin/"):
        return format_html('<a href="/{}">open</a>', value)
    return value


def deliveries(alarm: Alarm) -> ui.Records:
    """To whom notices of the alarm were sent, and whether they arrived."""
    found = (
        Delivery.objects.filter(alarm=alarm).select_related("destination").order_by("-created_at", "-id")[:50]
    )
    rows = [
        ui.Record(
            [
                d.destination.name,
                d.notice,
                ui.when(d.delivered_at) if d.delivered_at else _undelivered(d),
                d.attempts,
            ],
            tone="bad" if d.gave_up_at else "",
        )
        for d in found
    ]
    columns = [
        ui.Column("destination", "main"),
        ui.Column("notice"),
        ui.Column("arrived"),
        ui.Column("attempts", "num", later=True),
    ]
    empty = ui.EmptyState("No notice was sent.", "There is no live destination for this alarm.", level=3)
    return ui.Records("Notices of the alarm", columns, rows, empty=empty)


def _undelivered(delivery: Delivery) -> ui.Mark:
    if delivery.gave_up_at:
        return ui.Mark("bad", f"gave up: {delivery.last_code}")
    return ui.Mark("run", f"waiting{f', last {delivery.last_code}' if delivery.last_code else ''}")
