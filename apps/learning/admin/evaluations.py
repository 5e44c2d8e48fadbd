"""Evaluations: is there a gain, and can I trust it?"""

import json
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, holds
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import evaluation_parts as parts
from apps.learning.admin import run_parts as runs
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.regression import framed, further, page_after
from apps.learning.admin.run_actions import CancelRun, HoldOut, KeepEvaluation, NewEvaluation, RunAgain
from apps.learning.admin.subnav import subnav
from apps.learning.admin.words import (
    decided,
    decision_mark,
    gain_words,
    linked,
    page_url,
    scopes_in_words,
    status_mark,
    whose,
)
from apps.learning.desk.views import NEEDED
from apps.learning.models import EvaluatedQuery, Evaluation, EvaluationResult, Holdout
from apps.learning.selectors.evaluations import receipts_gone
from apps.learning.selectors.unjudged import unjudged_requests

SHOWN = ("evaluation_id", "decision", "ndcg_gain", "interval_low", "interval_high", "validation_groups")
DECISION = runs.decision_filter(
    [
        ("improved_on_observed_candidates", "improved"),
        ("no_improvement", "no improvement"),
        ("insufficient_data", "not enough labels"),
    ]
)


@admin.register(Evaluation)
class EvaluationAdmin(ModelAdmin):
    list_display = ("gain", "how", "whose", "scope_set", "asked_at")
    list_select_related = ("principal",)
    list_filter = (DECISION, runs.STATUS, runs.PrincipalFilter)
    keyset = ("-requested_at", "-id")
    page_template = "learning/run_page.html"
    list_before_template = "learning/subnav.html"
    governed = (NewEvaluation, RunAgain, HoldOut, KeepEvaluation, CancelRun)

    # The list --------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"subnav": subnav(self), **(extra_context or {})})

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Results of the page's runs, without their reports, in one statement."""
        found = EvaluationResult.objects.only(*SHOWN).filter(evaluation_id__in=[row.pk for row in rows])
        results = {result.evaluation_id: result for result in found}
        for row in rows:
            row.seen = results.get(row.pk)

    @admin.display(description="NDCG gain on validation groups")
    def gain(self, obj: Any) -> SafeString:
        found = obj.seen
        if found is None:
            return format_html('<span class="gv-main gv-subtle">– {}</span>', "no result")
        words = gain_words(found.ndcg_gain, found.interval_low, found.interval_high, found.validation_groups)
        return format_html('<span class="gv-main">{}</span>', words)

    @admin.display(description="decision")
    def how(self, obj: Any) -> Any:
        if obj.seen is None:
            return status_mark(obj.status)
        return decision_mark(obj.seen.decision, exploratory=obj.exploratory)

    @admin.display(description="principal")
    def whose(self, obj: Evaluation) -> str:
        return whose(obj)

    @admin.display(description="scopes")
    def scope_set(self, obj: Evaluation) -> str:
        return scopes_in_words(obj.scopes)

    @admin.display(description="asked")
    def asked_at(self, obj: Evaluation) -> SafeString:
        return runs.asked(obj)

    def object_title(self, obj: Any) -> str:
        return f"Evaluation …{str(obj.pk)[-7:]}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        why = "An evaluation asks whether other multipliers rank better what was judged. It needs labels on searches."
        return ui.EmptyState("No evaluation yet.", why)

    # The page --------------------------------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            results = EvaluationResult.objects.defer("report").filter(evaluation_id=found.pk)
            if (result := results.first()) is not None:
                found.result = result
        return found

    def page_context(self, request: HttpRequest, obj: Evaluation) -> dict[str, Any]:
        result = getattr(obj, "result", None)
        context: dict[str, Any] = {
            "notices": runs.run_notices(self, request, obj, "steps"),
            "facts": self.facts(obj),
            "sections": [],
            "details": [SimpleNamespace(title="Settings", content=ui.JsonTree(obj.config, "settings"))],
        }
        if result is None:
            return context
        if gone := receipts_gone(obj):
            context["notices"].append(parts.gone_notice(gone))
        report = json.loads(result.summary)
        used = EvaluatedQuery.objects.filter(evaluation_id=obj.pk).values_list("group_id", flat=True)
        may_label = all(holds(request, obj, grant) for grant in NEEDED)
        requests = parts.to_label(report, unjudged_requests(obj, used_groups=set(used)))
        context["decision"] = decided(result.decision, parts.decision_sentence(report, requests))
        context["sections"] = self.sections(
            obj, result, report, parts.label_next(obj, requests, may_label=may_label)
        )
        context["details"] += [
            SimpleNamespace(title="What it does not say", content=parts.limitations(report)),
            SimpleNamespace(title="Report without its long lists", content=ui.JsonTree(report, "evaluation")),
        ]
        return context

    def facts(self, obj: Evaluation) -> ui.Facts:
        result = getattr(obj, "result", None)
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
            ui.Fact("labels on", obj.surface),
            ui.Fact("labels until", runs.asked(obj)),
            ui.Fact("took", runs.took(obj)),
            ui.Fact("gate policy", runs.gate_words(obj)),
            ui.Fact("evaluation", ui.short_id(obj.pk, "evaluation id", main=True)),
        ]
        if result is not None:
            facts.insert(6, ui.Fact("scorer contract", result.scorer_contract))
            facts.append(ui.Fact("manifest", ui.short_hash(result.manifest_sha256, "manifest hash")))
        return ui.Facts(facts, first=True)

    def sections(
        self,
        obj: Evaluation,
        result: EvaluationResult,
        report: dict[str, Any],
        label_next: Any,
    ) -> list[SimpleNamespace]:
        card = '<div class="gv-card">{}</div>'
        lacks = result.decision == "insufficient_data"
        label = _section("What to label next", "label", label_next)
        found = [
            _section("From judgments to query groups", "coverage", parts.narrow(parts.waterfall(report)))
        ]
        if lacks:
            found.insert(0, label)
        else:
            gain = format_html(
                '<div class="gv-card">{}</div><div class="gv-card gv-after">{}</div>',
                parts.gain_plot(report),
                parts.trust(report),
            )
            found.insert(0, _section("Gain", "gain", gain, "dashed: the least that is asked for"))
            found.append(
                _section("Multipliers", "multipliers", format_html(card, parts.multipliers_of(result)))
            )
            found.append(label)
            found.append(_section("Queries by regression", "queries", self.queries(obj), self._all(obj)))
        found.append(_section("Holdouts", "holdouts", holdouts_of(obj)))
        return found

    def queries(self, obj: Evaluation) -> ui.Records:
        rows = parts.queries_of(obj)[: parts.QUERIES_SHOWN]
        return parts.query_table(list(rows), "Query groups, those that lost most first")

    def _all(self, obj: Evaluation) -> SafeString:
        number = EvaluatedQuery.objects.filter(evaluation_id=obj.pk).count()
        return format_html('<a href="{}">all {} groups</a>', self.url("queries", obj.pk), ui.count(number))

    # Beside the page ---------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = []
        for name in ("progress", "queries"):
            view = self.admin_site.admin_view(getattr(self, f"{name}_view"))
            own.append(path(f"<uuid:object_id>/{name}/", view, name=f"learning_evaluation_{name}"))
        return [*own, *super().get_urls()]

    def progress_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        obj = seen_object(self, request, object_id)
        return fragment(self, request, obj, "Progress", runs.job_line(self, request, obj, "steps"))

    def queries_view(self, request: HttpRequest, object_id: Any) -> HttpResponseBase:
        """All query groups by what they lost, 200 a page; a page begins after a row that is named by its id."""
        obj = seen_object(self, request, object_id)
        sort = request.GET.get("sort", "")
        sort = sort if sort in parts.SORTS else "ndcg"
        found = page_after(parts.queries_of(obj, sort), "id", request.GET.get("after", ""))
        shown, older = further(request, found, "id")
        table = parts.query_table(
            shown, "Query groups, those that lost most first", "No further query group."
        )
        sorts = [("ndcg", "by NDCG"), ("accuracy", "by pairwise accuracy")]
        content = framed(request, table, sorts, sort, older)
        return fragment(self, request, obj, "Queries by regression", content)


