"""The pages of the desk. Plain forms; the script only keeps a judgment in the page when the server does not answer."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.admin import site
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.models import Principal
from apps.core import clock
from apps.core.access import workspaces_with
from apps.core.ids import uuid7
from apps.core.middleware.csp import strict
from apps.core.problems import Problem
from apps.learning.desk import sitting as sittings
from apps.learning.desk.items import look, passage_at
from apps.learning.desk.queues import Queue, lacking_now, queue_of
from apps.learning.desk.sitting import Sitting
from apps.learning.services import desk as service

START, ITEM = "learning_labelling_desk", "learning_labelling_item"
NEEDED = ("view_traces", "curate", "reveal_text")
GRADES = (0, 1, 2, 3, 4)
LEAST_RELEVANT_GRADE = 1
MAX_PRINCIPALS = 50


class ReasonForm(forms.Form):
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 2}), required=False)
    blind = forms.BooleanField(required=False)


class JudgeForm(forms.Form):
    receipt = forms.UUIDField()
    node = forms.UUIDField()
    feedback_id = forms.UUIDField()
    verdict = forms.RegexField(r"^(relevant|not|skip|grade[0-4])$")
    note = forms.CharField(max_length=1000, required=False)


def _page(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponseBase:
    frame = {"site_title": site.site_title, "title": "Labelling desk"}
    response = TemplateResponse(request, f"desk/labelling_{template}.html", frame | context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _allowed(request: HttpRequest) -> frozenset[UUID]:
    return frozenset.intersection(*(workspaces_with(request, grant) for grant in NEEDED))


def may_sit(request: HttpRequest) -> bool:
    """Whether there is a workspace at whose desk the user may sit."""
    return bool(_allowed(request))


def _granted(request: HttpRequest) -> frozenset[UUID]:
    """Workspaces where the user may sit at the desk. Raises Http404 without one."""
    found = _allowed(request)
    if not found:
        raise Http404
    return found


def _asked(request: HttpRequest, given: Any, granted: frozenset[UUID]) -> Queue | None:
    queue = queue_of(given)
    if queue is not None and queue.workspace_id not in granted:
        raise Http404
    if queue is None and any(given.get(name) for name in ("evaluation", "receipt", "principal")):
        raise Http404
    return queue


@require_safe
def start(request: HttpRequest) -> HttpResponseBase:
    """Which queue, how much it is, and why it is read."""
    granted = _granted(request)
    return _start(
        request, granted, _asked(request, request.GET, granted), ReasonForm(initial={"blind": True})
    )


def _start(
    request: HttpRequest, granted: frozenset[UUID], queue: Queue | None, form: forms.Form, error: str = ""
) -> HttpResponseBase:
    known = (
        Principal.objects.defer("hash_key").filter(workspace_id__in=granted).order_by("-created_at", "-id")
    )
    context = {
        "queue": queue,
        "principals": known[: MAX_PRINCIPALS + 1],
        "most": MAX_PRINCIPALS,
        "running": sittings.running(request),
        "form": form,
        "error": error,
    }
    return _page(request, "start", context, status=400 if error else 200)


@require_POST
def open_desk(request: HttpRequest) -> HttpResponseBase:
    """Begin a sitting: the one reveal, audited."""
    granted = _granted(request)
    queue = _asked(request, request.POST, granted)
    if queue is None:
        raise Http404
    form = ReasonForm(request.POST)
    form.is_valid()
    try:
        audit_id = service.open_desk(queue=queue, reason=form.cleaned_data.get("reason", ""))
    except Problem as problem:
        return _start(request, granted, queue, form, error=problem.detail or problem.title)
    sittings.keep(
        request,
        Sitting(
            id=str(uuid7()),
            user=int(request.user.pk or 0),
            queue=queue.name,
            title=queue.title,
            principal_id=str(queue.principal_id),
            receipts=[str(one) for one in queue.receipts],
            blind=form.cleaned_data["blind"],
            opened_at=clock.now().isoformat(),
            audit_id=str(audit_id),
        ),
    )
    return redirect(f"admin:{ITEM}")


@require_safe
def item(request: HttpRequest) -> HttpResponseBase:
    """The next passage, or the end of the queue."""
    _granted(request)
    sitting = sittings.running(request)
    if sitting is None:
        return redirect(f"admin:{START}")
    return _item(request, sitting)


def _item(
    request: HttpRequest, sitting: Sitting, error: str = "", given: dict[str, Any] | None = None
) -> HttpResponseBase:
    following, progress = look(sitting, request.user.get_username())
    context: dict[str, Any] = {"sitting": sitting, "progress": progress, "error": error, "grades": GRADES}
    if following is None:
        key, _, reference = sitting.queue.partition("=")
        queue = queue_of({key: reference})
        context |= {"queue": queue, "again": _evaluation(sitting)}
        if queue is not None and queue.lacking is not None:
            context["lacking"] = lacking_now(queue, [UUID(one) for one in sitting.receipts])
            context["lacks_nothing"] = not any(context["lacking"])
        return _page(request, "end", context)
    passage = passage_at(following, UUID(sitting.principal_id))
    # What was typed stays with its passage, and a repeated submission with its id.
    kept = given if given and given.get("node") == following.node_id else {}
    context |= {
        "place": following,
        "passage": passage,
        "feedback_id": kept.get("feedback_id") or uuid7(),
        "note": kept.get("note", ""),
        "number": progress.judged + progress.skipped + 1,
    }
    return _page(request, "item", context, status=400 if error else 200)


def _evaluation(sitting: Sitting) -> str:
    """Address of the evaluation that asked for the labels, if one did."""
    kind, _, name = sitting.queue.partition("=")
    return reverse("admin:learning_evaluation_change", args=[name]) if kind == "evaluation" else ""


@require_POST
def judge(request: HttpRequest) -> HttpResponseBase:
    """One verdict: recorded, or skipped for this sitting."""
    _granted(request)
    sitting = sittings.running(request)
    if sitting is None:
        return redirect(f"admin:{START}")
    form = JudgeForm(request.POST)
    if not form.is_valid() or str(form.cleaned_data["receipt"]) not in sitting.receipts:
        return _item(request, sitting, error="Not saved: this was no verdict on a passage of the desk.")
    said = form.cleaned_data
    if said["verdict"] == "skip":
        sitting.skip(said["receipt"], said["node"])
    else:
        try:
            _record(said)
        except Problem as problem:
            return _item(request, sitting, error=f"Not saved: {problem.detail or problem.title}", given=said)
        sitting.note_saved(said["feedback_id"], said["receipt"])
    sittings.keep(request, sitting)
    return redirect(f"admin:{ITEM}")


def _record(said: dict[str, Any]) -> None:
    verdict: str = said["verdict"]
    grade = int(verdict[-1]) if verdict.startswith("grade") else None
    relevant = verdict == "relevant" if grade is None else grade >= LEAST_RELEVANT_GRADE
    service.judge(
        receipt_id=said["receipt"],
        node_id=said["node"],
        feedback_id=said["feedback_id"],
        relevant=relevant,
        grade=grade,
        note=said["note"],
    )


@require_POST
def undo(request: HttpRequest) -> HttpResponseBase:
    """Take the last judgment of the sitting back; its passage comes again."""
    _granted(request)
    sitting = sittings.running(request)
    if sitting is None:
        return redirect(f"admin:{START}")
    if sitting.undoable:
        feedback_id, receipt_id = sitting.undoable.pop()
        try:
            service.take_back(receipt_id=UUID(receipt_id), feedback_id=UUID(feedback_id))
        except Problem as problem:
            return _item(request, sitting, error=f"Not taken back: {problem.detail or problem.title}")
        sitting.saved -= 1
        sittings.keep(request, sitting)
    return redirect(f"admin:{ITEM}")


@require_POST
def leave(request: HttpRequest) -> HttpResponseBase:
    """End the sitting: the text is closed again."""
    _granted(request)
    sittings.close(request)
    return redirect(f"admin:{START}")


def urls(wrap: Callable[[Any], Any]) -> list[URLPattern]:
    """Routes below `/admin/`; `wrap` is the site's check of who comes in."""
    routes = (
        ("", start, START),
        ("open/", open_desk, "learning_labelling_open"),
        ("item/", item, ITEM),
        ("judge/", judge, "learning_labelling_judge"),
        ("undo/", undo, "learning_labelling_undo"),
        ("leave/", leave, "learning_labelling_leave"),
    )
    return [
        path(f"desk/labels/{end}", strict(wrap(never_cache(view))), name=name) for end, view, name in routes
    ]
