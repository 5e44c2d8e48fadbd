"""The audit trail: who did what, and is the chain whole?"""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.access import current_workspace, is_superuser, workspaces_with
from apps.core.admin.base import ModelAdmin
from apps.core.admin.filters import TextFilter, WindowFilter, choice_filter
from apps.core.models import AuditChain, AuditEntry

RELATED = 50


class ObjectFilter(TextFilter):
    title = "object"
    parameter_name = "object"
    field = "object_id"
    hint = "id"


class RequestFilter(TextFilter):
    title = "request"
    parameter_name = "request_id"
    hint = "request id"


class ActionFilter(TextFilter):
    title = "action"
    parameter_name = "action"
    hint = "e.g. traces.reveal_query"


class AuditWindow(WindowFilter):
    default = "30d"


ACTOR = choice_filter("by", "actor_kind", AuditEntry.Actor.choices)


@admin.register(AuditEntry)
class AuditEntryAdmin(ModelAdmin):
    """Everyone sees what they did themselves; the rest needs the grant `audit`."""

    list_name = "audit trail"
    list_display = ("when", "did", "by", "on", "why")
    list_select_related = ("actor_user", "workspace")
    list_filter = (AuditWindow, ACTOR, ActionFilter, ObjectFilter, RequestFilter)
    keyset = ("-recorded_at", "-id")
    view_grants = ("audit",)
    page_template = "core/page.html"
    list_before_template = "core/audit_chains.html"
    exports = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(getattr(request.user, "is_staff", False) and request.user.is_active)

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        workspace = current_workspace(request)
        return rows if workspace is None else rows.filter(workspace_id=workspace.pk)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {"chains": chains(request), **(extra_context or {})})

    @admin.display(description="time")
    def when(self, obj: AuditEntry) -> SafeString:
        return ui.when(obj.recorded_at)

    @admin.display(description="action")
    def did(self, obj: AuditEntry) -> str:
        return obj.action

    @admin.display(description="by")
    def by(self, obj: AuditEntry) -> str:
        return obj.actor

    @admin.display(description="object")
    def on(self, obj: AuditEntry) -> SafeString:
        return format_html("{} {}", obj.object_type, ui.short_id(obj.object_id, copy=False))

    @admin.display(description="reason")
    def why(self, obj: AuditEntry) -> Any:
        return (
            format_html('<span class="gv-main">{}</span>', obj.reason)
            if obj.reason
            else ui.nothing("no reason")
        )

    def object_title(self, obj: Any) -> str:
        return f"{obj.action}, entry {obj.sequence}"

    def page_context(self, request: HttpRequest, obj: AuditEntry) -> dict[str, Any]:
        facts = [
            ui.Fact("action", obj.action),
            ui.Fact("time", ui.when(obj.recorded_at)),
            ui.Fact("by", obj.actor),
            ui.Fact("object", format_html("{} {}", obj.object_type, ui.short_id(obj.object_id, "object id"))),
            ui.Fact("workspace", obj.workspace or "installation"),
            ui.Fact("entry", ui.count(obj.sequence)),
            ui.Fact("id", ui.short_id(obj.pk, "entry id", main=True)),
        ]
        hashes = ui.Facts(
            [
                ui.Fact("before", ui.short_hash(obj.before_sha256, "hash before")),
                ui.Fact("after", ui.short_hash(obj.after_sha256, "hash after")),
                ui.Fact("previous entry", ui.short_hash(obj.previous_hash, "hash of the previous entry")),
                ui.Fact("this entry", ui.short_hash(obj.hash, "hash of this entry")),
            ]
        )
        sections = [
            ui.Section(title="Reason", anchor="reason", content=obj.reason or "None was asked for."),
            ui.Section(title="Hashes", anchor="hashes", content=hashes),
            ui.Section(title="Details", anchor="details", content=ui.JsonTree(obj.details, "details")),
        ]
        if obj.request_id:
            sections.append(
                ui.Section(
                    title="Same request", anchor="request", content=same_request(obj), note=obj.request_id
                )
            )
        return {"facts": ui.Facts(facts, first=True), "sections": sections, "audit": ""}


def same_request(entry: AuditEntry) -> ui.AuditTrail | ui.Timeline:
    """Everything that one request did, in its order."""
    from django.urls import reverse

    found = AuditEntry.objects.filter(request_id=entry.request_id).select_related("actor_user").order_by("id")
    events = [
        ui.Event(
            other.recorded_at,
            format_html(
                '<a href="{}">{}</a>', reverse("admin:core_auditentry_change", args=[other.pk]), other.action
            ),
            other.actor,
            "run" if other.pk == entry.pk else "plain",
        )
        for other in found[:RELATED]
    ]
    return ui.Timeline(events, title="Entries of the same request")


def chains(request: HttpRequest) -> list[SafeString]:
    """How far each chain that the user sees was last found whole."""
    rows = AuditChain.objects.select_related("workspace")
    workspace = current_workspace(request)
    if workspace is not None:
        rows = rows.filter(Q(workspace_id=workspace.pk) | Q(workspace_id__isnull=True))
    if not workspaces_with(request, "audit") and not is_superuser(request):
        return []
    return [
        format_html("{} {}", chain.workspace or "Installation", verified(chain)) for chain in rows[:RELATED]
    ]


def verified(chain: AuditChain) -> Any:
    if chain.broken_sequence is not None:
        return ui.Mark("bad", f"broken at entry {chain.broken_sequence}")
    if chain.verified_at is None:
        return ui.Mark("warn", f"{chain.last_sequence} entries, not verified yet")
    words = f"verified through entry {chain.verified_sequence} of {chain.last_sequence}"
    return format_html("{} at {}", ui.Mark("ok", words, bare=True), ui.when(chain.verified_at))
