"""Stored policies: what is in effect, what would change?"""

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, policies, ui
from apps.core.access import current_workspace, is_superuser, workspace_choices, workspaces_with
from apps.core.admin.base import ModelAdmin
from apps.core.admin.filters import TextFilter
from apps.core.admin.governed import Done, GovernedAction, Preview, ReasonForm
from apps.core.models import StoredPolicy
from apps.core.models.policies import PUBLISHERS, READERS
from apps.core.problems import Problem

MOST_VERSIONS = 50


class KindFilter(TextFilter):
    title = "kind"
    parameter_name = "kind"


class DocumentForm(ReasonForm):
    workspace = forms.ChoiceField(
        label="For", required=False, widget=forms.Select(attrs={"class": "gv-input"})
    )
    document = forms.JSONField(
        label="Document",
        help_text="every field written out",
        widget=forms.Textarea(attrs={"rows": 14, "class": "gv-input gv-mono", "spellcheck": "false"}),
    )
    effective_from = forms.DateTimeField(
        label="In effect from",
        required=False,
        help_text="UTC; empty is at once",
        widget=forms.DateTimeInput(attrs={"class": "gv-input", "type": "datetime-local"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["workspace", "document", "effective_from", "reason"])


class PublishPolicy(GovernedAction):
    """Two steps on one form: the preview shows what the edited document would change, then it is published.

    Bound to the version that the author saw: the newest of the workspace, or the default while it has none.
    """

    name, path, label, kind = "publish", "<uuid:object_id>/publish/", "Publish a change…", "primary"
    form_class = DocumentForm
    previews_input = True

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return bool(cls._targets(request))

    @classmethod
    def _targets(cls, request: HttpRequest) -> list[tuple[str, str]]:
        allowed = workspaces_with(request, *PUBLISHERS)
        found = [(str(w.pk), w.name) for w in workspace_choices(request) if w.pk in allowed]
        if is_superuser(request):
            found.insert(0, ("", "the default of the installation"))
        return found

    def heading(self, obj: Any) -> str:
        return f"Publish a change of the {kind_title(obj.kind)} policy"

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        targets = self._targets(request)
        workspace = current_workspace(request)
        known = {key for key, _ in targets}
        wanted = [str(obj.workspace_id or ""), str(workspace.pk) if workspace else ""]
        first = next((key for key in wanted if key in known), targets[0][0])
        form = DocumentForm(data, initial={"document": obj.document, "workspace": first})
        form.fields["workspace"].choices = targets  # type: ignore[attr-defined]
        form.fields["document"].initial = obj.document
        form.fields["document"].encoder = _Indented  # type: ignore[attr-defined]
        if not policies.kind_named(obj.kind).scheduled:
            del form.fields["effective_from"]
        return form

    def _asked(self, request: HttpRequest, obj: Any, form: ReasonForm) -> tuple[Any, Any, Any]:
        """Workspace, document and time of the form, or of the version that the page shows."""
        if form.is_bound and form.is_valid():
            data = form.cleaned_data
            return data["workspace"] or None, data["document"], data.get("effective_from")
        posted = request.POST.get("workspace") if form.is_bound else form.initial["workspace"]
        known = {key for key, _ in self._targets(request)}
        return (posted if posted in known else None) or None, obj.document, None

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        workspace, document, effective_from = self._asked(request, obj, form)
        try:
            seen = policies.preview_policy(
                workspace_id=workspace, kind=obj.kind, document=document, effective_from=effective_from
            )
        except Problem as problem:
            before = policies.followed(workspace, obj.kind)
            notice = ui.Notice("bad", _said(problem))
            return Preview(
                "The document is not valid.", "Publish", {"version": before.hash}, [notice], bound=before.hash
            )
        parts: list[Any] = []
        if seen.change.fields:
            rows = [ui.Difference(f.pointer, _json(f.before), _json(f.after)) for f in seen.change.fields]
            parts.append(ui.SideBySide("in effect", "this change", rows))
        if seen.refusal is not None:
            parts.append(ui.Notice("bad", _said(seen.refusal)))
        elif seen.effect is not None and seen.change.fields:
            parts.append(
                seen.effect if isinstance(seen.effect, ui.Part) else ui.JsonTree(seen.effect, "effect")
            )
        changed = len(seen.change.fields)
        ending = "" if changed == 1 else "s"
        summary = (
            f"Changes {changed} value{ending}. " if changed else "Nothing differs yet: edit the document. "
        )
        summary += "What was done under a version keeps it."
        return Preview(
            summary, f"Publish {changed} change{ending}", {"version": seen.version}, parts, bound=seen.version
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        row = policies.publish_policy(
            workspace_id=data["workspace"] or None,
            kind=obj.kind,
            document=data["document"],
            if_match=request.POST.get("version"),
            reason=data["reason"],
            effective_from=data.get("effective_from"),
        )
        return Done(f"{row} is published.", self.model_admin.url("change", row.pk))


class _Indented(json.JSONEncoder):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "indent": 2, "ensure_ascii": False})


def _said(problem: Problem) -> str:
    words = problem.detail or problem.title
    return f"{problem.pointer}: {words}" if problem.pointer else words


def _json(value: Any) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)


