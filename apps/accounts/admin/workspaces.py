"""Workspaces: what each is, who holds what on it, and how to make one."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.validators import RegexValidator
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.accounts import services
from apps.accounts.admin.fields import optional_reason, text_input
from apps.accounts.grants import GRANTS, GROUPS
from apps.accounts.models import Workspace, WorkspaceGroupGrant, WorkspaceUserGrant
from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm


class WorkspaceForm(ReasonForm):
    name = forms.CharField(max_length=200, widget=text_input(**{"data-focus": ""}))
    slug = forms.CharField(
        max_length=63,
        help_text="In addresses and commands: small letters, digits, hyphens.",
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*$", "Small letters, digits and hyphens.")],
        widget=text_input(),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        optional_reason(self)


class CreateWorkspace(GovernedAction):
    name, path, label, kind = "create", "create/", "New workspace…", "primary"
    title = "New workspace"
    on_object = False
    for_superusers = True
    form_class = WorkspaceForm

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        groups = ", ".join(GROUPS)
        summary = f"Makes the workspace, its shared principal and five groups of staff: {groups}."
        return Preview(f"{summary} You hold no grant on it until one is given.", "Make the workspace")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = services.create_workspace(slug=data["slug"], name=data["name"])
        return Done(f"Workspace {made.name} is there.", self.model_admin.url("change", made.pk))


class GrantForm(ReasonForm):
    user = forms.ChoiceField(label="Staff user", widget=forms.Select(attrs={"class": "gv-input"}))
    what = forms.ChoiceField(label="Grant or group", widget=forms.Select(attrs={"class": "gv-input"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        staff = User.objects.filter(is_staff=True, is_active=True).order_by("username")
        self.fields["user"].choices = [(str(u.pk), u.get_full_name() or u.username) for u in staff]  # type: ignore[attr-defined]
        self.fields["what"].choices = [  # type: ignore[attr-defined]
            (
                "Groups",
                [(f"group:{title}", f"{title}: {', '.join(grants)}") for title, grants in GROUPS.items()],
            ),
            ("Single grants", [(f"grant:{name}", words) for name, words in GRANTS.items()]),
        ]
        self.order_fields(["user", "what", "reason"])


class GiveGrant(GovernedAction):
    name, path, label = "give_grant", "<uuid:object_id>/give-grant/", "Give a grant…"
    form_class = GrantForm
    for_superusers = True
    verb = "give"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview(
            "Shows this workspace's data to the person from the next request on, as far as the grant says. "
            "Granting yourself is marked as such in the audit log.",
            "Give the grant",
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        user = User.objects.get(pk=data["user"])
        kind, _, what = data["what"].partition(":")
        given = {"user": user, "workspace": obj, "reason": data["reason"]}
        if kind == "group":
            (services.join_group if self.verb == "give" else services.leave_group)(title=what, **given)
        else:
            (services.give_grant if self.verb == "give" else services.take_grant)(grant=what, **given)
        words = "now has" if self.verb == "give" else "no longer has"
        return Done(f"{user.get_full_name() or user.username} {words} {what} on {obj.name}.")


class TakeGrant(GiveGrant):
    name, path, label, kind = "take_grant", "<uuid:object_id>/take-grant/", "Take a grant…", "danger-link"
    verb = "take"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview(
            "Holds from the next request on. Groups that give the same grant stay.", "Take the grant"
        )


@admin.register(Workspace)
class WorkspaceAdmin(ModelAdmin):
    list_display = ("named", "slug", "made")
    search_fields = ("name", "slug")
    search_help_text = "Name or slug"
    keyset = ("-id",)
    view_grants = tuple(GRANTS)
    superuser_sees = True
    page_template = "core/page.html"
    governed = (CreateWorkspace, GiveGrant, TakeGrant)

    @admin.display(description="workspace")
    def named(self, obj: Workspace) -> str:
        return obj.name

    @admin.display(description="made")
    def made(self, obj: Workspace) -> SafeString:
        return ui.when(obj.created_at)

    def empty_why(self) -> str:
        return "A superuser makes one; then operators give grants, principals and tokens."

    def page_context(self, request: HttpRequest, obj: Workspace) -> dict[str, Any]:
        facts = [
            ui.Fact("slug", obj.slug),
            ui.Fact("id", ui.short_id(obj.pk, "workspace id", main=True)),
            ui.Fact("made", ui.when(obj.created_at)),
        ]
        holders = ui.Section(title="Who may do what", anchor="holders", content=holders_of(obj))
        return {"facts": ui.Facts(facts), "sections": [holders]}


def holders_of(workspace: Workspace) -> ui.Records:
    """Staff with the grants that each holds on the workspace, and through which group."""
    held: dict[int, dict[str, str]] = {}
    own = WorkspaceUserGrant.objects.filter(content_object=workspace).select_related("permission")
    for grant in own:
        held.setdefault(grant.user_id, {})[grant.permission.codename] = "directly"
    teams = WorkspaceGroupGrant.objects.filter(content_object=workspace).select_related("permission", "group")
    members: dict[int, list[int]] = {}
    for group_id, user_id in Group.objects.filter(pk__in={t.group_id for t in teams}).values_list(
        "pk", "user"
    ):
        if user_id:
            members.setdefault(group_id, []).append(user_id)
    for team in teams:
        for user_id in members.get(team.group_id, []):
            through = team.group.name.partition(": ")[2] or team.group.name
            held.setdefault(user_id, {}).setdefault(team.permission.codename, through)
    users = User.objects.filter(pk__in=held).order_by("username")
    rows = [
        ui.Record(
            [
                user.get_full_name() or user.username,
                ", ".join(f"{grant} ({how})" for grant, how in sorted(held[user.pk].items())),
                ui.nothing("in order") if user.is_active else ui.Mark("warn", "signed off"),
            ]
        )
        for user in users
    ]
    columns = [ui.Column("staff user"), ui.Column("grants", "main"), ui.Column("state", later=True)]
    empty = ui.EmptyState(
        "Nobody holds a grant on this workspace.", "A superuser gives the first one.", level=3
    )
    return ui.Records("Grants by person", columns, rows, empty=empty)
