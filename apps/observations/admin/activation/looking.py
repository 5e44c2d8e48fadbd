"""What the machine looks at and a person vouches for, item by item."""

from typing import Any, ClassVar

from django import forms
from django.http import Http404, HttpRequest

from apps.core import ui
from apps.core.admin import Preview, ReasonForm, holds
from apps.observations.activation.items import ITEMS
from apps.observations.activation.probes import HARMLESS, PROBES
from apps.observations.admin.activation.outside import OutsideAction
from apps.observations.admin.activation.parts import LETTERS, evidence_of
from apps.observations.admin.activation.words import ALARMS, NAMES, name_of
from apps.observations.models.activation import POSTED, Part, Result
from apps.observations.selectors.activation import RunStanding, standing_of_run
from apps.observations.services import activation
from apps.observations.services.evidence import LONGEST_NOTE, Subject
from apps.operations.models import Alarm, Delivery

OPERATES, REVIEWS = activation.OPERATES, activation.REVIEWS
ALL = "all"
INPUT = {"class": "gv-input"}
MOST_ALARMS = 20
LONGEST_QUERY = 1000


def may_look(standing: RunStanding, code: str) -> bool:
    """Whether the machine can look at the item at this step."""
    return code in PROBES and standing.is_at(code[0])


def may_vouch(standing: RunStanding, code: str) -> bool:
    return Part.HUMAN in ITEMS[code].parts and code != "C1" and standing.is_at(code[0])


def looked_at_together(standing: RunStanding) -> list[str]:
    """The probes that a person may run at once: not those of C, of which one failing switches off."""
    return [code for code in ITEMS if code[0] != "C" and may_look(standing, code)]


class OnItem(OutsideAction):
    """Of one item of a run."""

    def get_object(self, request: HttpRequest, object_id: str = "", **kwargs: Any) -> Any:
        run = super().get_object(request, object_id)
        run.item_seen = str(kwargs.get("item", ""))
        if not self.knows(run.item_seen):
            raise Http404
        run.standing_seen = standing_of_run(run)
        return run

    @classmethod
    def knows(cls, item: str) -> bool:
        return item in ITEMS

    def heading(self, obj: Any) -> str:
        return f"{self.title} {obj.item_seen}"

    def lines(self, obj: Any) -> list[Any]:
        item = obj.item_seen
        return [line for line in obj.standing_seen.lines(item[0]) if line.item.code == item]

    def state(self, obj: Any) -> dict[str, str]:
        """What the person sees of the items: how each part stands, on which evidence."""
        found = {"run": str(obj.state)}
        for line in self.lines(obj):
            row = str(line.evidence.pk)[-7:] if line.evidence else "none"
            found[f"{line.item.code} {LETTERS[line.part]}"] = f"{line.standing}, evidence {row}"
        return found


class LookForm(ReasonForm):
    """Looking changes nothing that a reason would explain; the evidence is the record."""

    reason = None  # type: ignore[assignment]


class PilotForm(LookForm):
    query = forms.CharField(
        label="What the pilot asks",
        initial=HARMLESS,
        max_length=LONGEST_QUERY,
        help_text="A harmless question over the shared corpus. It is asked in the pilot's name; no evidence keeps it.",
        widget=forms.TextInput(attrs={**INPUT, "data-focus": ""}),
    )


class Look(OnItem):
    name, path, label, kind = "look", "<uuid:object_id>/look/<slug:item>/", "Look…", ""
    title = "Let the machine look at"
    grants: ClassVar[tuple[str, ...]] = (OPERATES,)

    @classmethod
    def knows(cls, item: str) -> bool:
        return item == ALL or item in PROBES

    def heading(self, obj: Any) -> str:
        return "Let the machine look" if obj.item_seen == ALL else super().heading(obj)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        found = looked_at_together(obj.standing_seen)
        fits = bool(found) if obj.item_seen == ALL else may_look(obj.standing_seen, obj.item_seen)
        return "" if fits else "The machine cannot look at this now."

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        return (PilotForm if obj.item_seen == "C2" else LookForm)(data)

    def items(self, obj: Any) -> list[str]:
        return looked_at_together(obj.standing_seen) if obj.item_seen == ALL else [obj.item_seen]

    def lines(self, obj: Any) -> list[Any]:
        wanted = self.items(obj)
        groups = dict.fromkeys(code[0] for code in wanted)
        return [line for g in groups for line in obj.standing_seen.lines(g) if line.item.code in wanted]

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        items = self.items(obj)
        summary = "Appends what it finds as evidence, passed or failed. "
        if items and items[0][0] == "C":
            summary += "If it fails, collection is switched off at once. "
            if items == ["C4"] or items == ["C3"]:
                summary += "It searches through the front door as the principal “Journal probe”."
        elif "D2" in items:
            summary += "It searches through the front door, also in the names of those who take part."
        told = [ui.Facts([ui.Fact(code, NAMES[code]) for code in items])]
        return Preview(summary, f"Look at {', '.join(items) or 'nothing'}", self.state(obj), told)

    def carry_out(self, request: HttpRequest, data: dict[str, Any]) -> tuple[bool, str]:
        query, found = data.get("query") or HARMLESS, []
        for item in self.items(self.obj):
            row = activation.examine(
                run_id=self.obj.pk, item=item, user_id=int(request.user.pk or 0), query=query
            )
            found.append((item, row.result == Result.PASS))
        failed = [item for item, passed in found if not passed]
        passed = [item for item, passed in found if passed]
        told = [
            f"Passed: {', '.join(passed)}." if passed else "",
            f"Failed: {', '.join(failed)}." if failed else "",
        ]
        if failed and failed[0][0] == "C":
            told.append("Collection is switched off.")
        return not failed, " ".join(each for each in told if each)


