"""Form fields that several governed actions of accounts share."""

from typing import Any

from django import forms
from django.http import HttpRequest

from apps.accounts.caller import SCOPES
from apps.core import clock
from apps.core.admin import ReasonForm, is_superuser, workspace_choices, workspaces_with

SCOPE_WORDS: dict[str, str] = {
    "search": "may search and see explanations",
    "feedback": "may give feedback and read its traces",
    "learning": "may evaluate and propose rankings",
    "memory": "may write and read memory",
    "sources": "may manage sources",
    "curation": "may curate",
    "export": "may export its data",
    "erase": "may erase everything it owns",
    "monitor": "may read health and metrics",
    "evidence": "may read evidence",
}


def text_input(**attrs: Any) -> forms.TextInput:
    return forms.TextInput(attrs={"class": "gv-input", **attrs})


class ScopesField(forms.MultipleChoiceField):
    """Token scopes as sentences."""

    def __init__(self, **kwargs: Any) -> None:
        choices = [(scope, f"{scope}: {SCOPE_WORDS.get(scope, scope)}") for scope in SCOPES]
        super().__init__(choices=choices, widget=forms.CheckboxSelectMultiple, label="Scopes", **kwargs)


class ExpiryField(forms.TypedChoiceField):
    """How long a credential holds, as a choice; clean() gives the time of its end, or None for no end."""

    def __init__(self) -> None:
        choices = [("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "no end")]
        widget = forms.Select(attrs={"class": "gv-input"})
        super().__init__(choices=choices, required=False, initial="90", label="Holds for", widget=widget)

    def clean(self, value: Any) -> Any:
        from datetime import timedelta

        days = super().clean(value)
        return clock.now() + timedelta(days=int(days)) if days else None


def workspace_field(request: HttpRequest, *grants: str) -> forms.ChoiceField:
    """Workspaces on which the user may do this; a superuser on all."""
    allowed = workspaces_with(request, *grants)
    everything = is_superuser(request)
    choices = [(str(w.pk), w.name) for w in workspace_choices(request) if everything or w.pk in allowed]
    return forms.ChoiceField(
        choices=choices, label="Workspace", widget=forms.Select(attrs={"class": "gv-input"})
    )


def optional_reason(form: ReasonForm) -> None:
    """Making something explains itself; the reason may stay empty."""
    form.fields["reason"].required = False
    form.fields["reason"].widget.attrs.pop("data-focus", None)
    form.order_fields([name for name in form.fields if name != "reason"] + ["reason"])
