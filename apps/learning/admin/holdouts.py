"""Holdouts: does the proposal retrieve better on queries that it has not seen?"""

import json
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import PrincipalFilter
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import holdout_parts as parts
from apps.learning.admin import run_parts as runs
from apps.learning.admin.evaluation_parts import limitations, narrow
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.regression import framed, further, page_after
from apps.learning.admin.run_actions import CancelRun, KeepHoldout, MakeProfile
from apps.learning.admin.run_admin import RunAdmin
from apps.learning.admin.words import (
    decided,
    linked,
    linked_profile,
    scopes_in_words,
    status_mark,
)
from apps.learning.models import Holdout, HoldoutResult, RankingProfile
from apps.learning.scorer import FEATURES

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
class HoldoutAdmin(RunAdmin):
    run, results, groups, unit = "holdout", HoldoutResult, "query_groups", "searches"
    list_filter = (DECISION, runs.STATUS, PrincipalFilter)
    governed = (MakeProfile, KeepHoldout, CancelHoldout)

    @admin.display(description="NDCG gain on unseen queries")
    def gain(self, obj: Any) -> SafeString:
        return super().gain(obj)

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        why = "A holdout is asked for on the page of an evaluation, over a query set of the same principal."
        return ui.EmptyState("No holdout yet.", why)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("trials")

    def page_context(self, request: HttpRequest, obj: Holdout) -> dict[str, Any]:
        result = getattr(obj, "result", None)
        context: dict[str, Any] = {
            "notices": runs.run_notices(self, request, obj, self.unit),
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
            self.of_whom(obj),
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

    def sections(self, obj: Holdout, report: dict[str, Any]) -> list[ui.Section]:
        gain = format_html(
            '<div class="gv-card">{}</div><div class="gv-card gv-after">{}</div>',
            parts.gain_plot(report),
            parts.regression_facts(report),
        )
        found = [ui.Section("Gain", "gain", gain, "dashed: the least that is asked for")]
        if (failed := parts.failed_gates(report)) is not None:
            found.insert(0, ui.Section("Gates that do not hold", "gates", failed))
        found.append(ui.Section("Both arms", "arms", narrow(parts.arms(report))))
        if (protected := parts.slices(report)) is not None:
            found.append(ui.Section("Protected slices", "slices", protected))
        groups = list(parts.groups_of(obj)[: parts.GROUPS_SHOWN])
        all_of = self.all_queries(obj, report["coverage"]["query_groups"])
        found.append(ui.Section("Queries by regression", "queries", parts.group_table(groups), all_of))
        candidate = ui.Multipliers(
            list(zip(FEATURES, obj.candidate_multipliers, strict=True)), "Multipliers of the candidate"
        )
        against = (
            "base scoring" if set(obj.baseline_multipliers) == {1.0} else "another profile's multipliers"
        )
        card = format_html('<div class="gv-card">{}</div>', candidate)
        found.append(ui.Section("Multipliers of the candidate", "multipliers", card, f"baseline: {against}"))
        found.append(ui.Section("Profiles made of it", "profiles", profiles_of(obj)))
        return found

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
