"""Activation: what is this principal warm on? The trace's own page is with its outcomes, in `feedback`."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import ModelAdmin, PrincipalFilter, TextFilter
from apps.traces.decay import decay
from apps.traces.models import Activation
from apps.traces.policy import policy_in_effect

CAP = 10.0


class SourceFilter(TextFilter):
    title = "source"
    parameter_name = "source_id"
    hint = "s:…"


@admin.register(Activation)
class ActivationAdmin(ModelAdmin):
    """Both channels decayed to one time, the same for all rows of the page."""

    list_name = "activation"
    list_display = ("source", "whose", "retrieved_now", "usage_now", "total_now", "written")
    list_select_related = ("principal", "workspace")
    list_filter = (PrincipalFilter, SourceFilter)
    page_template = "core/page.html"
    older_word, newer_word = "Older", "Newer"

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        now = clock.now()
        half_lives = {
            pk: policy_in_effect(pk).document.half_life_s for pk in {row.workspace_id for row in rows}
        }
        for row in rows:
            half_life_s = half_lives[row.workspace_id]
            row.as_of = now
            row.shown = tuple(decay(v, row.updated_at, now, half_life_s) for v in (row.retrieved, row.usage))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    @admin.display(description="source version")
    def source(self, obj: Activation) -> SafeString:
        return ui.short_hash(obj.source_id, "source id", copy=False)

    @admin.display(description="principal")
    def whose(self, obj: Activation) -> SafeString:
        return ui.person(obj.principal.display_name, obj.principal.subject)

    @admin.display(description="retrieved")
    def retrieved_now(self, obj: Any) -> Any:
        return bar(obj.shown[0], "semantic")

    @admin.display(description="usage")
    def usage_now(self, obj: Any) -> Any:
        return bar(obj.shown[1], "graph")

    @admin.display(description="total now")
    def total_now(self, obj: Any) -> SafeString:
        return ui.score(sum(obj.shown))

    @admin.display(description="last written")
    def written(self, obj: Activation) -> SafeString:
        return ui.when(obj.updated_at)

    def object_title(self, obj: Any) -> str:
        return f"Activation of {obj.source_id[:10]}…"

    def empty_why(self) -> str:
        return "A source warms up when it is returned, and more when it is used. It ranks nothing."

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        facts = [
            ui.Fact("source version", ui.short_hash(obj.source_id, "source id")),
            ui.Fact("principal", self.whose(obj)),
            ui.Fact("retrieved", ui.score(obj.shown[0])),
            ui.Fact("usage", ui.score(obj.shown[1])),
            ui.Fact("total", ui.score(sum(obj.shown))),
            ui.Fact("as of", ui.when(obj.as_of)),
            ui.Fact("last written", ui.when(obj.updated_at, relative=True)),
        ]
        notice = ui.Notice("run", "Shown only: activation ranks nothing, and every later moment shows less.")
        return {"facts": ui.Facts(facts, first=True), "notices": [notice]}


def bar(value: float, feature: str) -> SafeString:
    """A thin bar on 0 to 10 with its number."""
    from django.utils.html import format_html

    return format_html(
        '<span class="gv-row-of">{} {}</span>', ui.ScoreBar([(feature, value)], CAP), ui.score(value)
    )
