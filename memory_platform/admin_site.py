"""The staff site: navigation by grant, workspace switcher, search by any id, and the start page."""

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from unfold.sites import UnfoldAdminSite

from apps.accounts.sign_in import may_enter, second_factor_due
from apps.core.access import choose_workspace, current_workspace, workspace_choices
from apps.core.middleware.csp import strict
from memory_platform.environment import environment


class MemoryAdminSite(UnfoldAdminSite):
    site_title = "Memory governance"
    site_header = "Memory governance"
    index_title = "Start"
    enable_nav_sidebar = True

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Take classes that stand on our base. Those of libraries count, page by OFFSET and change without a
        reason or an audit entry, so their tables have no page until there is one of ours."""
        from apps.core.admin import ModelAdmin

        if admin_class is not None and issubclass(admin_class, ModelAdmin):
            super().register(model_or_iterable, admin_class, **options)

    def get_urls(self) -> list[URLPattern]:
        from apps.learning.desk.views import urls as labelling_desk
        from apps.observations.admin.status import urls as journal_status

        own = [path("workspace/", self.admin_view(self.choose), name="workspace")]
        pages = [*labelling_desk(self.admin_view), *journal_status(self.admin_view)]
        return [*own, *pages, *super().get_urls()]

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        if second_factor_due(request):
            return redirect(f"{reverse('second-factor')}?{urlencode({'next': request.GET.get('next', '')})}")
        extra_context = {"oidc": settings.OIDC_ENABLED} | (extra_context or {})
        return strict(super().login)(request, extra_context)  # type: ignore[no-any-return]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context: dict[str, Any] = super().each_context(request)
        signed_in = self.has_permission(request)
        context["workspace_choices"] = workspace_choices(request) if signed_in else []
        context["current_workspace"] = current_workspace(request) if signed_in else None
        return context

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from memory_platform.start_page import start_page

        return super().index(request, start_page(request) | (extra_context or {}))  # type: ignore[no-any-return]

    def choose(self, request: HttpRequest) -> HttpResponseBase:
        """Narrow lists to one workspace, or to none."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        chosen = choose_workspace(request, request.POST.get("workspace", ""))
        messages.info(request, f"Lists show {chosen.name if chosen else 'all your workspaces'}.")
        target = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
            target = reverse("admin:index")
        # A page of a list belongs to the workspace it was opened in.
        return redirect(target.split("?")[0])

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Pages by name, objects by any id or hash. Nothing of it is cached: what was typed may be a secret."""
        term = (request.GET.get("s") or "").strip()
        if not term:
            return HttpResponse()
        from memory_platform.find import find

        context = {"results": find(request, self, term)}
        response = TemplateResponse(request, "core/find_results.html", context)
        response["HX-Trigger"] = "search"
        response["Cache-Control"] = "no-store"
        return response


Entry = dict[str, Any]


def _entry(title: str, icon: str, route: str, key: str = "") -> Entry:
    """One line of the navigation; `route` is a url name of the admin, absent ones are left out."""
    return {"title": title, "icon": icon, "route": route, "key": key}


GROUPS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("", (_entry("Start", "home", "index", "s"),)),
    (
        "Memory in use",
        (
            _entry("Traces", "timeline", "traces_trace_changelist", "t"),
            _entry("Retrieval receipts", "receipt_long", "retrieval_receipt_changelist"),
            _entry("Imported receipts", "upload_file", "retrieval_prmereceipt_changelist"),
            _entry("Context ablations", "content_cut", "feedback_ablation_changelist"),
            _entry("Credit ledger", "account_balance", "feedback_edgestrength_changelist"),
            _entry("Activation", "local_fire_department", "traces_activation_changelist"),
            _entry("Principals", "badge", "accounts_principal_changelist"),
        ),
    ),
    (
        "Ranking",
        (
            _entry("Profiles", "tune", "learning_rankingprofile_changelist", "p"),
            _entry("Evaluations", "monitoring", "learning_evaluation_changelist", "e"),
            _entry("Labelling desk", "fact_check", "learning_labelling_desk"),
        ),
    ),
    (
        "Journal",
        (
            _entry("Journal status", "health_and_safety", "observations_status"),
            _entry("Observations", "visibility", "observations_staffobservation_changelist", "o"),
            _entry("Enrolments", "how_to_reg", "observations_enrolment_changelist"),
            _entry("Journal activation", "checklist", "observations_activationrun_changelist"),
            _entry("Exports", "download", "observations_exportrecord_changelist"),
            _entry("Kill switch", "emergency_home", "observations_killswitch_changelist"),
        ),
    ),
    (
        "Upkeep",
        (
            _entry("Alarms", "notifications", "operations_alarm_changelist", "a"),
            _entry("Job runs", "schedule", "operations_jobrun_changelist"),
            _entry("Holds", "lock", "operations_legalhold_changelist"),
            _entry("Erasures", "delete_forever", "operations_erasurecertificate_changelist"),
            _entry("Retention reviews", "event_available", "operations_retentionreview_changelist"),
            _entry("Alarm destinations", "outgoing_mail", "operations_destination_changelist"),
            _entry("Policies", "policy", "core_storedpolicy_changelist"),
            _entry("Audit trail", "history_edu", "core_auditentry_changelist"),
        ),
    ),
    (
        "Access",
        (
            _entry("Workspaces", "workspaces", "accounts_workspace_changelist"),
            _entry("Tokens", "key", "accounts_apitoken_changelist"),
            _entry("Trusted issuers", "verified_user", "accounts_trustedissuer_changelist"),
            _entry("Staff", "group", "auth_user_changelist"),
            _entry("Groups", "groups", "auth_group_changelist"),
        ),
    ),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of the side navigation: pages that exist and that the user may open."""
    found = []
    for title, entries in GROUPS:
        items = [made for entry in entries if (made := _item(request, entry))]
        if items:
            found.append({"title": title, "items": items})
    return found


def _item(request: HttpRequest, entry: Entry) -> Entry | None:
    try:
        link = reverse(f"admin:{entry['route']}")
    except NoReverseMatch:
        return None
    at = request.path
    active = at == link if entry["route"] == "index" else at.startswith(link)
    return {
        "title": entry["title"],
        "icon": entry["icon"],
        "key": entry["key"],
        "link": link,
        "active": active,
        "permission": _may_open(entry["route"]),
    }


def _may_open(route: str) -> Callable[[HttpRequest], bool]:
    if route == "learning_labelling_desk":
        from apps.learning.desk.views import may_sit

        return may_sit
    if route == "observations_status":
        from apps.observations.admin.status import may_watch

        return may_watch
    if not route.endswith("_changelist"):
        return lambda request: True

    def allowed(request: HttpRequest) -> bool:
        from django.contrib.admin import site

        app_label, model_name = route.removesuffix("_changelist").split("_", 1)
        model_admin = site._registry.get(apps.get_model(app_label, model_name))
        return model_admin is not None and model_admin.has_view_permission(request)

    return allowed


def environment_badge(request: HttpRequest) -> tuple[str, str] | None:
    """What kind of installation this is, beside the heading; nothing in production, the normal case."""
    return None if environment().memory_production else ("Not production", "warning")
