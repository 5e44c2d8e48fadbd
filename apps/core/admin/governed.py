"""Governed actions: show what an act will touch, ask for a reason, act once, say what was touched.

GET is the preview: a fragment for the dialog of our script, a page of its own without it. POST carries the
reason and the hash of what the person saw; another state refuses, keeps the reason and shows what changed since.
The service that acts writes the audit entry, in the same transaction.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.views import View

from apps.core import canonical, ui
from apps.core.access import holds, is_superuser, workspaces_with
from apps.core.admin.trail import own_last_entry
from apps.core.problems import InvalidRequest, NotFound, Problem, StaleVersion
from apps.core.reasons import check_reason

MOST_SELECTED = 500
WORD_FROM = 1000


class ReasonForm(forms.Form):
    """The reason of every governed action; subclasses add the choices of theirs."""

    reason = forms.CharField(
        label="Reason",
        help_text="Kept in the audit log. No personal data.",
        max_length=1000,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 2, "class": "gv-input", "data-focus": ""}),
    )

    def clean_reason(self) -> str:
        reason: str = self.cleaned_data["reason"]
        try:
            return check_reason(reason, required=False)
        except InvalidRequest as refusal:
            raise forms.ValidationError(refusal.detail or refusal.title) from refusal


@dataclass(frozen=True)
class Preview:
    """What the act will touch.

    summary: one sentence with numbers. parts: tables that show it. confirm: the act and its size, on the button.
    state: names and shown values of everything the person decides on; its hash binds the POST to this preview.
    bound: the version that the service itself checks, where it gives one.
    size: rows touched; over 1,000, or when `irreversible`, the word `erase` must be typed.
    """

    summary: str
    confirm: str
    state: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[Any] = ()
    size: int = 0
    irreversible: bool = False
    word: str = ""
    bound: str = ""

    @property
    def version(self) -> str:
        return self.bound or canonical.checksum(dict(self.state))

    @property
    def typed(self) -> str:
        return self.word or ("erase" if self.irreversible or self.size > WORD_FROM else "")


@dataclass(frozen=True)
class Done:
    """What happened, in words, with the object's page and the audit entry; or closed text, shown once."""

    message: str
    object_url: str = ""
    audit_id: Any = None
    revealed: Any = None


class GovernedAction(View):
    """Base of governed actions. Subclasses say the words and override `blocked`, `preview` and `act`.

    path: below the model's admin; `<path:object_id>/…/` for one object. grants: any of them on its workspace.
    for_superusers: they may take it, too; without grants they alone.
    stands_elsewhere: the page draws its button itself, where it belongs; it is not among the actions of the page.
    previews_input: what is typed decides what happens, so the first POST shows that and the second, equal one acts.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    label: ClassVar[str]
    title: ClassVar[str] = ""
    kind: ClassVar[Any] = ""
    grants: ClassVar[tuple[str, ...]] = ()
    for_superusers: ClassVar[bool] = False
    on_object: ClassVar[bool] = True
    on_selection: ClassVar[bool] = False
    stands_elsewhere: ClassVar[bool] = False
    form_class: ClassVar[type[ReasonForm]] = ReasonForm
    fill: ClassVar[str] = ""
    previews_input: ClassVar[bool] = False
    model_admin: Any = None

    # What a subclass says --------------------------------------------------------------------------------

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        """Whether the user may take this action at all; otherwise there is no button and no page."""
        if cls.for_superusers and is_superuser(request):
            return True
        if isinstance(obj, models.Model):
            return holds(request, obj, *cls.grants)
        return bool(workspaces_with(request, *cls.grants))

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        """Why it cannot be done now, in words; empty when it can."""
        return ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        raise NotImplementedError

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        """Call the service. Raises `Problem` to refuse; everything it wrote is then undone."""
        raise NotImplementedError

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        return self.form_class(data)

    def heading(self, obj: Any) -> str:
        return self.title or self.label.rstrip("…")

    # The flow --------------------------------------------------------------------------------------------

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        """Its button among the actions of the page, for who may take it."""
        if cls.stands_elsewhere or not cls.permitted(model_admin, request, obj):
            return None
        href = model_admin.url(cls.name, *([obj.pk] if cls.on_object else []))
        return ui.ActionButton(cls.label, href, cls.kind, blocked=cls.blocked(model_admin, request, obj))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.obj = self.get_object(request, **kwargs)
        if not self.permitted(self.model_admin, request, self.obj):
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def get_object(self, request: HttpRequest, object_id: str = "", **kwargs: Any) -> Any:
        if not self.on_object:
            return None
        obj = self.model_admin.get_object(request, object_id)
        if obj is None:
            raise Http404
        return obj

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = self.make_form(request, self.obj)
        return self._show(request, form, self.preview(request, self.obj, form))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = self.make_form(request, self.obj, request.POST)
        valid = form.is_valid()
        preview = self.preview(request, self.obj, form)
        seen = request.POST.get("version", "")
        if seen != preview.version:
            return self._show(request, form, preview, status=412, changed=_since(request, preview))
        if not valid or self._word_missing(request, preview):
            return self._show(
                request, form, preview, status=422, word_missing=self._word_missing(request, preview)
            )
        if why := self.blocked(self.model_admin, request, self.obj):
            return self._show(request, form, preview, status=409, refusal=why)
        if self.previews_input and request.POST.get("previewed") != inputs_digest(request):
            return self._show(request, form, preview, previewed=inputs_digest(request))
        try:
            with transaction.atomic():
                done = self.act(request, self.obj, form.cleaned_data, preview)
        except StaleVersion:
            form_preview = self.preview(request, self.obj, form)
            return self._show(request, form, form_preview, status=412, changed=_since(request, form_preview))
        except NotFound as missing:
            raise Http404 from missing
        except Problem as problem:
            return self._show(
                request, form, preview, status=problem.status, refusal=problem.detail or problem.title
            )
        return self._finish(request, done)

    def _word_missing(self, request: HttpRequest, preview: Preview) -> bool:
        return bool(preview.typed) and request.POST.get("word", "").strip() != preview.typed

    def _finish(self, request: HttpRequest, done: Done) -> HttpResponseBase:
        if done.audit_id is None:
            done = replace(done, audit_id=own_last_entry(request))
        in_dialog = "X-Gov-Dialog" in request.headers
        if done.revealed is not None:
            context = {
                "revealed": done.revealed,
                "message": done.message,
                "audit_url": _audit_url(done.audit_id),
            }
            template = "core/parts/revealed.html" if in_dialog else "core/revealed_page.html"
            response = TemplateResponse(request, template, self._frame(request) | context)
            response["Cache-Control"] = "no-store"
            if in_dialog:
                response["X-Gov-Fill"] = self.fill or "#gv-result"
            return response
        messages.success(request, _result(done))
        target = done.object_url or self._back()
        if in_dialog:
            answer = HttpResponse(status=204)
            answer["X-Gov-Location"] = target
            return answer
        return redirect(target)

    def crumbs(self) -> list[dict[str, Any]]:
        """List and object above the page of the action."""
        admin = self.model_admin
        found = [{"link": admin.url("changelist"), "title": admin.list_title()}]
        if self.on_object:
            found.append({"link": admin.url("change", self.obj.pk), "title": admin.object_title(self.obj)})
        return found

    def _back(self) -> str:
        if self.on_object:
            return str(self.model_admin.url("change", self.obj.pk))
        return str(self.model_admin.url("changelist"))

    def _frame(self, request: HttpRequest) -> dict[str, Any]:
        if "X-Gov-Dialog" in request.headers:
            return {}
        return {
            **self.model_admin.admin_site.each_context(request),
            "opts": self.model_admin.opts,
            "object": self.obj,
            "title": self.heading(self.obj),
            "crumbs": self.crumbs(),
            "media": self.model_admin.media,
            "in_page": True,
        }

    def _show(
        self, request: HttpRequest, form: ReasonForm, preview: Preview, *, status: int = 200, **more: Any
    ) -> TemplateResponse:
        context = {
            **self._frame(request),
            "form": form,
            "preview": preview,
            "heading": self.heading(self.obj),
            "danger": self.kind.startswith("danger"),
            "blocked": self.blocked(self.model_admin, request, self.obj),
            "seen": json.dumps(dict(preview.state), ensure_ascii=False),
            "typed_word": request.POST.get("word", ""),
            "action_url": request.get_full_path(),
            "back_url": self._back(),
            "hidden": self.hidden_values(request),
            "confirm": "Show what it would change" if self.previews_input else preview.confirm,
            **more,
        }
        if context.get("previewed"):
            context["confirm"] = preview.confirm
        template = (
            "core/parts/action_form.html" if "X-Gov-Dialog" in request.headers else "core/action_page.html"
        )
        response = TemplateResponse(request, template, context, status=status)
        response["Cache-Control"] = "no-store"
        return response

    def hidden_values(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Hidden fields that the form carries on (selected ids of a bulk action)."""
        return []


