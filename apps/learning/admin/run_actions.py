"""What staff with `manage_profiles` do about evaluations and holdouts: ask for one, stop it, make a profile of both."""

import contextlib
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html

from apps.accounts.admin.principals import PrincipalAdmin
from apps.accounts.models import SHARED_SUBJECT, Principal
from apps.core import clock, ui
from apps.core.access import workspaces_with
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm
from apps.core.ids import uuid7
from apps.feedback.models import Judgment
from apps.learning.admin.run_parts import is_open
from apps.learning.admin.words import BASE, PROMOTION, in_words, page_url, scopes_in_words, short, whose
from apps.learning.exceptions import NotPromotable
from apps.learning.models import Evaluation, Holdout, QuerySet, RankingProfile
from apps.learning.policy import gate_in_effect
from apps.learning.services import staff
from apps.learning.services.staff import GRANT
from apps.operations.admin.holds import PlaceHold

MOST_COUNTED = 10_000
INPUT = {"class": "gv-input"}


class KeyedForm(ReasonForm):
    """A reason, and the key under which the request counts once."""

    change_id = forms.CharField(max_length=128, widget=forms.HiddenInput, initial=lambda: str(uuid7()))


class QuestionForm(KeyedForm):
    """What an evaluation asks: of which scope set, on which surface."""

    scopes = forms.CharField(
        label="Scopes",
        required=False,
        help_text="The exact set, slugs with commas. Empty: searches of all scopes.",
        max_length=1100,
        widget=forms.TextInput(attrs=INPUT),
    )
    surface = forms.ChoiceField(
        label="Labels on",
        choices=[("results", "results"), ("context", "packed contexts")],
        initial="results",
        widget=forms.RadioSelect,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["principal", "scopes", "surface", "reason", "change_id"])

    def clean_scopes(self) -> list[str] | None:
        # What a slug is, the service knows; it refuses into the dialog.
        names = sorted({name.strip() for name in self.cleaned_data["scopes"].split(",") if name.strip()})
        return names or None


class NewQuestionForm(QuestionForm):
    principal = forms.CharField(
        label="Principal",
        help_text="Subject or id",
        max_length=512,
        widget=forms.TextInput(attrs={**INPUT, "data-focus": ""}),
    )

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_principal(self) -> Principal:
        given = self.cleaned_data["principal"].strip()
        named = Q(subject=given)
        with contextlib.suppress(ValueError):
            named |= Q(pk=UUID(given))
        rows = Principal.objects.defer("hash_key").filter(
            workspace_id__in=workspaces_with(self.request, GRANT)
        )
        found = list(rows.filter(named).exclude(subject=SHARED_SUBJECT)[:2])
        if len(found) != 1:
            raise forms.ValidationError("No one principal of this name where you manage profiles.")
        return found[0]


def judgments_of(principal_id: UUID) -> str:
    """How many judgments a principal has, exactly while they are few."""
    number = Judgment.objects.filter(principal_id=principal_id)[: MOST_COUNTED + 1].count()
    return f"more than {ui.count(MOST_COUNTED)}" if number > MOST_COUNTED else ui.count(number)


class Evaluate(GovernedAction):
    """Asks for an offline evaluation of a principal, from its page."""

    name, path, label = "evaluate", "<uuid:object_id>/evaluate/", "Evaluate labels…"
    title = "Evaluate labels"
    grants = (GRANT,)
    form_class: ClassVar[type[ReasonForm]] = QuestionForm

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return super().permitted(model_admin, request, obj) and (
            not isinstance(obj, Principal) or obj.subject != SHARED_SUBJECT
        )

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        gate = gate_in_effect(obj.workspace_id)
        summary = (
            f"Fits multipliers on {judgments_of(obj.pk)} judgments of {obj} under the gate policy, version "
            f"{gate.version}, in the background. It changes nothing that anybody is served."
        )
        return Preview(summary, "Start 1 evaluation", {"gate": f"version {gate.version}"})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        return started(
            staff.start_evaluation_for(
                principal_id=obj.pk,
                scopes=data["scopes"],
                surface=data["surface"],
                key=data["change_id"],
                reason=data["reason"],
            )
        )


