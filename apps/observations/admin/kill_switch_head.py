"""The kill switch in the head of every page of the journal: whether collection is stopped, and the way to stop it.

`WithKillSwitch` is the base of the journal's admin classes; a page of its own places `kill_switch(request)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from apps.core import ui
from apps.core.admin import ModelAdmin, current_workspace, workspace_choices, workspaces_with
from apps.core.admin.failing import part
from apps.observations.admin.kill_switches import Release, Throw
from apps.observations.models import KillSwitch
from apps.observations.selectors.staff import Stop, stops


@dataclass(frozen=True)
class KillSwitchHead(ui.Part):
    """One line: what is stopped and since when, nothing where nothing is, and the buttons that the user may press."""

    stopped: Sequence[Any]
    actions: Sequence[ui.ActionButton]
    template_name: ClassVar[str] = "observations/parts/kill_switch.html"


def kill_switch(request: HttpRequest) -> Any:
    """The head, for the chosen workspace or for all that the user sees. In a staff session; one read."""
    return part("kill_switch", lambda: _head(request))


def _head(request: HttpRequest) -> KillSwitchHead:
    chosen = current_workspace(request)
    found = stops(chosen.pk if chosen else None)
    names = {workspace.pk: workspace.name for workspace in workspace_choices(request)}
    switches = admin.site._registry[KillSwitch]
    stopped = [_stopped(stop, names, switches.has_view_permission(request)) for stop in found]
    if settings.OBSERVATION_KILL_SWITCH:
        stopped.insert(0, "the whole installation, by the setting OBSERVATION_KILL_SWITCH")
    actions = [Throw.button(switches, request, None)] if _going(request, found, chosen) else []
    actions += [
        Release.button(switches, request, KillSwitch(id=stop.id, workspace_id=stop.workspace_id))
        for stop in found
    ]
    # Quiet, since it stands on every page; the dialog that it opens is in the colour of danger.
    return KillSwitchHead(stopped, [replace(b, small=True, kind="danger-link") for b in actions if b])


def _stopped(stop: Stop, names: dict[Any, str], linked: bool) -> Any:
    where = names.get(stop.workspace_id, "a workspace") if stop.workspace_id else "the whole installation"
    words = format_html("{}, since {}", where, ui.when(stop.thrown_at))
    if not linked:
        return words
    href = reverse("admin:observations_killswitch_change", args=[stop.id])
    return format_html('<a href="{}">{}</a>', href, words)


def _going(request: HttpRequest, found: list[Stop], chosen: Any) -> bool:
    """Whether there is something left that the user could stop."""
    off = {stop.workspace_id for stop in found}
    operated = workspaces_with(request, *Throw.grants)
    here = {pk for pk in operated if chosen is None or pk == chosen.pk}
    return None not in off and bool(here - off)


class WithKillSwitch(ModelAdmin):
    """Lists and pages of the journal, with the kill switch in their head."""

    list_before_template = "observations/parts/list_head.html"
    page_template = "observations/page.html"

    class Media:
        css: ClassVar = {"all": ["observations/observations.css"]}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(
            request, {"kill_switch": kill_switch(request), **(extra_context or {})}
        )

    def page_view(self, request: HttpRequest, object_id: str) -> TemplateResponse:
        response = super().page_view(request, object_id)
        response.context_data = {**(response.context_data or {}), "kill_switch": kill_switch(request)}
        return response
