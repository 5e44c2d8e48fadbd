"""Trusted issuers: whose JWTs a workspace accepts. Settings-like, managed by superusers."""

from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.accounts.models import TrustedIssuer
from apps.core import ui
from apps.core.admin import ModelAdmin


@admin.register(TrustedIssuer)
class TrustedIssuerAdmin(ModelAdmin):
    list_display = ("iss", "audience", "workspace", "state")
    list_select_related = ("workspace",)
    view_grants = ("operate_collection", "audit")
    superuser_sees = True
    page_template = "core/page.html"

    @admin.display(description="state")
    def state(self, obj: TrustedIssuer) -> Any:
        return ui.nothing("active") if obj.active else ui.Mark("plain", "switched off")

    def empty_why(self) -> str:
        return "Without one, applications come with API tokens. A superuser trusts an issuer."

    def page_context(self, request: HttpRequest, obj: TrustedIssuer) -> dict[str, Any]:
        facts = [
            ui.Fact("issuer", obj.iss),
            ui.Fact("audience", obj.audience),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("subjects", f"{obj.subject_prefix} + claim {obj.subject_claim}"),
            ui.Fact("algorithms", ", ".join(obj.algorithms)),
            ui.Fact("state", "active" if obj.active else ui.Mark("plain", "switched off")),
        ]
        keys = obj.jwks_url or f"{len(obj.pinned_keys)} pinned keys"
        section = SimpleNamespace(title="Keys", anchor="keys", content=keys)
        return {"facts": ui.Facts(facts, first=True), "sections": [section]}
