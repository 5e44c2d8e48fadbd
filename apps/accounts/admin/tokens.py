"""Tokens: what does it allow, is it still used? The secret is shown once, when it is made."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.accounts import services
from apps.accounts.admin.fields import SCOPE_WORDS, ExpiryField, ScopesField, optional_reason, text_input
from apps.accounts.models import ApiToken
from apps.core import clock, ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm, choice_filter

SOON = timedelta(days=7)


class TokenForm(ReasonForm):
    name = forms.CharField(max_length=100, help_text="What uses it.", widget=text_input(**{"data-focus": ""}))
    scopes = ScopesField()
    expires = ExpiryField()
    speaks_for_user = forms.BooleanField(
        required=False,
        label="Speaks for the user",
        help_text="claims written with it carry the user's authority",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        optional_reason(self)


class CreateToken(GovernedAction):
    """On a principal's page."""

    name, path, label = "create_token", "<uuid:object_id>/create-token/", "New token…"
    grants = ("operate_collection",)
    for_superusers = True
    form_class = TokenForm

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "The principal is disabled." if obj.disabled_at else ""

    def heading(self, obj: Any) -> str:
        return f"New token of {obj}"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview("Its secret is shown once, after this. Only a hash of it is kept.", "Make the token")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = services.create_token(
            name=data["name"],
            scopes=data["scopes"],
            principal=obj,
            expires_at=data["expires"],
            speaks_for_user=data["speaks_for_user"],
            reason=data["reason"],
        )
        return Done(
            f"Token {made.token} of {obj}.",
            revealed=ui.Secret(made.secret, f"The secret of {made.token.name}"),
        )


class CreateOwnToken(CreateToken):
    """On the list: a token of the signed-in staff user, with at most that user's grants."""

    name, path, label, kind = "create_own", "create-own/", "New token of mine…", "primary"
    on_object = False

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return bool(getattr(request.user, "is_staff", False))

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return ""

    def heading(self, obj: Any) -> str:
        return "New token of mine"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "For the API's staff endpoints: at most your own grants, and of those only these scopes. "
        return Preview(f"{summary}Its secret is shown once.", "Make the token")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = services.create_token(
            name=data["name"],
            scopes=data["scopes"],
            user_id=request.user.pk,
            expires_at=data["expires"],
            reason=data["reason"],
        )
        return Done(
            f"Token {made.token}.", revealed=ui.Secret(made.secret, f"The secret of {made.token.name}")
        )


class RevokeToken(GovernedAction):
    name, path, label, kind = "revoke", "<uuid:object_id>/revoke/", "Revoke…", "danger"
    grants = ("operate_collection",)
    for_superusers = True

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        own = obj.user_id is not None and obj.user_id == request.user.pk
        return own or super().permitted(model_admin, request, obj)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "It is revoked already." if obj.revoked_at else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        used = ui.when(obj.last_used_at, absent="never used")
        state = {"state": getattr(token_state(obj), "text", "valid"), "scopes": ", ".join(obj.scopes)}
        facts = ui.Facts([ui.Fact("last used", used), ui.Fact("scopes", ", ".join(obj.scopes) or "none")])
        summary = (
            "Whatever uses it is refused from the next request on. Not reversible: make a new one instead."
        )
        return Preview(summary, "Revoke the token", state, [facts])

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.revoke_token(obj.pk, reason=data["reason"])
        return Done(f"Token {obj} is revoked.")


def token_state(token: ApiToken) -> ui.Mark | str:
    """In order is quiet; expiring within 7 days asks for attention."""
    if token.revoked_at:
        return ui.Mark("plain", "revoked")
    if token.expires_at and token.expires_at <= clock.now():
        return ui.Mark("plain", "expired")
    if token.expires_at and token.expires_at - clock.now() <= SOON:
        return ui.Mark("warn", "expires soon")
    return "valid"