def started(evaluation_id: UUID) -> Done:
    return Done("The evaluation is on its way.", page_url("learning_evaluation_change", evaluation_id))


class NewEvaluation(Evaluate):
    """The same from the list, for a principal that is named."""

    name, path, label, kind = "new", "new/", "New evaluation…", "primary"
    title = "New evaluation"
    on_object = False

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        return NewQuestionForm(request, data)

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Fits multipliers on the judgments of one principal under its gate policy, in the background. It "
            "changes nothing that anybody is served."
        )
        return Preview(summary, "Start 1 evaluation")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        return super().act(request, data["principal"], data, preview)


class RunAgain(Evaluate):
    """The same question on the labels of now."""

    name, path, label = "again", "<uuid:object_id>/again/", "Run again…"
    title = "Run again"
    form_class = KeyedForm

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        gate = gate_in_effect(obj.workspace_id)
        summary = (
            f"Asks the same of {judgments_of(obj.principal_id)} judgments of {whose(obj)} in "
            f"{scopes_in_words(obj.scopes)}, under the gate policy of now, version {gate.version}."
        )
        return Preview(summary, "Start 1 evaluation", {"gate": f"version {gate.version}"})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        key, reason = data["change_id"], data["reason"]
        return started(staff.repeat_evaluation_for(evaluation_id=obj.pk, key=key, reason=reason))


class CancelRun(GovernedAction):
    """Stops what is under way; nothing of it is stored."""

    name, path, label, kind = "cancel", "<uuid:object_id>/cancel/", "Cancel…", "danger"
    title = "Cancel the run"
    grants = (GRANT,)
    stands_elsewhere = True  # at the progress of the run

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "" if is_open(obj) else "It has ended."

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Stops the run at its next step. Nothing of it is stored; it can be asked for again."
        return Preview(summary, "Cancel 1 run", {"ended": "no" if is_open(obj) else obj.status})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        if isinstance(obj, Evaluation):
            staff.cancel_evaluation_for(evaluation_id=obj.pk, reason=data["reason"])
        else:
            staff.cancel_holdout_for(holdout_id=obj.pk, reason=data["reason"])
        return Done("The run is told to stop.")


class KeepEvaluation(PlaceHold):
    """A legal hold, by retention reviewers."""

    held_kind = Evaluation._meta.label_lower


class KeepHoldout(PlaceHold):
    held_kind = Holdout._meta.label_lower


class HoldoutForm(KeyedForm):
    query_set = forms.ChoiceField(label="Query set", widget=forms.Select(attrs=INPUT))

    def __init__(self, data: Any, sets: list[QuerySet]) -> None:
        super().__init__(data)
        words = [
            (str(one.pk), f"{one.name}, {one.num_queries} queries, {one.created_at:%Y-%m-%d}") for one in sets
        ]
        self.fields["query_set"].choices = words  # type: ignore[attr-defined]
        self.order_fields(["query_set", "reason", "change_id"])


class HoldOut(GovernedAction):
    """Has both arms answer queries that the evaluation has not seen."""

    name, path, label, kind = "holdout", "<uuid:object_id>/holdout/", "Hold out…", "primary"
    title = "Hold out on unseen queries"
    grants = (GRANT,)

    @classmethod
    def sets(cls, obj: Any) -> list[QuerySet]:
        rows = QuerySet.objects.filter(principal_id=obj.principal_id)
        return list(rows.order_by("-created_at", "-id")[:50])

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        result = getattr(obj, "result", None)
        if result is None:
            return "It has no result yet."
        if result.decision == "insufficient_data":
            return "It had too few labelled queries to propose anything."
        if obj.surface != "results":
            return "Only an evaluation of results can be held out."
        if not cls.sets(obj):
            return (
                "This principal has no query set; POST /v1/learning/query-sets or import_query_set makes one."
            )
        return ""

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        return HoldoutForm(data, self.sets(obj))

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        found = self.sets(obj)
        most = max((one.num_queries for one in found), default=0)
        gate = gate_in_effect(obj.workspace_id)
        summary = (
            f"Searches up to {ui.count(most)} queries twice, under what is active now and under the proposal, in the "
            "background. A set that shares a query or group with the evaluation is refused."
        )
        state = {"gate": f"version {gate.version}", "query sets": str(len(found))}
        return Preview(summary, "Start 1 holdout", state)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = staff.start_holdout_for(
            evaluation_id=obj.pk,
            query_set_id=UUID(data["query_set"]),
            key=data["change_id"],
            reason=data["reason"],
        )
        return Done("The holdout is on its way.", page_url("learning_holdout_change", made))