class BulkAction(GovernedAction):
    """A governed action over at most 500 selected rows of a list.

    The list posts the selection; the first POST is the preview, the second, which carries a version, acts.
    """

    on_object: ClassVar[bool] = False
    on_selection: ClassVar[bool] = True

    def selected(self, request: HttpRequest) -> list[Any]:
        """The selected rows that the user sees and may act on, in their order."""
        keys = request.POST.getlist("_selected_action")[: MOST_SELECTED + 1]
        if len(keys) > MOST_SELECTED:
            raise Http404
        rows = self.model_admin.get_queryset(request).filter(pk__in=keys)
        return [row for row in rows if self.permitted(self.model_admin, request, row)]

    def hidden_values(self, request: HttpRequest) -> list[tuple[str, str]]:
        return [("_selected_action", key) for key in request.POST.getlist("_selected_action")]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return redirect(self._back())

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.POST.getlist("_selected_action"):
            messages.warning(request, "Select rows first.")
            return redirect(self._back())
        if "version" in request.POST:
            return super().post(request, *args, **kwargs)
        form = self.make_form(request, self.obj)
        return self._show(request, form, self.preview(request, self.obj, form))


def inputs_digest(request: HttpRequest) -> str:
    """What was typed, apart from the reason: the input that a preview was made from."""
    apart = {"csrfmiddlewaretoken", "version", "seen", "previewed", "word", "reason"}
    return canonical.checksum({k: request.POST.getlist(k) for k in request.POST if k not in apart})


def _since(request: HttpRequest, preview: Preview) -> ui.SideBySide:
    """What the person saw against what is now. What was sent is only shown back to its sender."""
    try:
        seen = {str(k): str(v) for k, v in json.loads(request.POST.get("seen") or "{}").items()}
    except (ValueError, AttributeError):
        seen = {}
    names = list(dict.fromkeys([*seen, *preview.state]))
    rows = [ui.Difference(name, seen.get(name, "–"), preview.state.get(name, "–")) for name in names]
    return ui.SideBySide("when you looked", "now", rows, only_differences=True)


def _audit_url(audit_id: Any) -> str:
    return reverse("admin:core_auditentry_change", args=[audit_id]) if audit_id else ""


def _result(done: Done) -> Any:
    if not done.audit_id:
        return done.message
    return format_html('{} <a href="{}">Audit entry</a>', done.message, _audit_url(done.audit_id))