def kind_title(kind: str) -> str:
    found = {known.name: known.title for known in policies.registered_kinds()}
    return (found.get(kind) or kind).lower()


def rules_now(row: StoredPolicy) -> bool:
    """Whether this version is the one in effect for its workspace (or the default)."""
    try:
        return bool(policies.current_policy(row.workspace_id, row.kind).pk == row.pk)
    except policies.PolicyMissing:
        return False


@admin.register(StoredPolicy)
class StoredPolicyAdmin(ModelAdmin):
    list_name = "policies"
    list_display = ("named", "of", "state", "effective", "by", "why")
    list_select_related = ("workspace", "author")
    list_filter = (KindFilter,)
    view_grants = READERS
    superuser_sees = True
    page_template = "core/page.html"
    governed = (PublishPolicy,)

    def list_rows(self, request: HttpRequest, rows: Any) -> Any:
        """Versions of the current workspace beside the defaults that it follows."""
        workspace = current_workspace(request)
        return (
            rows
            if workspace is None
            else rows.filter(workspace_id=workspace.pk) | rows.filter(workspace_id=None)
        )

    @admin.display(description="policy")
    def named(self, obj: StoredPolicy) -> str:
        return f"{kind_title(obj.kind)}, version {obj.version}"

    @admin.display(description="of")
    def of(self, obj: StoredPolicy) -> Any:
        return obj.workspace or "default"

    @admin.display(description="state")
    def state(self, obj: StoredPolicy) -> Any:
        if obj.effective_from > clock.now():
            return ui.Mark("run", "to come")
        return ui.Mark("ok", "in effect", bare=True) if rules_now(obj) else "replaced"

    @admin.display(description="in effect from")
    def effective(self, obj: StoredPolicy) -> SafeString:
        return ui.when(obj.effective_from)

    @admin.display(description="by")
    def by(self, obj: StoredPolicy) -> Any:
        return str(obj.author) if obj.author else "the platform"

    @admin.display(description="reason")
    def why(self, obj: StoredPolicy) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', obj.reason)

    def object_title(self, obj: Any) -> str:
        return f"{kind_title(obj.kind).capitalize()} policy, version {obj.version}"

    def page_context(self, request: HttpRequest, obj: StoredPolicy) -> dict[str, Any]:
        facts = [
            ui.Fact("state", self.state(obj)),
            ui.Fact("of", obj.workspace or "the installation's default"),
            ui.Fact("in effect from", ui.when(obj.effective_from)),
            ui.Fact("by", self.by(obj)),
            ui.Fact("reason", obj.reason or ui.nothing()),
            ui.Fact("hash", ui.short_hash(obj.hash, "hash")),
        ]
        sections = [
            ui.Section(title="Document", anchor="document", content=ui.JsonTree(obj.document, obj.kind))
        ]
        if (before := _before(obj)) is not None:
            rows = [
                ui.Difference(f.pointer, _json(f.before), _json(f.after))
                for f in policies.differences(before.document, obj.document)
            ]
            content: Any = ui.SideBySide(_called(before, obj), f"version {obj.version}", rows)
            title = "What it changed"
            sections.insert(
                0, ui.Section(title=title, anchor="changed", content=content if rows else "Nothing.")
            )
        sections.append(ui.Section(title="Versions", anchor="versions", content=self.versions(obj)))
        return {"facts": ui.Facts(facts, first=True), "sections": sections}

    def versions(self, obj: StoredPolicy) -> ui.Timeline:
        found = list(
            policies.policy_versions(obj.workspace_id, obj.kind).select_related("author")[:MOST_VERSIONS]
        )
        events = [
            ui.Event(
                row.effective_from,
                format_html('<a href="{}">version {}</a>', self.url("change", row.pk), row.version),
                str(self.by(row)),
                "ok" if rules_now(row) else "plain",
                row.reason,
            )
            for row in reversed(found)
        ]
        return ui.Timeline(events, title="Versions")


def _called(before: StoredPolicy, row: StoredPolicy) -> str:
    """A workspace's first version follows the default, whose numbers are its own."""
    own = before.workspace_id == row.workspace_id
    return f"version {before.version}" if own else f"the default, version {before.version}"


def _before(row: StoredPolicy) -> StoredPolicy | None:
    """The version that this one followed: the one before, for a first one the default."""
    older = policies.policy_versions(row.workspace_id, row.kind).filter(version__lt=row.version).first()
    if older is not None or row.workspace_id is None:
        return older
    return policies.policy_versions(None, row.kind).filter(effective_from__lte=row.effective_from).first()