class VouchForm(ReasonForm):
    result = forms.ChoiceField(
        label="It", choices=[("pass", "holds"), ("fail", "does not hold")], widget=forms.RadioSelect
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        note = self.fields["reason"]
        note.label, note.help_text = (
            "How you know",
            "Kept as evidence. No secret, address or name of a person.",
        )
        note.max_length = LONGEST_NOTE  # type: ignore[attr-defined]
        note.validators = []
        note.widget.attrs["maxlength"] = LONGEST_NOTE
        self.order_fields(["result", "alarm", "reason"])


class ReceiptForm(VouchForm):
    alarm = forms.ChoiceField(
        label="Alarm that arrived", widget=forms.Select(attrs=INPUT), help_text="Delivered to a destination."
    )

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["alarm"].choices = choices  # type: ignore[attr-defined]


class Vouch(OnItem):
    name, path, label, kind = "vouch", "<uuid:object_id>/vouch/<slug:item>/", "Attest…", ""
    title = "Attest"
    grants: ClassVar[tuple[str, ...]] = (OPERATES, REVIEWS)

    @classmethod
    def knows(cls, item: str) -> bool:
        return item in ITEMS and Part.HUMAN in ITEMS[item].parts

    def heading(self, obj: Any) -> str:
        return f"Attest {obj.item_seen}: {NAMES[obj.item_seen]}"

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return cls.why_not(obj.standing_seen, obj.item_seen, request)

    @classmethod
    def why_not(cls, standing: RunStanding, code: str, request: HttpRequest) -> str:
        """Why this person cannot vouch for the item now."""
        if not may_vouch(standing, code):
            return "Nobody vouches for this now."
        lines = [line for line in standing.lines(code[0]) if line.item.code == code]
        machine = next((line.evidence for line in lines if line.part == Part.MACHINE), None)
        if Part.MACHINE in ITEMS[code].parts and machine is None:
            return "It is posted first." if code in POSTED else "The machine looks first."
        if machine is not None and machine.actor_id == request.user.pk:
            return "You let the machine look; another person attests."
        return ""

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        if obj.item_seen in ALARMS:
            return ReceiptForm(data, choices=arrived(obj))
        return VouchForm(data)

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Appends your attestation as evidence, under your name."
        if obj.item_seen[0] == "C":
            summary += " If you say that it does not hold, collection is switched off at once."
        return Preview(summary, f"Attest {obj.item_seen}", self.state(obj), [evidence_of(self.lines(obj))])

    def carry_out(self, request: HttpRequest, data: dict[str, Any]) -> tuple[bool, str]:
        alarm = data.get("alarm", "")
        row = activation.vouch(
            run_id=self.obj.pk,
            item=self.obj.item_seen,
            result=data["result"],
            note=data["reason"],
            user_id=int(request.user.pk or 0),
            subject=Subject("alarm", alarm) if alarm else Subject(),
        )
        return row.result == Result.PASS, f"{row.item} attested by {name_of(request.user)}: {row.result}."


def arrived(run: Any) -> list[tuple[str, str]]:
    """Notices of this workspace and of the installation that were delivered, tests among them, newest first. Ids are
    without dashes: with them the filter of evidence takes them for those of somebody."""
    sent = Delivery.objects.exclude(delivered_at=None).filter(workspace__in=[run.workspace_id])
    everywhere = Delivery.objects.exclude(delivered_at=None).filter(workspace=None)
    rows = (sent | everywhere).order_by("-created_at")[:MOST_ALARMS]
    reasons = dict(Alarm.objects.filter(pk__in=[row.alarm_id for row in rows]).values_list("pk", "reason"))
    found = []
    for row in rows:
        reason = reasons.get(row.alarm_id or row.pk, row.notice)
        found.append((row.pk.hex, f"{str(row.pk)[-7:]} {reason} {row.delivered_at:%Y-%m-%d %H:%M} UTC"))
    return found


def buttons(
    model_admin: Any, request: HttpRequest, standing: RunStanding, code: str
) -> list[ui.ActionButton]:
    """What this person may do for an item now."""
    run, found = standing.run, []
    if may_look(standing, code) and holds(request, run, *Look.grants):
        href = model_admin.url(Look.name, run.pk, code)
        found.append(ui.ActionButton(Look.label, href, small=True))
    if may_vouch(standing, code) and holds(request, run, *Vouch.grants):
        href = model_admin.url(Vouch.name, run.pk, code)
        label = "I received the alarm…" if code in ALARMS else Vouch.label
        found.append(ui.ActionButton(label, href, small=True, blocked=Vouch.why_not(standing, code, request)))
    return found
