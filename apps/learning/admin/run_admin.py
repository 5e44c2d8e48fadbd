"""What the pages of evaluations and holdouts are alike: their lists, the result beside a run, progress, all queries."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin
from apps.learning.admin import run_parts as runs
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.subnav import subnav
from apps.learning.admin.words import (
    gain_words,
    page_url,
    scopes_in_words,
    whose,
)


class RunAdmin(ModelAdmin):
    """`run` names what is run, and so the reference of its result; `groups` the column that says of how many groups
    the result speaks; `unit` what its progress counts."""

    run: ClassVar[str]
    results: ClassVar[type[Model]]
    groups: ClassVar[str]
    unit: ClassVar[str]

    list_display = ("gain", "how", "whose", "scope_set", "asked_at")
    list_select_related = ("principal",)
    keyset = ("-requested_at", "-id")
    page_template = "learning/run_page.html"
    list_before_template = "learning/subnav.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"subnav": subnav(self), **(extra_context or {})})

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Results of the page's runs, without their reports, in one statement."""
        reference = f"{self.run}_id"
        shown = (reference, "decision", "ndcg_gain", "interval_low", "interval_high", self.groups)
        found = self.results._default_manager.only(*shown).filter(
            **{f"{reference}__in": [row.pk for row in rows]}
        )
        results = {getattr(result, reference): result for result in found}
        for row in rows:
            row.seen = results.get(row.pk)

    @admin.display(description="NDCG gain")
    def gain(self, obj: Any) -> SafeString:
        found = obj.seen
        if found is None:
            return format_html('<span class="gv-main gv-subtle">– {}</span>', "no result")
        words = gain_words(
            found.ndcg_gain, found.interval_low, found.interval_high, getattr(found, self.groups)
        )
        return format_html('<span class="gv-main">{}</span>', words)

    @admin.display(description="decision")
    def how(self, obj: Any) -> Any:
        return runs.how(obj, obj.seen)

    @admin.display(description="principal")
    def whose(self, obj: Any) -> str:
        return whose(obj)

    @admin.display(description="scopes")
    def scope_set(self, obj: Any) -> str:
        return scopes_in_words(obj.scopes)

    @admin.display(description="asked")
    def asked_at(self, obj: Any) -> SafeString:
        return runs.asked(obj)

    def object_title(self, obj: Any) -> str:
        return f"{self.run.capitalize()} …{str(obj.pk)[-7:]}"

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            results = self.results._default_manager.defer("report").filter(**{f"{self.run}_id": found.pk})
            if (result := results.first()) is not None:
                found.result = result
        return found

    @staticmethod
    def of_whom(obj: Any) -> ui.Fact:
        href = page_url("accounts_principal_change", obj.principal_id)
        return ui.Fact("principal", ui.person(obj.principal.display_name, obj.principal.subject, href=href))

    # Beside the page ---------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = []
        for name in ("progress", "queries"):
            view = self.admin_site.admin_view(getattr(self, f"{name}_view"))
            own.append(path(f"<uuid:object_id>/{name}/", view, name=f"learning_{self.run}_{name}"))
        return [*own, *super().get_urls()]

    def progress_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        obj = seen_object(self, request, object_id)
        return fragment(self, request, obj, "Progress", runs.job_line(self, request, obj, self.unit))

    def all_queries(self, obj: Any, number: int) -> SafeString:
        return format_html('<a href="{}">all {} groups</a>', self.url("queries", obj.pk), ui.count(number))