def token_rows(request: HttpRequest, principal: Any) -> ui.Records:
    """The tokens of a principal, valid ones first."""
    from django.urls import reverse

    found = list(ApiToken.objects.defer("secret_sha256").filter(principal=principal).order_by("-id")[:100])
    found.sort(key=lambda token: token.revoked_at is not None)
    rows = [
        ui.Record(
            [
                format_html(
                    '<a href="{}">{}</a>', reverse("admin:accounts_apitoken_change", args=[token.pk]), token
                ),
                ", ".join(token.scopes) or ui.nothing("no scope"),
                token_state(token),
                ui.when(token.last_used_at, absent="never used"),
            ],
            tone="quiet" if token.revoked_at else "",
        )
        for token in found
    ]
    columns = [
        ui.Column("token", "main"),
        ui.Column("scopes"),
        ui.Column("state"),
        ui.Column("last used", later=True),
    ]
    empty = ui.EmptyState("No token.", "Without one this principal comes with JWTs, or not at all.", level=3)
    return ui.Records("Tokens of the principal", columns, rows, empty=empty)


def _by_state(rows: QuerySet[ApiToken], value: str) -> QuerySet[ApiToken]:
    now = clock.now()
    valid = Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))
    if value == "soon":
        return rows.filter(valid, expires_at__lte=now + SOON)
    return rows.filter(valid) if value == "valid" else rows.exclude(valid)


STATE = choice_filter(
    "state",
    "state",
    [("valid", "valid"), ("soon", "expires within 7 days"), ("ended", "ended")],
    narrow=_by_state,
)


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    list_name = "tokens"
    list_display = ("named", "bearer", "allows", "state", "used", "ends")
    list_select_related = ("principal", "user", "workspace")
    list_filter = (STATE,)
    view_grants = ("operate_collection",)
    superuser_sees = True
    page_template = "core/page.html"
    governed = (CreateOwnToken, RevokeToken)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Everyone on the staff sees their own tokens; the row policy shows no other ones.
        return bool(getattr(request.user, "is_staff", False) and request.user.is_active)

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        from apps.core.admin import current_workspace

        workspace = current_workspace(request)
        if workspace is None:
            return rows
        return rows.filter(Q(workspace_id=workspace.pk) | Q(user_id=request.user.pk))

    @admin.display(description="token")
    def named(self, obj: ApiToken) -> str:
        return str(obj)

    @admin.display(description="of")
    def bearer(self, obj: ApiToken) -> Any:
        if obj.user_id:
            return format_html('{} <span class="gv-subtle">staff</span>', obj.user.get_username())
        return ui.person(obj.principal.display_name, obj.principal.subject)

    @admin.display(description="scopes")
    def allows(self, obj: ApiToken) -> Any:
        return ", ".join(obj.scopes) or ui.nothing("no scope")

    @admin.display(description="state")
    def state(self, obj: ApiToken) -> ui.Mark | str:
        return token_state(obj)

    @admin.display(description="last used")
    def used(self, obj: ApiToken) -> SafeString:
        return ui.when(obj.last_used_at, absent="never used")

    @admin.display(description="expires")
    def ends(self, obj: ApiToken) -> SafeString:
        return ui.when(obj.expires_at, absent="no end")

    def empty_why(self) -> str:
        return "Open a principal and make one there, or make one of your own."

    def page_context(self, request: HttpRequest, obj: ApiToken) -> dict[str, Any]:
        facts = [
            ui.Fact("token", str(obj)),
            ui.Fact("state", token_state(obj)),
            ui.Fact("of", self.bearer(obj)),
            ui.Fact("last used", ui.when(obj.last_used_at, absent="never used", relative=True)),
            ui.Fact("expires", ui.deadline(obj.expires_at, absent="no end")),
            ui.Fact("made", ui.when(obj.created_at)),
            ui.Fact("id", ui.short_id(obj.pk, "token id", main=True)),
        ]
        sentences = [(SCOPE_WORDS.get(scope, scope),) for scope in obj.scopes]
        if obj.speaks_for_user:
            sentences.append(("speaks for the user: its claims carry the user's authority",))
        listed = format_html_join("", "<li>{}</li>", sentences)
        allows = (
            format_html('<ul class="gv-list">{}</ul>', listed) if sentences else "Nothing: it has no scope."
        )
        section = ui.Section(title="What it allows", anchor="allows", content=allows)
        return {"facts": ui.Facts(facts, first=True), "sections": [section]}
