"""Staff users: who is signed on, and what each may do on which workspace."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.accounts import services
from apps.accounts.admin.fields import optional_reason, text_input
from apps.accounts.grants import GROUPS
from apps.accounts.models import ApiToken, Workspace, WorkspaceGroupGrant, WorkspaceUserGrant
from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm, workspace_choices


class StaffForm(ReasonForm):
    username = forms.CharField(
        max_length=150, label="User name", widget=text_input(**{"data-focus": "", "autocomplete": "off"})
    )
    full_name = forms.CharField(max_length=300, required=False, label="Name", widget=text_input())
    email = forms.EmailField(
        required=False, label="E-mail", widget=forms.EmailInput(attrs={"class": "gv-input"})
    )
    groups = forms.MultipleChoiceField(
        required=False, label="Groups", widget=forms.CheckboxSelectMultiple, help_text="more grants later"
    )


class CreateStaff(GovernedAction):
    name, path, label, kind = "create", "create/", "New staff user…", "primary"
    title = "New staff user"
    on_object = False
    for_superusers = True

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = StaffForm(data)
        form.fields["groups"].choices = [  # type: ignore[attr-defined]
            (f"{workspace.pk}:{title}", f"{workspace.name}: {title} ({', '.join(grants)})")
            for workspace in workspace_choices(request)
            for title, grants in GROUPS.items()
        ]
        optional_reason(form)
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Makes a person who may sign in here. The initial password is shown once."
        return Preview(f"{summary} Without a group it sees nothing yet.", "Make the staff user")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        known = {str(workspace.pk): workspace for workspace in workspace_choices(request)}
        chosen = [choice.partition(":") for choice in data["groups"]]
        made = services.create_staff(
            username=data["username"],
            full_name=data["full_name"],
            email=data["email"],
            groups=[(known[key], title) for key, _, title in chosen],
            reason=data["reason"],
        )
        name = made.user.username
        return Done(
            f"Staff user {name} is there.",
            revealed=ui.Secret(made.password, f"The initial password of {name}"),
        )


class EmailForm(ReasonForm):
    email = forms.EmailField(
        required=False,
        label="E-mail",
        help_text="empty: nobody signs in as this user through the organisation",
        widget=forms.EmailInput(attrs={"class": "gv-input", "data-focus": ""}),
    )


class ChangeEmail(GovernedAction):
    name, path, label, kind = "change_email", "<int:object_id>/change-email/", "Change e-mail…", ""
    title = "Change the e-mail address"

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return bool(getattr(request.user, "is_superuser", False))

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = EmailForm(data, initial={"email": obj.email})
        form.order_fields(["email", "reason"])
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Whoever the organisation's sign-in service knows by the new address comes in as this user."
        return Preview(summary, "Change it", {"email": obj.email})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        if data["email"] == obj.email:
            return Done("Nothing differs; nothing was changed.", audit_id="")
        services.change_staff_email(obj.pk, email=data["email"], reason=data["reason"])
        return Done(f"The e-mail address of {obj.get_full_name() or obj.username} is changed.")


class DeactivateStaff(GovernedAction):
    name, path, label, kind = "deactivate", "<int:object_id>/deactivate/", "Sign off…", "danger-link"
    title = "Sign the staff user off"
    for_superusers = True
    when_active = True

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return super().permitted(model_admin, request, obj) and obj.is_active == cls.when_active

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "Another superuser signs you off." if obj.pk == request.user.pk else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        tokens = ApiToken.objects.filter(user=obj, revoked_at__isnull=True).count()
        summary = (
            f"Refuses its sessions and its {tokens} tokens from the next request on. Its grants stay, unused."
        )
        return Preview(summary, "Sign off 1 person", {"tokens": str(tokens), "state": "active"})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.deactivate_staff(obj.pk, reason=data["reason"])
        return Done(f"{obj.get_full_name() or obj.username} is signed off.")


class ActivateStaff(DeactivateStaff):
    name, path, label, kind = "activate", "<int:object_id>/activate/", "Let in again…", ""
    title = "Let the staff user in again"
    when_active = False

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview(
            "It may sign in again, with the grants it holds now.", "Let in 1 person", {"state": "off"}
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.activate_staff(obj.pk, reason=data["reason"])
        return Done(f"{obj.get_full_name() or obj.username} may sign in again.")


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
    governed = (CreateStaff, ChangeEmail, DeactivateStaff, ActivateStaff)

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
        section = ui.Section(title="Grants", anchor="grants", content=grants_of(obj))
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
