"""The base of every admin class: keyset lists without counts, rights by grant, pages in place of forms.

Row policies of the database decide what is seen. What this adds: what may be opened or changed, how lists are
read, exports, and that an append-only object has a page and no form.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.contrib.admin.options import IS_POPUP_VAR, ShowFacets
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin as UnfoldModelAdmin

from apps.core import ui
from apps.core.access import holds, is_superuser, narrow, workspaces_with
from apps.core.admin.changelist import CURSOR, PER_PAGE, KeysetChangeList
from apps.core.admin.export import FORMATS, export_columns, stream
from apps.core.admin.trail import audit_trail, trail_url
from apps.core.db.rowpolicy import OwnerPolicy, WorkspacePolicy
from apps.core.db.sessions import own_transactions, staff_session


class ModelAdmin(UnfoldModelAdmin):
    """Base of all admin classes.

    keyset: the order of the list; its last field is unique and it has an index.
    view_grants: any of these lets a user see the list; by default what the model's row policy names.
    write_grants: any of these lets a user add and change; objects without it are append-only here.
    superuser_sees: superusers see rows without a grant (accounts, never data).
    page_template: the page of one object in place of a form; see `page_context`.
    list_name: what the list is headed with, where the model's plural is not what people say.
    """

    keyset: ClassVar[tuple[str, ...]] = ("-id",)
    view_grants: ClassVar[tuple[str, ...] | None] = None
    write_grants: ClassVar[tuple[str, ...]] = ()
    superuser_sees: ClassVar[bool] = False
    superuser_writes: ClassVar[bool] = False
    page_template: ClassVar[str] = ""
    list_name: ClassVar[str] = ""
    exports: ClassVar[bool] = True
    governed: ClassVar[tuple[type[Any], ...]] = ()

    show_facets = ShowFacets.NEVER
    show_full_result_count = False
    list_per_page = PER_PAGE
    list_max_show_all = 0
    list_filter_submit = True
    list_filter_sheet = False
    list_disable_select_all = True
    sortable_by: Sequence[str] = ()
    actions_selection_counter = True
    empty_value_display = "–"
    compressed_fields = False
    warn_unsaved_form = True

    @classmethod
    def add_actions(cls, *actions: type[Any]) -> None:
        """Apps above add what they do to this model, when their admin is loaded and before any page is served."""
        cls.governed = (*cls.governed, *(action for action in actions if action not in cls.governed))

    # Rights -----------------------------------------------------------------------------------------------

    def grants_to_view(self) -> tuple[str, ...]:
        if self.view_grants is not None:
            return self.view_grants
        policy = getattr(self.model, "row_policy", None)
        named = policy.staff if isinstance(policy, OwnerPolicy) else None
        named = policy.read if isinstance(policy, WorkspacePolicy) else named
        return (named,) if isinstance(named, str) else tuple(named or ())

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if self.superuser_sees and is_superuser(request):
            return True
        return bool(workspaces_with(request, *self.grants_to_view()))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_write_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if self.page_template or not (self.write_grants or self.superuser_writes):
            return False
        if self.superuser_writes and is_superuser(request):
            return True
        if obj is not None:
            return holds(request, obj, *self.write_grants)
        return bool(workspaces_with(request, *self.write_grants))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_write_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.has_write_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Deleting is a service with a preview (erasure, revocation), never the admin's own button.
        return False

    actions = None

    def get_list_display(self, request: HttpRequest) -> Sequence[Any]:
        columns = list(super().get_list_display(request))
        return ["action_checkbox", *columns] if self.bulk_actions(request) else columns

    def get_list_display_links(self, request: HttpRequest, list_display: Sequence[Any]) -> Any:
        return super().get_list_display_links(request, [c for c in list_display if c != "action_checkbox"])

    # Rows -------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Everything the row policies show, whatever the current workspace; lists narrow it further."""
        joined = self.list_select_related if isinstance(self.list_select_related, list | tuple) else ()
        rows = super().get_queryset(request)
        # Joined here and not only in lists: a row fetched by its key alone would ask for closed columns, too.
        joined_rows = rows.select_related(*joined) if joined else rows
        return joined_rows.defer(*self.closed_columns())  # type: ignore[no-any-return]

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of a list: those of the current workspace."""
        everything = self.superuser_sees and is_superuser(request)
        return narrow(request, rows, self.grants_to_view(), everything=everything)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Read what the rows of one page need beyond their own columns, for all of them at once."""

    def closed_columns(self) -> list[str]:
        """Columns that the role of staff cannot read: the model's raw text, and that of joined models."""
        names = list(getattr(self.model, "raw_text", ()))
        joined = self.list_select_related if isinstance(self.list_select_related, list | tuple) else ()
        for lookup in joined:
            related = self.model
            for part in lookup.split("__"):
                related = related._meta.get_field(part).related_model
            names += [f"{lookup}__{name}" for name in getattr(related, "raw_text", ())]
        return names

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        related = db_field.related_model
        closed = getattr(related, "raw_text", ())
        if "queryset" not in kwargs and closed:
            kwargs["queryset"] = related._default_manager.defer(*closed)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # Pages ------------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context = {
            "export_urls": self.export_urls(request),
            "title": self.list_title(),
            "bulk_actions": self.bulk_actions(request),
            "list_actions": self.list_buttons(request),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def list_title(self) -> str:
        name = self.list_name or str(self.opts.verbose_name_plural)
        return name[:1].upper() + name[1:]

    def object_title(self, obj: Any) -> str:
        """What the page of an object is headed with; ids stay as they are written."""
        return str(obj)

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        """What the list says when it has no row. Filters that hide everything are said by `filtered_empty`."""
        return ui.EmptyState(f"No {self.opts.verbose_name} yet.", self.empty_why())

    def empty_why(self) -> str:
        return "Rows appear here as soon as there is one in a workspace that you hold the grant for."

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponseBase:
        if self.page_template:
            return self.page_view(request, object_id)
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        context = {"title": self.object_title(obj), "audit": audit_trail(obj)}
        context["actions"] = ui.ActionRow(self.action_buttons(request, obj))
        return super().change_view(  # type: ignore[no-any-return]
            request, object_id, form_url, context | (extra_context or {})
        )

    def page_view(self, request: HttpRequest, object_id: str) -> TemplateResponse:
        """The page of one object. Hidden and absent are one answer."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_view_permission(request, obj):
            raise Http404
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "model_admin": self,
            "object": obj,
            "title": self.object_title(obj),
            "actions": ui.ActionRow(self.action_buttons(request, obj)),
            "audit": audit_trail(obj),
            **self.page_context(request, obj),
        }
        return TemplateResponse(request, self.page_template, context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """What was done to an object is in the audit trail. Hidden and absent are one answer."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_view_permission(request, obj):
            raise Http404
        return redirect(trail_url(obj))

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What the page shows beyond title, actions and audit; evaluated here, inside the session."""
        return {}

    def action_buttons(self, request: HttpRequest, obj: Any) -> list[ui.ActionButton]:
        """One button for each governed action of this class that the user may take on the object."""
        found = []
        for action in self.governed:
            if action.on_object and (button := action.button(self, request, obj)):
                found.append(button)
        return found

    def list_buttons(self, request: HttpRequest) -> list[ui.ActionButton]:
        """Governed actions over the list as a whole."""
        found = [
            a.button(self, request, None) for a in self.governed if not a.on_object and not a.on_selection
        ]
        return [button for button in found if button]

    def bulk_actions(self, request: HttpRequest) -> list[dict[str, str]]:
        """Governed actions over selected rows that the user may take somewhere."""
        return [
            {"label": action.label, "url": self.url(action.name)}
            for action in self.governed
            if action.on_selection and action.permitted(self, request, None)
        ]

    # Exports and urls ---------------------------------------------------------------------------------------

    def export_urls(self, request: HttpRequest) -> list[dict[str, str]]:
        if not self.exports or not export_columns(self.model):
            return []
        query = request.GET.copy()
        for name in (CURSOR, IS_POPUP_VAR):
            query.pop(name, None)
        base = self.url("export")
        return [{"name": kind.upper(), "url": f"{base}?{_with(query, kind)}"} for kind in FORMATS]

    def url(self, name: str, *args: Any) -> str:
        return reverse(
            f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{name}", args=args
        )

    def filtered(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the list as the query string filters them, whole."""
        return self.get_changelist_instance(request).queryset  # type: ignore[no-any-return]

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        kind = request.GET.get("format", "")
        if request.method != "GET" or kind not in FORMATS or not self.exports:
            raise Http404
        given = request.GET.copy()
        given.pop("format")
        request.GET = given  # type: ignore[assignment]
        with staff_session(int(request.user.pk or 0)):
            if not self.has_view_permission(request):
                raise Http404
        return stream(request, model=self.model, query=self.filtered, keyset=self.keyset, kind=kind)

    def get_urls(self) -> list[URLPattern]:
        stem = f"{self.opts.app_label}_{self.opts.model_name}"

        # The marks of own_transactions must be on what is resolved, so the method is wrapped before admin_view.
        def export_list(request: HttpRequest) -> HttpResponseBase:
            return self.export_view(request)

        export: Callable[..., Any] = own_transactions(export_list)
        own = [path("export/", self.admin_site.admin_view(export), name=f"{stem}_export")]
        for action in self.governed:
            view = self.admin_site.admin_view(action.as_view(model_admin=self))
            own.append(path(action.path, view, name=f"{stem}_{action.name}"))
        return [*own, *super().get_urls()]


def _with(query: Any, kind: str) -> str:
    query = query.copy()
    query["format"] = kind
    return str(query.urlencode())
