"""Legal holds: what may not be deleted, and why?"""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import Done, GovernedAction, ModelAdmin, Preview, ReasonForm, choice_filter
from apps.operations.models import HoldItem, LegalHold
from apps.operations.pruning import AUDIT_ENTRY

SHOWN_ITEMS = 200


def _by_state(rows: QuerySet[LegalHold], value: str) -> QuerySet[LegalHold]:
    return rows.filter(released_at__isnull=value == "in_place")


STATE = choice_filter(
    "state", "state", [("in_place", "in place"), ("released", "released")], narrow=_by_state
)


class ReleaseHold(GovernedAction):
    """By another person than the placer; ordinary rules apply again from the next scheduled run on."""

    name, path, label, kind = "release", "<uuid:object_id>/release/", "Release…", "danger"
    grants = ("review_retention",)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        if obj.released_at:
            return "It is released already."
        if obj.placed_by_id == request.user.pk:
            return "You placed it; another person releases it."
        return ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        kinds = items_by_kind(obj)
        state = {"items": ", ".join(f"{kind} {number}" for kind, number in kinds) or "none", "released": "no"}
        total = sum(number for _, number in kinds)
        rows = [ui.Record([kind, ui.count(number)]) for kind, number in kinds]
        table = ui.Records("Items of the hold", [ui.Column("kind", "main"), ui.Column("items", "num")], rows)
        summary = (
            "What is past its time goes with the next scheduled run. Not reversible for what is then gone."
        )
        return Preview(summary, f"Release {total} items", state, [table])

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        from apps.operations import holds

        holds.release(hold_id=obj.pk, reason=data["reason"])
        return Done(f"Hold {obj.reference} is released.")


class HoldForm(ReasonForm):
    reference = forms.CharField(
        max_length=100,
        label="Case",
        help_text="Its name elsewhere. No personal data.",
        widget=forms.TextInput(attrs={"class": "gv-input", "data-focus": ""}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["reference", "reason"])


class PlaceHold(GovernedAction):
    """Base for other apps: a hold on one object, of the registered kind `held_kind`."""

    name, path, label = "hold", "<path:object_id>/hold/", "Hold…"
    grants = ("review_retention",)
    form_class = HoldForm
    held_kind: str

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "It is not deleted while the hold is in place; it stays hidden where it is hidden already. "
        return Preview(f"{summary}Another person than you releases it.", "Place the hold")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        from apps.operations import holds

        placed = holds.place(
            workspace_id=obj.workspace_id,
            reference=data["reference"],
            reason=data["reason"],
            items=[(self.held_kind, obj.pk)],
        )
        return Done(f"Hold {placed.reference} is in place.")


class HoldEntry(PlaceHold):
    """Keeps an entry, and with it what follows in its chain, from being pruned after its years."""

    held_kind = AUDIT_ENTRY

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        # Entries of the installation belong to no workspace, so no grant reaches them.
        return super().permitted(model_admin, request, obj) and (obj is None or obj.workspace_id is not None)


def items_by_kind(hold: LegalHold) -> list[tuple[str, int]]:
    counted = HoldItem.objects.filter(hold=hold).values("kind").order_by("kind").annotate(number=Count("id"))
    return [(row["kind"], row["number"]) for row in counted]


@admin.register(LegalHold)
class LegalHoldAdmin(ModelAdmin):
    list_name = "holds"
    list_display = ("case", "state", "why", "placed", "scope")
    list_select_related = ("workspace", "placed_by", "released_by")
    list_filter = (STATE,)
    keyset = ("-placed_at", "-id")
    view_grants = ("review_retention", "audit")
    page_template = "core/page.html"
    governed = (ReleaseHold,)

    @admin.display(description="case")
    def case(self, obj: LegalHold) -> str:
        return obj.reference

    @admin.display(description="state")
    def state(self, obj: LegalHold) -> ui.Mark:
        return ui.Mark("plain", "released") if obj.released_at else ui.Mark("held", "in place")

    @admin.display(description="reason")
    def why(self, obj: LegalHold) -> SafeString:
        from django.utils.html import format_html

        return format_html('<span class="gv-main">{}</span>', obj.reason)

    @admin.display(description="placed")
    def placed(self, obj: LegalHold) -> SafeString:
        return ui.when(obj.placed_at)

    @admin.display(description="workspace")
    def scope(self, obj: LegalHold) -> Any:
        return obj.workspace

    def object_title(self, obj: Any) -> str:
        return f"Hold {obj.reference}"

    def empty_why(self) -> str:
        return "A hold is placed on the page of the object that may not be deleted."

    def page_context(self, request: HttpRequest, obj: LegalHold) -> dict[str, Any]:
        by = obj.placed_by
        facts = [
            ui.Fact("state", self.state(obj)),
            ui.Fact("placed", ui.when(obj.placed_at, relative=True)),
            ui.Fact("by", by.get_full_name() or by.username),
            ui.Fact("may be released by", "anyone with review_retention but the placer"),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("id", ui.short_id(obj.pk, "hold id", main=True)),
        ]
        if obj.released_at:
            facts[3] = ui.Fact("released", ui.when(obj.released_at))
        why = [ui.Event(obj.placed_at, "placed", str(by), "held", obj.reason)]
        if obj.released_at:
            why.append(
                ui.Event(obj.released_at, "released", str(obj.released_by), "plain", obj.release_reason)
            )
        items = HoldItem.objects.filter(hold=obj).order_by("kind", "object_id")[:SHOWN_ITEMS]
        rows = [ui.Record([item.kind, ui.short_id(item.object_id), ui.when(item.added_at)]) for item in items]
        columns = [ui.Column("kind"), ui.Column("object", "main"), ui.Column("added")]
        counts = ", ".join(f"{ui.count(number)} {kind}" for kind, number in items_by_kind(obj))
        sections = [
            ui.Section(title="Why", anchor="why", content=ui.Timeline(why)),
            ui.Section(
                title="Items", anchor="items", content=ui.Records("Held objects", columns, rows), note=counts
            ),
        ]
        return {"facts": ui.Facts(facts, first=True), "sections": sections}
