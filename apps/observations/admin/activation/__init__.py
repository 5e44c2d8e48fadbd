"""Activation: may we switch on, and who is next?"""

from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, choice_filter, holds
from apps.core.db.sessions import own_transactions
from apps.observations.admin.activation import looking, parts
from apps.observations.admin.activation.looking import ALL, Look, Vouch, looked_at_together
from apps.observations.admin.activation.outside import OutsideAction
from apps.observations.admin.activation.switching import SWITCHES, OpenRun, label_of, run_buttons
from apps.observations.admin.activation.words import ALARM_WORDS, GROUPS, STATE_TONES, STATES, name_of
from apps.observations.admin.kill_switch_head import WithKillSwitch
from apps.observations.models import ActivationRun
from apps.observations.models.activation import RunState
from apps.observations.selectors.activation import OFF, ON, RunStanding, standing_of_run
from apps.operations.admin.alarms import register_words

register_words(ALARM_WORDS)


def _by_state(rows: QuerySet[ActivationRun], value: str) -> QuerySet[ActivationRun]:
    states = {"on": ON, "off": OFF}.get(value)
    return rows.filter(state__in=states) if states else rows.exclude(state__in=(*ON, *OFF))


STATE = choice_filter(
    "state",
    "state",
    [("before", "before enabling"), ("on", "on"), ("off", "switched off")],
    narrow=_by_state,
)


@admin.register(ActivationRun)
class ActivationRunAdmin(WithKillSwitch):
    list_name = "journal activation"
    list_display = ("whose", "state_shown", "mode", "opened", "until")
    list_select_related = (
        "workspace",
        "opened_by",
        "requested_by",
        "approved_by",
        "enabled_by",
        "stopped_by",
    )
    list_filter = (STATE,)
    keyset = ("-opened_at", "-id")
    view_grants = ("operate_collection", "review_retention", "audit")
    page_template = "observations/activation_page.html"
    governed = (OpenRun, *SWITCHES, Look, Vouch)

    @admin.display(description="workspace")
    def whose(self, obj: ActivationRun) -> str:
        return str(obj.workspace.name)

    @admin.display(description="state")
    def state_shown(self, obj: ActivationRun) -> ui.Mark:
        return ui.Mark(STATE_TONES.get(obj.state, "plain"), STATES[obj.state])

    @admin.display(description="opened")
    def opened(self, obj: ActivationRun) -> SafeString:
        return ui.when(obj.opened_at)

    @admin.display(description="approval good until")
    def until(self, obj: ActivationRun) -> SafeString:
        waits = obj.state in (RunState.READY, RunState.APPROVED)
        return ui.when(obj.valid_until if waits else None, absent="none is asked for")

    def object_title(self, obj: Any) -> str:
        return label_of(obj)

    def empty_why(self) -> str:
        return (
            "A workspace collects nothing unless a run has switched it on. Open one to see what that takes."
        )

    def action_buttons(self, request: HttpRequest, obj: Any) -> list[ui.ActionButton]:
        """Made with the standing that the page shows; see `page_context`."""
        return []

    def page_context(self, request: HttpRequest, obj: ActivationRun) -> dict[str, Any]:
        standing = standing_of_run(obj)
        user_id = int(request.user.pk or 0)
        off = standing.mode == "off"
        mode = ui.Mark("plain" if off else "run", f"mode {standing.mode}")
        return {
            "lead": mode,
            "actions": ui.ActionRow(run_buttons(self, request, standing)),
            "states": parts.state_line(obj),
            "notices": parts.notices(standing, user_id, self._open_url(request, obj)),
            "facts": self._facts(standing),
            "sections": [
                *(self._group(request, standing, group) for group in GROUPS if self._shows(standing, group)),
                ui.Section(
                    "Processes",
                    "processes",
                    parts.processes_table(standing),
                    "as each heartbeat says; one that knows no mode reads it anew before it writes",
                ),
            ],
        }

    def _open_url(self, request: HttpRequest, run: ActivationRun) -> str:
        """Where this person opens another run of the workspace; empty where it may not."""
        return self.url(OpenRun.name) if holds(request, run, *OpenRun.grants) else ""

    def _facts(self, standing: RunStanding) -> ui.Facts:
        run = standing.run
        facts = [
            ui.Fact("state", self.state_shown(run)),
            ui.Fact("mode of the run", run.mode),
            ui.Fact("take part", ui.count(standing.enrolled)),
            ui.Fact("records", ui.count(standing.left.records)),
            ui.Fact("opened", ui.when(run.opened_at)),
            ui.Fact("by", name_of(run.opened_by)),
        ]
        if run.enabled_at:
            facts.append(ui.Fact("enabled", ui.when(run.enabled_at, relative=True)))
        if standing.asked or run.enabled_at:
            facts.append(ui.Fact("version", ui.short_hash(run.approval_hash, "version")))
        return ui.Facts(facts, first=True)

    @staticmethod
    def _shows(standing: RunStanding, group: str) -> bool:
        started = {"C": standing.run.enabled_at, "D": standing.run.stopped_at}
        return group in "AB" or started[group] is not None

    def _group(self, request: HttpRequest, standing: RunStanding, group: str) -> ui.Section:
        steps = [
            parts.step(
                lines,
                self._acts(request, standing, lines[0].item.code),
                here=standing.is_at(group),
            )
            for lines in parts.items_of(standing.lines(group))
        ]
        name, note = GROUPS[group]
        content: list[tuple[Any]] = [(ui.Checklist(steps),)]
        if group == "D":
            content.insert(0, (parts.drain_facts(standing),))
        if self._together(standing) == group and holds(request, standing.run, *Look.grants):
            button = ui.ActionButton("Let the machine look…", self.url(Look.name, standing.run.pk, ALL))
            content.append((button,))
        shown = format_html_join("", '<div class="gv-after">{}</div>', content)
        return ui.Section(f"{group} {name}", f"group-{group.lower()}", shown, note)

    @staticmethod
    def _together(standing: RunStanding) -> str:
        """The group under which the button for all probes stands: the last that has some."""
        found = looked_at_together(standing)
        return found[-1][0] if found else ""

    def _acts(self, request: HttpRequest, standing: RunStanding, code: str) -> SafeString:
        found = looking.buttons(self, request, standing, code)
        return format_html_join("", '<span class="ja-act">{}</span>', [(button,) for button in found])

    def get_urls(self) -> list[URLPattern]:
        """Acts that open sessions of their own get none of the page's."""
        apart = [action for action in self.governed if issubclass(action, OutsideAction)]
        stem = f"{self.opts.app_label}_{self.opts.model_name}"
        own = []
        for action in apart:
            view: Any = own_transactions(partial(_apart, self, action))
            own.append(path(action.path, self.admin_site.admin_view(view), name=f"{stem}_{action.name}"))
        return [*own, *super().get_urls()]


def _apart(
    model_admin: ModelAdmin, action: type[OutsideAction], request: HttpRequest, **kwargs: Any
) -> HttpResponseBase:
    return action.as_view(model_admin=model_admin)(request, **kwargs)
