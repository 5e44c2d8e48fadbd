"""Principals: who is this, what do we hold of it, what may it do?"""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from apps.accounts import services
from apps.accounts.admin.fields import optional_reason, text_input, workspace_field
from apps.accounts.admin.tokens import CreateToken, token_rows
from apps.accounts.grants import GRANTS
from apps.accounts.models import SHARED_SUBJECT, ApiToken, Principal
from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm, choice_filter

# Lists of other apps that hold a principal's rows: url name and words. Absent ones are left out.
HELD_LISTS = (
    ("traces_trace_changelist", "Traces"),
    ("traces_activation_changelist", "Activation"),
    ("feedback_edgestrength_changelist", "Credit ledger"),
    ("operations_legalhold_changelist", "Holds"),
)


FactsOf = Callable[[Principal], list[ui.Fact]]
_more_facts: list[FactsOf] = []


def register_facts(facts: FactsOf) -> None:
    """Have the page of a principal show what another app knows of it."""
    _more_facts.append(facts)


class PrincipalForm(ReasonForm):
    subject = forms.CharField(
        max_length=512,
        help_text="e.g. github:123, token:agent-1",
        widget=text_input(**{"data-focus": ""}),
    )
    display_name = forms.CharField(max_length=200, required=False, widget=text_input())


class CreatePrincipal(GovernedAction):
    name, path, label, kind = "create", "create/", "New principal…", "primary"
    title = "New principal"
    on_object = False
    grants = ("operate_collection",)
    for_superusers = True
    form_class = PrincipalForm

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = PrincipalForm(data)
        form.fields["workspace"] = workspace_field(request, "operate_collection")
        optional_reason(form)
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview("Makes an owner of private data. It holds nothing and may do nothing yet.", "Make it")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = services.create_principal(
            workspace=data["workspace"],
            subject=data["subject"],
            display_name=data["display_name"],
            reason=data["reason"],
        )
        return Done(f"Principal {made} is there.", self.model_admin.url("change", made.pk))


class DisablePrincipal(GovernedAction):
    name, path, label, kind = "disable", "<uuid:object_id>/disable/", "Disable…", "danger-link"
    grants = ("operate_collection",)
    for_superusers = True

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        may = super().permitted(model_admin, request, obj)
        return may and obj.subject != SHARED_SUBJECT and (obj.disabled_at is None) == cls.when_enabled()

    @classmethod
    def when_enabled(cls) -> bool:
        return True

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        tokens = ApiToken.objects.filter(principal=obj, revoked_at__isnull=True).count()
        summary = f"Refuses its {tokens} tokens and its JWTs from the next request on. Its rows stay."
        return Preview(summary, "Disable the principal", {"valid tokens": str(tokens), "state": "enabled"})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.disable_principal(obj.pk, reason=data["reason"])
        return Done(f"{obj} is disabled.")


class EnablePrincipal(DisablePrincipal):
    name, path, label, kind = "enable", "<uuid:object_id>/enable/", "Enable…", ""

    @classmethod
    def when_enabled(cls) -> bool:
        return False

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview("Its valid tokens are taken again from the next request on.", "Enable the principal")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        services.enable_principal(obj.pk, reason=data["reason"])
        return Done(f"{obj} is enabled.")


def _by_state(rows: QuerySet[Principal], value: str) -> QuerySet[Principal]:
    if value == "shared":
        return rows.filter(subject=SHARED_SUBJECT)
    return rows.filter(disabled_at__isnull=value == "enabled")


STATE = choice_filter(
    "state",
    "state",
    [("enabled", "enabled"), ("disabled", "disabled"), ("shared", "shared principals")],
    narrow=_by_state,
)


@admin.register(Principal)
class PrincipalAdmin(ModelAdmin):
    list_display = ("who", "workspace", "state", "seen")
    list_select_related = ("workspace",)
    list_filter = (STATE,)
    search_fields = ("subject", "display_name")
    search_help_text = "Subject or name"
    view_grants = tuple(GRANTS)
    superuser_sees = True
    page_template = "core/page.html"
    governed = (CreatePrincipal, CreateToken, DisablePrincipal, EnablePrincipal)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Beginnings of subjects and names: what an index can answer."""
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(Q(subject__startswith=term) | Q(display_name__istartswith=term)), False

    @admin.display(description="principal")
    def who(self, obj: Principal) -> SafeString:
        return ui.person(obj.display_name, obj.subject)

    @admin.display(description="state")
    def state(self, obj: Principal) -> Any:
        if obj.disabled_at:
            return ui.Mark("warn", "disabled")
        return "shared" if obj.subject == SHARED_SUBJECT else ui.nothing("enabled")

    @admin.display(description="known since")
    def seen(self, obj: Principal) -> SafeString:
        return ui.when(obj.created_at)

    def empty_why(self) -> str:
        return "A principal appears with its first token or its first call."

    def page_context(self, request: HttpRequest, obj: Principal) -> dict[str, Any]:
        facts = [
            ui.Fact("principal", ui.person(obj.display_name, obj.subject)),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("id", ui.short_id(obj.pk, "principal id", main=True)),
            ui.Fact("known since", ui.when(obj.created_at)),
            ui.Fact("state", ui.Mark("warn", "disabled") if obj.disabled_at else "enabled"),
        ]
        for more in _more_facts:
            facts += more(obj)
        tokens = ui.Section(title="Tokens", anchor="tokens", content=token_rows(request, obj))
        held = ui.Section(title="What is held", anchor="held", content=held_lists(obj))
        return {"facts": ui.Facts(facts, first=True), "sections": [tokens, held]}


def held_lists(principal: Principal) -> SafeString:
    """Links to the lists that hold this principal's rows, filtered."""
    links = []
    for route, words in HELD_LISTS:
        try:
            base = reverse(f"admin:{route}")
        except NoReverseMatch:
            continue
        links.append((f"{base}?{urlencode({'principal': str(principal.pk), 'window': 'all'})}", words))
    if not links:
        return format_html('<p class="gv-subtle">{}</p>', "No data held.")
    items = format_html_join("", '<li><a href="{}">{}</a></li>', links)
    return format_html('<ul class="gv-list">{}</ul>', items)
