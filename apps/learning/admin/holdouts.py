"""Holdouts: does the proposal retrieve better on queries that it has not seen?"""

import json
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import holdout_parts as parts
from apps.learning.admin import run_parts as runs
from apps.learning.admin.evaluation_parts import limitations, narrow
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.regression import framed, further, page_after
from apps.learning.admin.run_actions import CancelRun, KeepHoldout, MakeProfile
from apps.learning.admin.subnav import subnav
from apps.learning.admin.words import (
    decided,
    decision_mark,
    gain_words,
    linked,
    linked_profile,
    page_url,
    scopes_in_words,
    status_mark,
    whose,
)
from apps.learning.models import Holdout, HoldoutResult, RankingProfile
from apps.learning.scorer import FEATURES

SHOWN = ("holdout_id", "decision", "ndcg_gain", "interval_low", "interval_high", "query_groups")
DECISION = runs.decision_filter(
    [
        ("improved_full_retrieval", "improved"),
        ("no_improvement", "no improvement"),
        ("insufficient_data", "not enough queries"),
    ]
)


class CancelHoldout(CancelRun):
    title = "Cancel the holdout"


@admin.register(Holdout)
class HoldoutAdmin(ModelAdmin):
    list_display = ("gain", "how", "whose", "scope_set", "asked_at")
    list_select_related = ("principal",)
    list_filter = (DECISION, runs.STATUS, runs.PrincipalFilter)
    keyset = ("-requested_at", "-id")
    page_template = "learning/run_page.html"
    list_before_template = "learning/subnav.html"
    governed = (MakeProfile, KeepHoldout, CancelHoldout)

    # The list --------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"subnav": subnav(self), **(extra_context or {})})

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Results of the page's runs, without their reports, in one statement."""
        found = HoldoutResult.objects.only(*SHOWN).filter(holdout_id__in=[row.pk for row in rows])
        results = {result.holdout_id: result for result in found}
        for row in rows:
            row.seen = results.get(row.pk)

    @admin.display(description="NDCG gain on unseen queries")
    def gain(self, obj: Any) -> SafeString:
        found = obj.seen
        if found is None:
            return format_html('<span class="gv-main gv-subtle">– {}</span>', "no result")
        words = gain_words(found.ndcg_gain, found.interval_low, found.interval_high, found.query_groups)
        return format_html('<span class="gv-main">{}</span>', words)

    @admin.display(description="decision")
    def how(self, obj: Any) -> Any:
        if obj.seen is None:
            return status_mark(obj.status)
        return decision_mark(obj.seen.decision, exploratory=obj.exploratory)

    @admin.display(description="principal")
    def whose(self, obj: Holdout) -> str:
        return whose(obj)

    @admin.display(description="scopes")
    def scope_set(self, obj: Holdout) -> str:
        return scopes_in_words(obj.scopes)

    @admin.display(description="asked")
    def asked_at(self, obj: Holdout) -> SafeString:
        return runs.asked(obj)

    def object_title(self, obj: Any) -> str:
        return f"Holdout …{str(obj.pk)[-7:]}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        why = "A holdout is asked for on the page of an evaluation, over a query set of the same principal."
        return ui.EmptyState("No holdout yet.", why)

    # The page --------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("trials")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            results = HoldoutResult.objects.defer("report").filter(holdout_id=found.pk)
            if (result := results.first()) is not None:
                found.result = result
        return found

    def page_context(self, request: HttpRequest, obj: Holdout) -> dict[str, Any]:
        result = getattr(obj, "result", None)
        context: dict[str, Any] = {
            "notices": runs.run_notices(self, request, obj, "searches"),
            "facts": self.facts(obj),
            "sections": [],
            "details": [SimpleNamespace(title="Settings", content=ui.JsonTree(obj.config, "settings"))],
        }
        if result is None:
            return context
        report = json.loads(result.summary)
        context["decision"] = decided(result.decision, parts.decision_sentence(report))
        context["sections"] = self.sections(obj, report)
        context["details"] += [
            SimpleNamespace(title="What it does not say", content=limitations(report)),
            SimpleNamespace(title="Report without its long lists", content=ui.JsonTree(report, "holdout")),
        ]
        return context

    def facts(self, obj: Holdout) -> ui.Facts:
        result = getattr(obj, "result", None)
        evaluation = linked("learning_evaluation_change", obj.evaluation_id, "evaluation id")
        facts = [
            ui.Fact("run", status_mark(obj.status)),
            ui.Fact(
                "principal",
                ui.person(
                    obj.principal.display_name,
                    obj.principal.subject,
                    href=page_url("accounts_principal_change", obj.principal_id),
                ),
            ),
            ui.Fact("scopes", scopes_in_words(obj.scopes)),
            ui.Fact("evaluation", evaluation),
            ui.Fact("queries", self.queries_from(obj)),
            ui.Fact("asked", runs.asked(obj)),
            ui.Fact("took", runs.took(obj)),
            ui.Fact("gate policy", runs.gate_words(obj)),
            ui.Fact("holdout", ui.short_id(obj.pk, "holdout id", main=True)),
        ]
        if result is not None:
            facts.append(ui.Fact("manifest", ui.short_hash(result.manifest_sha256, "manifest hash")))
        return ui.Facts(facts, first=True)

    def queries_from(self, obj: Holdout) -> Any:
        if obj.query_set_id is None:
            return "imported pairs"
        return linked("learning_queryset_change", obj.query_set_id, "query set id")

    def sections(self, obj: Holdout, report: dict[str, Any]) -> list[SimpleNamespace]:
        gain = format_html(
            '<div class="gv-card">{}</div><div class="gv-card gv-after">{}</div>',
            parts.gain_plot(report),
            parts.regression_facts(report),
        )
        found = [_section("Gain", "gain", gain, "dashed: the least that is asked for")]
        if (failed := parts.failed_gates(report)) is not None:
            found.insert(0, _section("Gates that do not hold", "gates", failed))
        found.append(_section("Both arms", "arms", narrow(parts.arms(report))))
        if (protected := parts.slices(report)) is not None:
            found.append(_section("Protected slices", "slices", protected))
        groups = list(parts.groups_of(obj)[: parts.GROUPS_SHOWN])
        number = report["coverage"]["query_groups"]
        all_of = format_html('<a href="{}">all {} groups</a>', self.url("queries", obj.pk), ui.count(number))
        found.append(_section("Queries by regression", "queries", parts.group_table(groups), all_of))
        candidate = ui.Multipliers(
            list(zip(FEATURES, obj.candidate_multipliers, strict=True)), "Multipliers of the candidate"
        )
        against = (
            "base scoring" if set(obj.baseline_multipliers) == {1.0} else "another profile's multipliers"
        )
        card = format_html('<div class="gv-card">{}</div>', candidate)
        found.append(_section("Multipliers of the candidate", "multipliers", card, f"baseline: {against}"))
        found.append(_section("Profiles made of it", "profiles", profiles_of(obj)))
        return found

    # Beside the page ---------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = []
        for name in ("progress", "queries"):
            view = self.admin_site.admin_view(getattr(self, f"{name}_view"))
            own.append(path(f"<uuid:object_id>/{name}/", view, name=f"learning_holdout_{name}"))
        return [*own, *super().get_urls()]

    def progress_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        obj = seen_object(self, request, object_id)
        return fragment(self, request, obj, "Progress", runs.job_line(self, request, obj, "searches"))

    def queries_view(self, request: HttpRequest, object_id: Any) -> HttpResponseBase:
        """All query groups by what they lost, 200 a page."""
        obj = seen_object(self, request, object_id)
        found = page_after(parts.groups_of(obj), "group_id", request.GET.get("after", ""))
        shown, older = further(request, found, "group_id")
        table = parts.group_table(shown, "No further query group.")
        return fragment(
            self, request, obj, "Queries by regression", framed(request, table, [], "ndcg", older)
        )


def profiles_of(holdout: Holdout) -> Any:
    """Profiles that stand on it; few, since the same evidence gives the same profile."""
    found = RankingProfile.objects.filter(principal_id=holdout.principal_id, holdout_id=holdout.pk)
    rows = [
        ui.Record([linked_profile(row.pk), ui.when(row.created_at)])
        for row in found.order_by("-created_at")[:10]
    ]
    why = "A profile is made of it by those who hold manage_profiles; nothing is active by that."
    empty = ui.EmptyState("No profile of it yet.", why, level=3)
    columns = [ui.Column("profile", "main"), ui.Column("made")]
    return ui.Records("Profiles made of this holdout", columns, rows, empty=empty)


def _section(title: str, anchor: str, content: Any, note: Any = "") -> SimpleNamespace:
    return SimpleNamespace(title=title, anchor=anchor, content=content, note=note)
