"""What all acts on a profile's pointer have in common: each is bound to the state that the person saw.

The preview's state names what is active now; another one at the POST keeps the dialog and its reason, says what has
changed and offers the new state. A command carries the key that its form was made with, so that a form sent twice
counts once.
"""

from abc import ABC, abstractmethod
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest

from apps.core import ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm
from apps.core.ids import uuid7
from apps.core.problems import StaleVersion
from apps.learning.admin.orders import a_day, orders_of
from apps.learning.admin.words import (
    APPROVALS,
    CAUSES,
    in_words,
    person_of,
    scopes_in_words,
    short,
    state_name,
)
from apps.learning.exceptions import ApprovalRequired, NotPromotable, StaleState, WrongBaseline
from apps.learning.models import RankingProfile
from apps.learning.selectors.staff import Standing, standing_of
from apps.learning.services import proposals
from apps.learning.services.pointers import Command

GRANT = proposals.GRANT


class CommandForm(ReasonForm):
    """A reason, and the key under which the command counts once."""

    change_id = forms.CharField(max_length=128, widget=forms.HiddenInput, initial=lambda: str(uuid7()))


class PointerAction(GovernedAction, ABC):
    """Base of the acts on a pointer: they say what they would do from where it stands, and which service does it."""

    grants = (GRANT,)
    form_class = CommandForm
    stands_elsewhere = True
    """The page builds its buttons from the standing that it has read; see `button_in`."""
    standing: Standing

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return cls.why_not(standing_of(obj), request) if obj is not None else ""

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        """Why it cannot be done from this state; empty when it can."""
        return ""

    @classmethod
    def button_in(
        cls, model_admin: Any, request: HttpRequest, standing: Standing, *more: Any, label: str = ""
    ) -> ui.ActionButton | None:
        profile = standing.profile
        if not cls.permitted(model_admin, request, profile) or not cls.fits(standing):
            return None
        href = model_admin.url(cls.name, profile.pk, *more)
        return ui.ActionButton(label or cls.label, href, cls.kind, blocked=cls.why_not(standing, request))

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        """Whether the act has any meaning in this state, so that it has a button."""
        return True

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        try:
            # The state that the preview was made from, not one that is read now: the service compares.
            return self.command(self.standing, data)
        except StaleState as moved:
            raise StaleVersion from moved
        except ApprovalRequired as missing:
            missing.detail = in_words(APPROVALS, str(missing.more.get("reason", "")))
            raise
        except (NotPromotable, WrongBaseline) as refused:
            refused.detail = refused.detail or CAUSES.get(str(refused.more.get("reason", "")), "")
            raise

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        self.standing = standing_of(obj)
        return self.preview_of(self.standing)

    @abstractmethod
    def preview_of(self, standing: Standing) -> Preview:
        """What the act would do from this state."""

    @abstractmethod
    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        """Call the service, bound to the state that was seen."""


def state_of(standing: Standing) -> dict[str, str]:
    """What an act is decided on, by name."""
    waiting = [f"{short(one.profile_id)} by {person_of(one.proposed_by)}" for one in standing.proposals]
    return {
        "active": state_name(standing.active),
        "this profile applies": "yes" if standing.cause is None else f"no: {CAUSES[standing.cause]}",
        "waiting for a second person": ", ".join(waiting) or "nothing",
        "gate": f"version {standing.gate.version}",
    }


def command_of(standing: Standing, data: dict[str, Any]) -> Command:
    return Command(data["change_id"], standing.active, data["reason"])


def of_what(standing: Standing) -> str:
    """`searches of principal maria in docs, wiki`."""
    owner = standing.profile.principal
    who = owner.display_name or ui.formats.middle_cut(owner.subject)
    return f"searches of {who} in {scopes_in_words(standing.profile.scopes)}"


def move_facts(now: UUID | None, then: UUID | None) -> ui.Facts:
    return ui.Facts([ui.Fact("ranked with now", short(now)), ui.Fact("after", short(then))])


def effect(profile: RankingProfile, to: UUID | None) -> tuple[str, list[Any]]:
    """How many receipts a day a move touches, and recent answers in their new order."""
    found = proposals.preview_move_for(profile_id=profile.pk, to=to)
    return a_day(found), [orders_of(found)]
