"""Trusted issuers: whose JWTs a workspace accepts. Settings-like, managed by superusers."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts import services
from apps.accounts.admin.fields import ScopesField, optional_reason, text_input, workspace_field
from apps.accounts.issuers.keys import ALGORITHMS
from apps.accounts.models import TrustedIssuer
from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm

CHANGED_HERE = (
    "jwks_url",
    "pinned_keys",
    "subject_claim",
    "algorithms",
    "scopes",
    "scope_claim",
    "speaks_for_user",
)


class IssuerForm(ReasonForm):
    """What may change of an issuer; names as the model's."""

    jwks_url = forms.CharField(
        required=False, max_length=512, label="Key set address", help_text="https", widget=text_input()
    )
    pinned_keys = forms.JSONField(
        required=False,
        label="Pinned keys",
        help_text="A list of public JWKs, where there is no address.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "gv-input gv-mono", "spellcheck": "false"}),
    )
    subject_claim = forms.CharField(max_length=64, initial="sub", label="Subject claim", widget=text_input())
    algorithms = forms.MultipleChoiceField(
        choices=[(name, name) for name in ALGORITHMS],
        label="Algorithms",
        initial=["RS256"],
        widget=forms.CheckboxSelectMultiple,
    )
    scopes = ScopesField()
    scope_claim = forms.CharField(
        max_length=64,
        required=False,
        label="Scope claim",
        help_text="Narrows the scopes; empty: every JWT has all of them.",
        widget=text_input(),
    )
    speaks_for_user = forms.BooleanField(required=False, label="Its claims carry the user's authority")

    def clean_pinned_keys(self) -> list[Any]:
        keys = self.cleaned_data["pinned_keys"] or []
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise forms.ValidationError("A list of JWKs.")
        return keys


class NewIssuerForm(IssuerForm):
    iss = forms.CharField(
        max_length=512, label="Issuer", help_text="claim iss", widget=text_input(**{"data-focus": ""})
    )
    audience = forms.CharField(max_length=512, label="Audience", help_text="claim aud", widget=text_input())
    subject_prefix = forms.CharField(
        max_length=64,
        label="Subject prefix",
        help_text="Put before the claim, e.g. oidc:login#",
        widget=text_input(),
    )


class CreateIssuer(GovernedAction):
    name, path, label, kind = "create", "create/", "Trust an issuer…", "primary"
    title = "Trust an issuer"
    for_superusers = True
    on_object = False

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = NewIssuerForm(data)
        form.fields["workspace"] = workspace_field(request)
        form.order_fields(["workspace", "iss", "audience", "subject_prefix", *CHANGED_HERE])
        optional_reason(form)
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "From the next request on its JWTs are taken, with at most the scopes chosen here."
        return Preview(f"{summary} Issuer, audience and prefix never change.", "Trust the issuer")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = services.create_issuer(**data)
        return Done(f"{made.iss} is trusted.", self.model_admin.url("change", made.pk))


class ChangeIssuer(GovernedAction):
    name, path, label = "change_issuer", "<uuid:object_id>/change-issuer/", "Change…"
    title = "Change the issuer"
    for_superusers = True

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = IssuerForm(data, initial={name: getattr(obj, name) for name in CHANGED_HERE})
        form.order_fields([*CHANGED_HERE, "reason"])
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        state = {name.replace("_", " "): str(getattr(obj, name)) for name in CHANGED_HERE}
        return Preview(
            "Holds from the next request on; JWTs already taken are not undone.", "Change it", state
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        changes = {name: data[name] for name in CHANGED_HERE if data[name] != getattr(obj, name)}
        if not changes:
            return Done("Nothing differs; nothing was changed.", audit_id="")
        services.change_issuer(obj.pk, reason=data["reason"], **changes)
        return Done(f"{obj.iss} is changed.")


class DeactivateIssuer(GovernedAction):
    name, path, label, kind = "deactivate", "<uuid:object_id>/deactivate/", "Switch off…", "danger-link"
    title = "Switch the issuer off"
    for_superusers = True
    active = True

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return super().permitted(model_admin, request, obj) and obj.active == cls.active

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        words = (
            "Refuses its JWTs from the next request on. Its principals and their rows stay."
            if self.active
            else "Its JWTs are taken again from the next request on."
        )
        confirm = "Switch off 1 issuer" if self.active else "Switch on 1 issuer"
        return Preview(words, confirm, {"state": "active" if self.active else "switched off"})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.change_issuer(obj.pk, reason=data["reason"], active=not self.active)
        return Done(f"{obj.iss} is switched {'off' if self.active else 'on'}.")


class ActivateIssuer(DeactivateIssuer):
    name, path, label, kind = "activate", "<uuid:object_id>/activate/", "Switch on…", ""
    title = "Switch the issuer on"
    active = False


@admin.register(TrustedIssuer)
class TrustedIssuerAdmin(ModelAdmin):
    list_display = ("issuer", "audience", "workspace", "state")
    list_select_related = ("workspace",)
    view_grants = ("operate_collection", "audit")
    superuser_sees = True
    page_template = "core/page.html"
    governed = (CreateIssuer, ChangeIssuer, DeactivateIssuer, ActivateIssuer)

    @admin.display(description="issuer")
    def issuer(self, obj: TrustedIssuer) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', obj.iss)

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
            ui.Fact("scopes", ", ".join(obj.scopes) or ui.nothing()),
            ui.Fact("state", "active" if obj.active else ui.Mark("plain", "switched off")),
        ]
        keys = obj.jwks_url or f"{len(obj.pinned_keys)} pinned keys"
        section = ui.Section(title="Keys", anchor="keys", content=keys)
        return {"facts": ui.Facts(facts, first=True), "sections": [section]}
