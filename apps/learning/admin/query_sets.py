"""Query sets: what may holdouts ask?"""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, PrincipalFilter, choice_filter
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import run_parts as runs
from apps.learning.admin.holdout_parts import newest_holdouts
from apps.learning.admin.subnav import subnav
from apps.learning.admin.words import linked, page_url, whose
from apps.learning.models import JudgedQuery, QuerySet

SOURCES = {"api": "the API", "files": "files", "control_set": "a control set"}
QUERIES_SHOWN = 50


@admin.register(QuerySet)
class QuerySetAdmin(ModelAdmin):
    list_name = "query sets"
    list_display = ("named", "whose", "queries", "judgments", "came_from", "made")
    list_select_related = ("principal",)
    list_filter = (choice_filter("made of", "source", list(SOURCES.items())), PrincipalFilter)
    keyset = ("-created_at", "-id")
    page_template = "learning/run_page.html"
    list_before_template = "learning/subnav.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"subnav": subnav(self), **(extra_context or {})})

    @admin.display(description="name")
    def named(self, obj: QuerySet) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', obj.name)

    @admin.display(description="principal")
    def whose(self, obj: QuerySet) -> str:
        return whose(obj)

    @admin.display(description="queries")
    def queries(self, obj: QuerySet) -> SafeString:
        return ui.count(obj.num_queries)

    @admin.display(description="judgments")
    def judgments(self, obj: QuerySet) -> SafeString:
        return ui.count(obj.num_judgments)

    @admin.display(description="made of")
    def came_from(self, obj: QuerySet) -> str:
        return SOURCES[obj.source]

    @admin.display(description="made")
    def made(self, obj: QuerySet) -> SafeString:
        return ui.when(obj.created_at)

    def object_title(self, obj: Any) -> str:
        return f"Query set {obj.name}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        why = "A set is made by POST /v1/learning/query-sets, or of BEIR files by the command below."
        command = "manage.py import_query_set DIR --workspace W --principal P --collection C"
        return ui.EmptyState("No query set yet.", why, command=command)

    def page_context(self, request: HttpRequest, obj: QuerySet) -> dict[str, Any]:
        facts = [
            ui.Fact("queries", ui.count(obj.num_queries)),
            ui.Fact("judgments", ui.count(obj.num_judgments)),
            ui.Fact(
                "principal",
                ui.person(
                    obj.principal.display_name,
                    obj.principal.subject,
                    href=page_url("accounts_principal_change", obj.principal_id),
                ),
            ),
            ui.Fact("made of", SOURCES[obj.source]),
            ui.Fact("made", ui.when(obj.created_at)),
            ui.Fact("query set", ui.short_id(obj.pk, "query set id", main=True)),
            ui.Fact("content", ui.short_hash(obj.content_sha256, "content hash")),
        ]
        all_shown = obj.num_queries <= QUERIES_SHOWN
        note = "texts closed" if all_shown else f"the first {QUERIES_SHOWN}, texts closed"
        sections = [
            ui.Section("Slices", "slices", slices_of(obj)),
            ui.Section("Holdouts on it", "holdouts", holdouts_on(obj)),
            ui.Section("Queries", "queries", queries_of(obj), note),
        ]
        return {"facts": ui.Facts(facts, first=True), "sections": sections}


def slices_of(query_set: QuerySet) -> ui.Records:
    """How many queries and groups each slice has: what a gate policy may protect."""
    found = (
        JudgedQuery.objects.filter(query_set_id=query_set.pk)
        .values(named=Coalesce("slice", Value("")))
        .annotate(queries=Count("id"))
        .order_by("-queries", "named")[:50]
    )
    rows = [ui.Record([row["named"] or ui.nothing("no slice"), ui.count(row["queries"])]) for row in found]
    columns = [ui.Column("slice", "main"), ui.Column("queries", "num")]
    return ui.Records("Queries by slice", columns, rows)


def queries_of(query_set: QuerySet) -> ui.Records:
    """The first queries by their names; their texts stay closed."""
    found = JudgedQuery.objects.filter(query_set_id=query_set.pk).order_by("position")
    rows = [
        ui.Record(
            [
                name,
                ui.count(sum(grade > 0 for grade in grades)),
                ui.count(len(grades)),
                group or ui.nothing("none"),
                part or ui.nothing("none"),
            ]
        )
        for name, grades, group, part in found.values_list("name", "grades", "group_name", "slice")[
            :QUERIES_SHOWN
        ]
    ]
    columns = [
        ui.Column("query", "main"),
        ui.Column("relevant", "num"),
        ui.Column("judged", "num"),
        ui.Column("group", later=True),
        ui.Column("slice", later=True),
    ]
    return ui.Records("Queries of the set", columns, rows)


def holdouts_on(query_set: QuerySet) -> Any:
    """What was held out on the set: each use makes it a little less unseen."""
    rows = []
    for one in newest_holdouts(query_set.principal_id, 20, query_set_id=query_set.pk):
        link = linked("learning_holdout_change", one.pk, "holdout id")
        state = runs.how(one, getattr(one, "result", None))
        rows.append(ui.Record([link, state, ui.when(one.requested_at)]))
    columns = [ui.Column("holdout", "main"), ui.Column("decision"), ui.Column("asked")]
    empty = ui.EmptyState("Not used yet.", "Holdouts are asked for on the page of an evaluation.", level=3)
    return ui.Records("Holdouts on this set", columns, rows, empty=empty)
