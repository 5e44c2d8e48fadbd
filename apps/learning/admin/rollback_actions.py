"""How a pointer goes back, to base or to what was active before, and the rehearsal of it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm
from apps.learning.admin.orders import StateEffect
from apps.learning.admin.pointer_actions import (
    GRANT,
    CommandForm,
    PointerAction,
    command_of,
    effect,
    move_facts,
    of_what,
    state_of,
)
from apps.learning.admin.words import BASE, CAUSES, scopes_in_words, short, state_name
from apps.learning.models import RankingProfile
from apps.learning.selectors.staff import Standing, cause_now, standing_of
from apps.learning.services import proposals

TO_BASE = "base"
MOST_ORDERS = 6
"""Former states whose orders stand in the dialog; of older ones it links to the page that shows them."""


class Deactivate(PointerAction):
    name, path, label, kind = "deactivate", "<uuid:object_id>/deactivate/", "Deactivate…", "danger-link"
    title = "Return to base scoring"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return standing.is_active

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        return "" if standing.is_active else f"It is not active: {short(standing.active)} is."

    def preview_of(self, standing: Standing) -> Preview:
        rate, orders = effect(standing.profile, None)
        summary = f"Returns {of_what(standing)} to base scoring: {rate}."
        parts = [move_facts(standing.active, None), *orders]
        return Preview(summary, f"Deactivate {short(standing.profile.pk)}", state_of(standing), parts)

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        proposals.deactivate_for(profile_id=standing.profile.pk, command=command_of(standing, data))
        return Done(f"{scopes_in_words(standing.profile.scopes)} is at base scoring.")


class StateSelect(forms.RadioSelect):
    """States to go back to; `effects` holds what is shown with each, by its value."""

    def __init__(self, effects: Mapping[str, Any]) -> None:
        # The choice and its effect are seen before the reason is asked for.
        super().__init__({"data-focus": ""})
        self.effects = effects

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        return {**option, "more": self.effects.get(str(value), "")}


class RollBackForm(CommandForm):
    to = forms.ChoiceField(label="Back to", choices=[(TO_BASE, BASE)])

    def __init__(self, data: Any, choices: Sequence[tuple[str, Any]], effects: Mapping[str, Any]) -> None:
        super().__init__(data)
        to = forms.ChoiceField(label="Back to", choices=choices, widget=StateSelect(effects))
        to.initial = choices[0][0] if choices else ""
        self.fields["to"] = to
        self.order_fields(["to", "reason", "change_id"])


class RollBack(PointerAction):
    """Back to a state that was active on this pointer before, or to base; nothing else is offered."""

    name, path, label, kind = "rollback", "<uuid:object_id>/rollback/", "Roll back to…", "danger-link"
    title = "Roll back"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return standing.can_go_back

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        return "" if standing.can_go_back else "The pointer was never anywhere but at base scoring."

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        standing = standing_of(obj)
        profiles = RankingProfile.objects.in_bulk(standing.former)
        former = [profiles[pk] for pk in standing.former if pk in profiles]
        choices: list[tuple[str, Any]] = [(str(each.pk), _choice(each, standing)) for each in former]
        effects = {str(each.pk): self._effect(obj, each.pk) for each in former[:MOST_ORDERS]}
        for each in former[MOST_ORDERS:]:
            effects[str(each.pk)] = _elsewhere(self.model_admin.url("preview", each.pk))
        if standing.active is not None:
            choices.append((TO_BASE, BASE))
            effects[TO_BASE] = self._effect(obj, None)
        return RollBackForm(data, choices, effects)

    def _effect(self, profile: RankingProfile, to: UUID | None) -> Any:
        return StateEffect(proposals.preview_move_for(profile_id=profile.pk, to=to))

    def preview_of(self, standing: Standing) -> Preview:
        rate, _ = effect(standing.profile, None)
        summary = f"Takes {of_what(standing)} from {short(standing.active)} back to what you choose: {rate}."
        states = {**state_of(standing), "can go back to": ", ".join(map(state_name, standing.former)) or BASE}
        return Preview(summary, f"Roll back from {short(standing.active)}", states)

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        to = None if data["to"] == TO_BASE else UUID(data["to"])
        proposals.roll_back_for(profile_id=standing.profile.pk, to=to, command=command_of(standing, data))
        return Done(f"Rolled back to {short(to)}.")


def _choice(profile: RankingProfile, standing: Standing) -> SafeString:
    """`…d0f0f98, active from … to …`: when it was active last, and why it would not apply, where it would not."""
    moves = [row for row in standing.history if row.expected_profile_id != row.resulting_profile_id]
    began = [row.recorded_at for row in moves if row.resulting_profile_id == profile.pk][-1]
    ended = [row.recorded_at for row in moves if row.expected_profile_id == profile.pk][-1]
    cause = cause_now(profile)
    return format_html(
        "{}, active from {} to {}{}",
        short(profile.pk),
        ui.when(began),
        ui.when(ended),
        f", which does not apply: {CAUSES[cause]}" if cause else "",
    )


def _elsewhere(url: str) -> SafeString:
    return format_html('<p class="lr-then"><a href="{}" target="_blank">Show what would change</a></p>', url)


class RunDrill(GovernedAction):
    """A rehearsal on a pointer that no request can reach; its evidence stays on the page."""

    name, path, label = "drill", "<uuid:object_id>/drill/", "Profile rollback drill…"
    title = "Profile rollback drill"
    grants = (GRANT,)
    stands_elsewhere = True

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        baseline = short(obj.baseline_profile_id)
        summary = (
            f"On a scratch pointer it starts at {baseline}, activates {short(obj.pk)}, sees that it applies, goes "
            "back, and to base. What searches are ranked with stays as it is. The evidence is stored."
        )
        return Preview(summary, "Run the drill", {"profile": str(obj.pk)})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        drill = proposals.drill_for(profile_id=obj.pk, reason=data["reason"])
        return Done("The drill passed." if drill.passed else "The drill did not pass; the page says where.")