def holdouts_of(evaluation: Evaluation) -> Any:
    """Holdouts that were asked of it, the newest first."""
    found = (
        Holdout.objects.filter(principal_id=evaluation.principal_id, evaluation_id=evaluation.pk)
        .select_related("result")
        .defer("trials", "result__report", "result__summary")
        .order_by("-requested_at", "-id")[:10]
    )
    rows = []
    for one in found:
        result = getattr(one, "result", None)
        gain = ui.nothing("no result")
        state: Any = status_mark(one.status)
        if result is not None:
            gain = ui.gain(result.ndcg_gain, result.interval_low, result.interval_high, result.query_groups)
            state = decision_mark(result.decision, exploratory=one.exploratory)
        link = linked("learning_holdout_change", one.pk, "holdout id")
        rows.append(ui.Record([link, gain, state, runs.asked(one)]))
    columns = [
        ui.Column("holdout", "main"),
        ui.Column("gain"),
        ui.Column("decision"),
        ui.Column("asked", later=True),
    ]
    why = "A holdout has both arms answer queries that the evaluation has not seen."
    empty = ui.EmptyState("Not held out yet.", why, level=3)
    return ui.Records("Holdouts of this evaluation", columns, rows, empty=empty)


def _section(title: str, anchor: str, content: Any, note: Any = "") -> SimpleNamespace:
    return SimpleNamespace(title=title, anchor=anchor, content=content, note=note)
