"""Staff users: who is signed on, and what each may do on which workspace."""

from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.accounts.models import Workspace, WorkspaceGroupGrant, WorkspaceUserGrant
from apps.core import ui
from apps.core.admin import ModelAdmin


@admin.register(User)
class StaffAdmin(ModelAdmin):
    list_name = "staff"
    list_display = ("who", "state", "signed_in")
    keyset = ("-id",)
    search_fields = ("username", "email")
    search_help_text = "User name or e-mail"
    superuser_sees = True
    exports = False
    page_template = "core/page.html"

    @admin.display(description="staff user")
    def who(self, obj: User) -> SafeString:
        return ui.person(obj.get_full_name(), obj.username)

    @admin.display(description="state")
    def state(self, obj: User) -> Any:
        if not obj.is_active:
            return ui.Mark("plain", "signed off")
        return "superuser" if obj.is_superuser else ui.nothing("active")

    @admin.display(description="last sign-in")
    def signed_in(self, obj: User) -> SafeString:
        return ui.when(obj.last_login)

    def object_title(self, obj: User) -> str:
        return obj.get_full_name() or obj.username

    def page_context(self, request: HttpRequest, obj: User) -> dict[str, Any]:
        facts = [
            ui.Fact("user", obj.username),
            ui.Fact("e-mail", obj.email or ui.nothing()),
            ui.Fact("state", self.state(obj)),
            ui.Fact("last sign-in", ui.when(obj.last_login, relative=True)),
        ]
        section = SimpleNamespace(title="Grants", anchor="grants", content=grants_of(obj))
        return {"facts": ui.Facts(facts, first=True), "sections": [section]}


def grants_of(user: User) -> ui.Records:
    """What the user holds, by workspace; given on the page of the workspace."""
    held: dict[Any, set[str]] = {}
    own = WorkspaceUserGrant.objects.filter(user=user).values_list(
        "content_object_id", "permission__codename"
    )
    team = WorkspaceGroupGrant.objects.filter(group__user=user)
    for workspace_id, grant in [*own, *team.values_list("content_object_id", "permission__codename")]:
        held.setdefault(workspace_id, set()).add(grant)
    names = {w.pk: w.name for w in Workspace.objects.filter(pk__in=held)}
    rows = [
        ui.Record([names[pk], ", ".join(sorted(held[pk]))])
        for pk in sorted(held, key=lambda pk: names.get(pk, ""))
        if pk in names
    ]
    columns = [ui.Column("workspace"), ui.Column("grants", "main")]
    empty = ui.EmptyState(
        "No grant.", "Without one this user sees no data. Give it on the workspace's page.", level=3
    )
    return ui.Records("Grants by workspace", columns, rows, empty=empty)