class ProfileForm(ReasonForm):
    baseline = forms.ChoiceField(label="The baseline was", widget=forms.RadioSelect)
    term = forms.TypedChoiceField(
        label="Applies for",
        choices=[("", "no end"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year")],
        coerce=int,
        empty_value=None,
        required=False,
        widget=forms.Select(attrs=INPUT),
    )

    def __init__(self, data: Any, baselines: list[tuple[str, str]]) -> None:
        super().__init__(data)
        self.fields["baseline"].choices = baselines  # type: ignore[attr-defined]
        self.fields["baseline"].initial = baselines[0][0] if baselines else ""
        self.order_fields(["baseline", "term", "reason"])


class MakeProfile(GovernedAction):
    """Makes the immutable profile; both decisions are computed again first. Nothing is activated."""

    name, path, label, kind = "profile", "<uuid:object_id>/profile/", "Make a profile…", "primary"
    title = "Make a ranking profile"
    grants = (GRANT,)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        result = getattr(obj, "result", None)
        if result is None:
            return "It has no result yet."
        if obj.exploratory:
            return "It is exploratory."
        if result.decision != "improved_full_retrieval":
            return "It was no improvement."
        return ""

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        return ProfileForm(data, baselines_of(obj))

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        gate = gate_in_effect(obj.workspace_id)
        result = getattr(obj, "result", None)
        summary = (
            "Computes evaluation and holdout again from stored receipts and labels, holds both against the gate "
            f"policy, version {gate.version}, and makes a profile of {whose(obj)} in "
            f"{scopes_in_words(obj.scopes)}. Nothing is activated."
        )
        state = {"gate": f"version {gate.version}", "decision": result.decision if result else "none"}
        return Preview(summary, "Make 1 profile", state)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        baseline = data["baseline"]
        until = clock.now() + timedelta(days=data["term"]) if data["term"] else None
        try:
            made = staff.create_profile_for(
                holdout_id=obj.pk,
                baseline_profile_id=None if baseline == BASE else UUID(baseline),
                effective_until=until,
                reason=data["reason"],
            )
        except NotPromotable as refused:
            refused.detail = in_words(PROMOTION, str(refused.more.get("reason", "")))
            raise
        words = format_html("Profile {} is there. Nothing is active by it.", short(made.pk))
        return Done(words, page_url("learning_rankingprofile_change", made.pk))


def baselines_of(holdout: Holdout) -> list[tuple[str, str]]:
    """What the holdout's baseline can have been: base at unity, else profiles with just its multipliers."""
    if all(value == 1.0 for value in holdout.baseline_multipliers):
        return [(BASE, BASE)]
    rows = RankingProfile.objects.filter(
        principal_id=holdout.principal_id, multipliers=holdout.baseline_multipliers, scopes=holdout.scopes
    )
    if holdout.scopes is None:
        rows = RankingProfile.objects.filter(
            principal_id=holdout.principal_id, multipliers=holdout.baseline_multipliers, scopes__isnull=True
        )
    return [(str(row.pk), f"profile {short(row.pk)}") for row in rows.order_by("-created_at")[:10]]


PrincipalAdmin.add_actions(Evaluate)
