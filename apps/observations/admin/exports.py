"""Exported copies: how many, until when they may exist, and who says that they are deleted."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm, choice_filter
from apps.observations.admin.kill_switch_head import WithKillSwitch
from apps.observations.models import ExportRecord
from apps.observations.models.exports import Location
from apps.observations.services import exports

EMPTY, ATTESTED, OUTSTANDING, OVERDUE = "empty", "attested", "outstanding", "overdue"
LOCATIONS: dict[str, str] = {
    Location.API.value: "a caller of the API",
    Location.FILE.value: "a file of the command",
}


def state_of(record: ExportRecord) -> str:
    """One of the four, as the filter has them."""
    if not record.candidates:
        return EMPTY
    if record.attested_at:
        return ATTESTED
    due = record.latest_expires_at
    return OVERDUE if due is not None and due <= clock.now() else OUTSTANDING


def _by_state(rows: QuerySet[ExportRecord], value: str) -> QuerySet[ExportRecord]:
    if value == EMPTY:
        return rows.filter(candidates=0)
    if value == ATTESTED:
        return rows.filter(attested_at__isnull=False)
    open_ones = rows.filter(candidates__gt=0, attested_at=None)
    if value == OVERDUE:
        return open_ones.filter(latest_expires_at__lte=clock.now())
    return open_ones.filter(latest_expires_at__gt=clock.now())


STATE = choice_filter(
    "state",
    "state",
    [
        (OVERDUE, "overdue: past its deadline, not attested"),
        (OUTSTANDING, "outstanding"),
        (ATTESTED, "deletion attested"),
        (EMPTY, "held nothing"),
    ],
    narrow=_by_state,
)


class AttestDeletion(GovernedAction):
    name, path, label, kind = "attest", "<uuid:object_id>/attest/", "Attest deletion…", "primary"
    title = "Attest that the copy is deleted"
    grants = exports.ATTEST_GRANTS

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        if not obj.candidates:
            return "It held nothing, so there is no copy."
        return "It is attested already." if obj.attested_at else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        ending = "y" if obj.candidates == 1 else "ies"
        summary = (
            f"You say in your name that no copy of these {ui.count(obj.candidates)} quer{ending} is left with its "
            f"custodian. The platform cannot see the copy. Say in the reason how you know. It cannot be taken back."
        )
        return Preview(summary, "Attest 1 deletion", {"attested": str(bool(obj.attested_at))})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        exports.attest_deletion(export_id=obj.pk, reason=data["reason"])
        return Done("The deletion is attested.")


@admin.register(ExportRecord)
class ExportRecordAdmin(WithKillSwitch):
    list_name = "exports and attestations"
    list_display = (
        "exported",
        "state",
        "queries",
        "envelope",
        "first_gone",
        "all_gone",
        "where",
        "custodian",
    )
    list_select_related = ("workspace", "attested_by")
    list_filter = (STATE, choice_filter("location", "location", Location.choices))
    keyset = ("-exported_at", "-id")
    view_grants = ("operate_collection", "review_retention", "audit")
    governed = (AttestDeletion,)

    @admin.display(description="exported")
    def exported(self, obj: ExportRecord) -> SafeString:
        return ui.when(obj.exported_at)

    @admin.display(description="deletion")
    def state(self, obj: ExportRecord) -> Any:
        match state_of(obj):
            case "overdue":
                return ui.Mark("bad", "overdue")
            case "attested":
                return "attested"
            case "empty":
                return ui.nothing("held nothing")
            case _:
                return "outstanding"

    @admin.display(description="queries")
    def queries(self, obj: ExportRecord) -> SafeString:
        return ui.count(obj.candidates)

    @admin.display(description="envelope")
    def envelope(self, obj: ExportRecord) -> SafeString:
        return ui.short_hash(obj.envelope_sha256, "hash of the envelope")

    @admin.display(description="first deadline")
    def first_gone(self, obj: ExportRecord) -> SafeString:
        return ui.when(obj.earliest_expires_at, absent="held nothing")

    @admin.display(description="delete by")
    def all_gone(self, obj: ExportRecord) -> SafeString:
        if state_of(obj) in (ATTESTED, EMPTY):
            return ui.when(obj.latest_expires_at, absent="held nothing")
        return ui.deadline(obj.latest_expires_at)

    @admin.display(description="went to")
    def where(self, obj: ExportRecord) -> str:
        return LOCATIONS.get(obj.location, obj.location)

    @admin.display(description="custodian")
    def custodian(self, obj: ExportRecord) -> str:
        return obj.custodian

    def object_title(self, obj: Any) -> str:
        return f"Export of {obj.exported_at:%Y-%m-%d %H:%M:%S} UTC"

    def empty_why(self) -> str:
        return "Owners export their own queries through the API or the command export_observations."

    def page_context(self, request: HttpRequest, obj: ExportRecord) -> dict[str, Any]:
        facts = [
            ui.Fact("deletion", self.state(obj)),
            ui.Fact("delete by", self.all_gone(obj)),
            ui.Fact("first deadline", self.first_gone(obj)),
            ui.Fact("queries", self.queries(obj)),
            ui.Fact("exported", ui.when(obj.exported_at, relative=True)),
            ui.Fact("went to", self.where(obj)),
            ui.Fact("custodian", obj.custodian),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("id", ui.short_id(obj.pk, "export id", main=True)),
            ui.Fact("envelope", format_html('<code class="gv-wrap">{}</code>', obj.envelope_sha256)),
        ]
        if obj.attested_at:
            who = obj.attested_by.get_full_name() or obj.attested_by.username if obj.attested_by else ""
            facts.insert(1, ui.Fact("attested", ui.when(obj.attested_at, relative=True)))
            facts.insert(2, ui.Fact("by", who or "a person who is gone"))
        notices = []
        if state_of(obj) == OVERDUE:
            words = "The last of these queries is past its deadline, and nobody has attested that the copy is gone."
            notices.append(ui.Notice("bad", words))
        return {"facts": ui.Facts(facts, first=True), "notices": notices}
