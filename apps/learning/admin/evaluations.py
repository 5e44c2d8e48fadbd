"""Evaluations: is there a gain, and can I trust it?"""

import json
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import PrincipalFilter, holds
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import evaluation_parts as parts
from apps.learning.admin import run_parts as runs
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.holdout_parts import newest_holdouts
from apps.learning.admin.regression import framed, further, page_after
from apps.learning.admin.run_actions import CancelRun, HoldOut, KeepEvaluation, NewEvaluation, RunAgain
from apps.learning.admin.run_admin import RunAdmin
from apps.learning.admin.words import (
    decided,
    linked,
    scopes_in_words,
    status_mark,
)
from apps.learning.desk.views import NEEDED
from apps.learning.models import EvaluatedQuery, Evaluation, EvaluationResult
from apps.learning.selectors.evaluations import receipts_gone
from apps.learning.selectors.unjudged import unjudged_requests

DECISION = runs.decision_filter(
    [
        ("improved_on_observed_candidates", "improved"),
        ("no_improvement", "no improvement"),
        ("insufficient_data", "not enough labels"),
    ]
)


@admin.register(Evaluation)
class EvaluationAdmin(RunAdmin):
    run, results, groups, unit = "evaluation", EvaluationResult, "validation_groups", "steps"
    list_filter = (DECISION, runs.STATUS, PrincipalFilter)
    governed = (NewEvaluation, RunAgain, HoldOut, KeepEvaluation, CancelRun)

    @admin.display(description="NDCG gain on validation groups")
    def gain(self, obj: Any) -> SafeString:
        return super().gain(obj)

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        why = "An evaluation asks whether other multipliers rank better what was judged. It needs labels on searches."
        return ui.EmptyState("No evaluation yet.", why)

    def page_context(self, request: HttpRequest, obj: Evaluation) -> dict[str, Any]:
        result = getattr(obj, "result", None)
        context: dict[str, Any] = {
            "notices": runs.run_notices(self, request, obj, self.unit),
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
            self.of_whom(obj),
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
    ) -> list[ui.Section]:
        card = '<div class="gv-card">{}</div>'
        lacks = result.decision == "insufficient_data"
        label = ui.Section("What to label next", "label", label_next)
        found = [
            ui.Section("From judgments to query groups", "coverage", parts.narrow(parts.waterfall(report)))
        ]
        if lacks:
            found.insert(0, label)
        else:
            gain = format_html(
                '<div class="gv-card">{}</div><div class="gv-card gv-after">{}</div>',
                parts.gain_plot(report),
                parts.trust(report),
            )
            found.insert(0, ui.Section("Gain", "gain", gain, "dashed: the least that is asked for"))
            found.append(
                ui.Section("Multipliers", "multipliers", format_html(card, parts.multipliers_of(result)))
            )
            found.append(label)
            found.append(ui.Section("Queries by regression", "queries", self.queries(obj), self.all_of(obj)))
        found.append(ui.Section("Holdouts", "holdouts", holdouts_of(obj)))
        return found

    def queries(self, obj: Evaluation) -> ui.Records:
        rows = parts.queries_of(obj)[: parts.QUERIES_SHOWN]
        return parts.query_table(list(rows), "Query groups, those that lost most first")

    def all_of(self, obj: Evaluation) -> SafeString:
        return self.all_queries(obj, EvaluatedQuery.objects.filter(evaluation_id=obj.pk).count())

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
    rows = []
    for one in newest_holdouts(evaluation.principal_id, 10, evaluation_id=evaluation.pk):
        result = getattr(one, "result", None)
        gain = ui.nothing("no result")
        if result is not None:
            gain = ui.gain(result.ndcg_gain, result.interval_low, result.interval_high, result.query_groups)
        link = linked("learning_holdout_change", one.pk, "holdout id")
        rows.append(ui.Record([link, gain, runs.how(one, result), runs.asked(one)]))
    columns = [
        ui.Column("holdout", "main"),
        ui.Column("gain"),
        ui.Column("decision"),
        ui.Column("asked", later=True),
    ]
    why = "A holdout has both arms answer queries that the evaluation has not seen."
    empty = ui.EmptyState("Not held out yet.", why, level=3)
    return ui.Records("Holdouts of this evaluation", columns, rows, empty=empty)
