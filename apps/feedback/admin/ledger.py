"""The credit ledger: does strength equal its credits?"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import ModelAdmin, PrincipalFilter
from apps.feedback.credits import edge_of
from apps.feedback.models import Credit, EdgeStrength
from apps.traces.decay import decay
from apps.traces.policy import policy_in_effect

DRIFT = 1e-9
MOST_CREDITS = 200


def current_strengths(principal_id: UUID, workspace_id: UUID, edge_keys: Sequence[str]) -> dict[str, float]:
    """Strength of each edge now, by key; edges without a row are left out."""
    if not edge_keys:
        return {}
    half_life_s = policy_in_effect(workspace_id).document.half_life_s
    now = clock.now()
    rows = EdgeStrength.objects.filter(principal_id=principal_id, edge_key__in=edge_keys)
    return {row.edge_key: decay(row.strength, row.updated_at, now, half_life_s) for row in rows}


@admin.register(EdgeStrength)
class EdgeStrengthAdmin(ModelAdmin):
    """Edges with their strength against the sum of their active credits, both as of one time."""

    list_name = "credit ledger"
    list_display = ("edge", "whose", "held", "active_sum", "drift", "counted")
    list_select_related = ("principal", "workspace")
    list_filter = (PrincipalFilter,)
    page_template = "core/page.html"

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Credits of all edges of the page in one query."""
        now = clock.now()
        half_lives = {
            pk: policy_in_effect(pk).document.half_life_s for pk in {row.workspace_id for row in rows}
        }
        by_edge = {(row.principal_id, row.edge_key): row for row in rows}
        for row in rows:
            row.as_of, row.sum, row.active, row.reversed, row.full = now, 0.0, 0, 0, 0
            row.now = decay(row.strength, row.updated_at, now, half_lives[row.workspace_id])
        found = Credit.objects.filter(
            principal_id__in={row.principal_id for row in rows}, edge_key__in={row.edge_key for row in rows}
        ).values_list("principal_id", "edge_key", "delta", "credited_at", "active")
        for principal_id, edge_key, delta, credited_at, active in found:
            row = by_edge.get((principal_id, edge_key))
            if row is None:
                continue
            row.active += active
            row.reversed += not active
            row.full += delta == 0
            if active:
                row.sum += decay(delta, credited_at, now, half_lives[row.workspace_id])

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    @admin.display(description="edge")
    def edge(self, obj: EdgeStrength) -> SafeString:
        found = edge_of(obj.edge_key)
        words = f"{found['repo']}: {found['src']} → {found['dst']} ({found['kind']})"
        return format_html('<span class="gv-main">{}</span>', words)

    @admin.display(description="principal")
    def whose(self, obj: EdgeStrength) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="strength now")
    def held(self, obj: Any) -> SafeString:
        return ui.score(obj.now)

    @admin.display(description="Σ active credits")
    def active_sum(self, obj: Any) -> SafeString:
        return ui.score(obj.sum)

    @admin.display(description="drift")
    def drift(self, obj: Any) -> Any:
        off = obj.now - obj.sum
        return ui.Mark("bad", f"drift {ui.signed(off, 10)}") if abs(off) > DRIFT else ui.nothing("none")

    @admin.display(description="active / reversed / no headroom")
    def counted(self, obj: Any) -> str:
        return f"{obj.active} / {obj.reversed} / {obj.full}"

    def object_title(self, obj: Any) -> str:
        found = edge_of(obj.edge_key)
        return f"{found['src']} → {found['dst']}"

    def empty_why(self) -> str:
        return "No confirmed outcome yet. Outcomes come through POST /v1/traces/{id}/outcomes."

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        facts = [
            ui.Fact("edge", self.edge(obj)),
            ui.Fact("principal", ui.person(obj.principal.display_name, obj.principal.subject)),
            ui.Fact("strength", ui.score(obj.now)),
            ui.Fact("Σ active credits", ui.score(obj.sum)),
            ui.Fact("drift", self.drift(obj)),
            ui.Fact("as of", ui.when(obj.as_of)),
            ui.Fact("id", ui.short_id(obj.pk, "edge id", main=True)),
        ]
        credits = ui.Section(title="Credits", anchor="credits", content=credits_of(obj), note="newest first")
        return {"facts": ui.Facts(facts, first=True), "sections": [credits]}


def credits_of(edge: EdgeStrength) -> ui.Records:
    """The credits of one edge by time, each with its trace."""
    found = Credit.objects.filter(principal_id=edge.principal_id, edge_key=edge.edge_key)
    rows = []
    for credit in found.order_by("-credited_at", "-id")[:MOST_CREDITS]:
        href = reverse("admin:traces_trace_change", args=[credit.trace_id])
        state: Any = "active"
        if not credit.active:
            state = ui.Mark("plain", f"reversed {ui.formats.MINUS}{ui.score(credit.reversed_delta)}")
        elif credit.delta == 0:
            state = ui.Mark("plain", "no headroom")
        rows.append(
            ui.Record(
                [
                    ui.when(credit.credited_at),
                    ui.short_id(credit.trace_id, "trace id", href=href),
                    ui.signed(credit.delta, 4),
                    state,
                    ui.when(credit.reversed_at, absent="not reversed"),
                ],
                tone="" if credit.active else "quiet",
            )
        )
    columns = [
        ui.Column("credited"),
        ui.Column("trace", "main"),
        ui.Column("lent", "num"),
        ui.Column("state"),
        ui.Column("reversed", later=True),
    ]
    return ui.Records("Credits by time", columns, rows, empty=ui.EmptyState("No credit.", level=3))
