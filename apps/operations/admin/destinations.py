"""Where notices of alarms go, with the last proof by a human that they arrive."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import (
    Done,
    GovernedAction,
    ModelAdmin,
    Preview,
    ReasonForm,
    workspace_choices,
    workspaces_with,
)
from apps.operations import alarms
from apps.operations.alarms.destinations import CONFIRM_WITHIN, is_confirmed
from apps.operations.models import Delivery, Destination
from apps.operations.models.alarms import DestinationKind, DestinationUse
from apps.operations.rules import OPERATORS, WATCHERS

SELECT = {"class": "gv-input"}


class DestinationForm(ReasonForm):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs={**SELECT, "data-focus": ""}))
    kind = forms.ChoiceField(choices=DestinationKind.choices, widget=forms.Select(attrs=SELECT))
    address = forms.CharField(
        max_length=500, help_text="An e-mail address, or an https URL.", widget=forms.TextInput(attrs=SELECT)
    )
    use = forms.ChoiceField(
        choices=[("live", "live: real alarms"), ("test", "test: test alarms only")],
        widget=forms.Select(attrs=SELECT),
    )


class OfDestination(GovernedAction):
    grants = OPERATORS

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        if getattr(obj, "workspace_id", None) is None:
            return bool(workspaces_with(request, *cls.grants))
        return super().permitted(model_admin, request, obj)


class AddDestination(OfDestination):
    name, path, label, kind = "create", "create/", "New destination…", "primary"
    title = "New destination"
    on_object = False
    form_class = DestinationForm

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = DestinationForm(data)
        allowed = workspaces_with(request, *OPERATORS)
        choices = [("", "the whole installation")]
        choices += [(str(w.pk), w.name) for w in workspace_choices(request) if w.pk in allowed]
        form.fields["workspace"] = forms.ChoiceField(
            choices=choices, required=False, label="Alarms of", widget=forms.Select(attrs=SELECT)
        )
        form.order_fields(["name", "kind", "address", "use", "workspace", "reason"])
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Notices carry codes, counts and a link, never text. Send a test and confirm that it arrived."
        )
        return Preview(summary, "Add the destination")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        made = alarms.save_destination(
            destination=Destination(
                name=data["name"],
                kind=data["kind"],
                address=data["address"],
                use=data["use"],
                workspace_id=data["workspace"] or None,
            ),
            reason=data["reason"],
        )
        return Done(
            f"Destination {made.name} is there. Now send a test.", self.model_admin.url("change", made.pk)
        )


class TestForm(ReasonForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["reason"]


class SendTest(OfDestination):
    name, path, label, kind = "test", "<uuid:object_id>/test/", "Send a test…", "primary"
    form_class = TestForm

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "" if obj.active else "It is switched off."

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        return Preview(f"Sends a test alarm to {obj.name}. It opens no alarm.", "Send the test")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        alarms.send_test(destination_id=obj.pk)
        return Done("The test is on its way. Confirm here when it has arrived.")


class Confirm(OfDestination):
    name, path, label = "confirm", "<uuid:object_id>/confirm/", "It arrived…"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = f"You say that you have received what was sent to {obj.name}. Holds for {CONFIRM_WITHIN.days} days."
        return Preview(summary, "I received it")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        alarms.confirm_destination(destination_id=obj.pk, reason=data["reason"])
        return Done(f"{obj.name} is confirmed.")


class ShowSecret(OfDestination):
    """A new signing secret, shown once."""

    name, path, label, kind = "rotate", "<uuid:object_id>/rotate/", "New signing secret…", "danger-link"

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return obj.kind == DestinationKind.WEBHOOK and super().permitted(model_admin, request, obj)

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        state = {"generation": str(obj.secret_generation)}
        return Preview(
            "Notices are signed with another secret from the next one on.", "Make a new secret", state
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        changed = alarms.rotate_secret(destination_id=obj.pk, reason=data["reason"])
        secret = ui.Secret(alarms.signing_secret(changed), f"The signing secret of {obj.name}")
        return Done(f"The secret of {obj.name} has changed.", revealed=secret)


def proof(destination: Destination) -> Any:
    """Whether a human has said that notices arrive, and until when that counts."""
    if destination.confirmed_at is None:
        return ui.Mark("warn", "never confirmed")
    if not is_confirmed(destination):
        return ui.Mark("warn", "confirmation is old")
    if destination.confirmed_at + CONFIRM_WITHIN - clock.now() < CONFIRM_WITHIN / 10:
        return ui.Mark("warn", "confirm again soon")
    return ui.when(destination.confirmed_at)


@admin.register(Destination)
class DestinationAdmin(ModelAdmin):
    list_name = "alarm destinations"
    list_display = ("name", "kind", "goes_to", "purpose", "proven", "scope")
    list_select_related = ("workspace", "confirmed_by")
    view_grants = WATCHERS
    superuser_sees = True
    page_template = "core/page.html"
    governed = (AddDestination, SendTest, Confirm, ShowSecret)

    def list_rows(self, request: HttpRequest, rows: Any) -> Any:
        return rows

    @admin.display(description="address")
    def goes_to(self, obj: Destination) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', obj.address)

    @admin.display(description="use")
    def purpose(self, obj: Destination) -> Any:
        if not obj.active:
            return ui.Mark("plain", "switched off")
        return obj.use if obj.use == DestinationUse.LIVE else ui.Mark("plain", "test")

    @admin.display(description="last proof by a human")
    def proven(self, obj: Destination) -> Any:
        return proof(obj)

    @admin.display(description="alarms of")
    def scope(self, obj: Destination) -> Any:
        return obj.workspace or "installation"

    def empty_why(self) -> str:
        return "Until there is one, alarms are seen on these pages alone."

    def page_context(self, request: HttpRequest, obj: Destination) -> dict[str, Any]:
        facts = [
            ui.Fact("address", obj.address),
            ui.Fact("kind", obj.kind),
            ui.Fact("use", self.purpose(obj)),
            ui.Fact("alarms of", self.scope(obj)),
            ui.Fact("last proof by a human", proof(obj)),
        ]
        section = ui.Section(title="Last notices", anchor="notices", content=_notices(obj))
        return {"facts": ui.Facts(facts, first=True), "sections": [section]}


def _notices(destination: Destination) -> ui.Records:
    found = Delivery.objects.filter(destination=destination).order_by("-created_at", "-id")[:20]
    rows = [
        ui.Record([ui.when(d.created_at), d.notice, ui.when(d.delivered_at, absent=d.last_code or "waiting")])
        for d in found
    ]
    columns = [ui.Column("made"), ui.Column("notice", "main"), ui.Column("arrived")]
    return ui.Records("Last notices", columns, rows, empty=ui.EmptyState("Nothing was sent yet.", level=3))
