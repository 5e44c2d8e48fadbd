"""Ranking profiles: may this ranking go live, and what would it do?"""

from types import SimpleNamespace
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import ModelAdmin, PrincipalFilter, TextFilter, choice_filter, holds
from apps.core.admin.changelist import KeysetChangeList
from apps.learning.admin import profile_parts as parts
from apps.learning.admin.activation_actions import (
    ActivateAlone,
    ApproveActivation,
    ProposeActivation,
    WithdrawProposal,
)
from apps.learning.admin.fragments import fragment, seen_object
from apps.learning.admin.orders import a_day, orders_of
from apps.learning.admin.parts import Slow, Watch
from apps.learning.admin.pointer_actions import GRANT
from apps.learning.admin.rollback_actions import Deactivate, RollBack, RunDrill
from apps.learning.admin.words import (
    CAUSES,
    MOVED,
    gain_words,
    linked_profile,
    person_of,
    scopes_in_words,
    short,
    whose,
)
from apps.learning.applicability import cause_against
from apps.learning.models import RankingProfile, Transition
from apps.learning.selectors.active import scorer_in
from apps.learning.selectors.staff import (
    Standing,
    active_at,
    ever_active,
    open_proposals,
    standing_of,
)
from apps.learning.services.proposals import preview_for
from apps.retrieval.policy import in_force


class ScopeFilter(TextFilter):
    title = "scope"
    parameter_name = "scope"
    field = "scopes__contains"
    hint = "slug, * for all"

    def narrow(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(scopes__isnull=True) if value == "*" else rows.filter(scopes__contains=[value])


def _by_state(rows: QuerySet[RankingProfile], value: str) -> QuerySet[RankingProfile]:
    if value == "proposed":
        return rows.filter(Exists(open_proposals().filter(profile_id=OuterRef("pk"))))
    at = Transition.objects.filter(principal_id=OuterRef("principal_id"), scope_key=OuterRef("scope_key"))
    newest = at.order_by("-recorded_at").values("resulting_profile_id")[:1]
    pointed = rows.annotate(pointer_at=Subquery(newest))
    if value == "active":
        return pointed.filter(pointer_at=F("pk"))
    return pointed.filter(Q(pointer_at__isnull=True) | ~Q(pointer_at=F("pk")))


STATE = choice_filter(
    "state",
    "state",
    [("active", "active"), ("proposed", "waits for a second person"), ("not_active", "not active")],
    narrow=_by_state,
)


@admin.register(RankingProfile)
class RankingProfileAdmin(ModelAdmin):
    list_name = "profiles"
    list_display = ("profile", "whose", "scope_set", "gain", "state", "made")
    list_select_related = ("principal",)
    list_filter = (STATE, PrincipalFilter, ScopeFilter)
    keyset = ("-created_at", "-id")
    page_template = "learning/profile_page.html"

    class Media:
        css: ClassVar = {"all": ["learning/learning.css"]}

    governed = (
        ProposeActivation,
        ActivateAlone,
        ApproveActivation,
        WithdrawProposal,
        Deactivate,
        RollBack,
        RunDrill,
    )

    # The list --------------------------------------------------------------------------------------------

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Pointers, open proposals and former states of all profiles of the page, in three statements."""
        keys = [row.pk for row in rows]
        at = active_at({(row.principal_id, row.scope_key) for row in rows})
        waiting = set(open_proposals().filter(profile_id__in=keys).values_list("profile_id", flat=True))
        before = ever_active(keys)
        scorers = {pk: scorer_in(in_force(pk)) for pk in {row.workspace_id for row in rows}}
        now = clock.now()
        for row in rows:
            row.is_active = at.get((row.principal_id, row.scope_key)) == row.pk
            row.is_waiting = row.pk in waiting
            row.was_active = row.pk in before
            row.cause = cause_against(row, scorers[row.workspace_id], at=now)

    @admin.display(description="profile")
    def profile(self, obj: RankingProfile) -> SafeString:
        return ui.short_id(obj.pk, "profile id", copy=False)

    @admin.display(description="principal")
    def whose(self, obj: RankingProfile) -> str:
        return whose(obj)

    @admin.display(description="scopes")
    def scope_set(self, obj: RankingProfile) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', scopes_in_words(obj.scopes))

    @admin.display(description="gain on unseen queries")
    def gain(self, obj: RankingProfile) -> SafeString:
        kept = obj.evidence.get("holdout", {})
        low, high = kept.get("ndcg_gain_interval") or (None, None)
        return gain_words(kept.get("ndcg_gain"), low, high, kept.get("query_groups"))

    @admin.display(description="state")
    def state(self, obj: Any) -> Any:
        if obj.is_active:
            return ui.Mark("bad", "active, not applied") if obj.cause else ui.Mark("ok", "active")
        if obj.is_waiting:
            return ui.Mark("run", "waits for a second person")
        return "was active" if obj.was_active else ui.nothing("never active")

    @admin.display(description="made")
    def made(self, obj: RankingProfile) -> SafeString:
        return ui.when(obj.created_at)

    def object_title(self, obj: Any) -> str:
        return f"Profile {short(obj.pk)}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        href = self.url("changelist").replace("rankingprofile", "holdout")
        link = format_html('<a class="gv-button" href="{}">Holdouts</a>', href)
        why = "A profile is made of an evaluation and the holdout that confirmed it, on the page of the holdout."
        return ui.EmptyState("No profile yet.", why, link)

    # The page --------------------------------------------------------------------------------------------

    def action_buttons(self, request: HttpRequest, obj: Any) -> list[ui.ActionButton]:
        """The buttons are made with the standing that the page shows; see `page_context`."""
        return []

    def buttons(self, request: HttpRequest, standing: Standing) -> list[ui.ActionButton]:
        acts = (ProposeActivation, ActivateAlone, Deactivate)
        found = [act.button_in(self, request, standing) for act in acts]
        if RunDrill.permitted(self, request, standing.profile):
            href = self.url(RunDrill.name, standing.profile.pk)
            found.append(ui.ActionButton(RunDrill.label, href))
        return [button for button in found if button]

    def page_context(self, request: HttpRequest, obj: RankingProfile) -> dict[str, Any]:
        standing = standing_of(obj)
        gate = standing.gate.document
        minimums = (gate.evaluation.min_ndcg_gain, gate.holdout.min_ndcg_gain)
        back = RollBack.button_in(self, request, standing)
        evidence = format_html(
            '<div class="gv-card">{}</div><div class="gv-after">{}</div>',
            parts.evidence_plot(obj, minimums),
            parts.evidence_pair(obj, gate),
        )
        change = self.change_section(request, obj)
        sections = [
            ui.Section("Evidence", "evidence", evidence, "dashed: the least that the gate asks for"),
            ui.Section(
                "Multipliers",
                "multipliers",
                format_html('<div class="gv-card">{}</div>', parts.multipliers_of(obj.multipliers)),
                "1 is the weight of base scoring",
            ),
            ui.Section("What would change", "change", change),
            ui.Section(
                "Pointer",
                "pointer",
                format_html('<div class="gv-card">{}</div>', parts.pointer_line(standing, back or "")),
                scopes_in_words(obj.scopes),
            ),
            ui.Section("Rollback drill", "drill", parts.drills_of(obj)),
        ]
        if (checked := parts.rechecks_of(obj)) is not None:
            sections.append(ui.Section("Re-checks", "rechecks", checked))
        return {
            "actions": ui.ActionRow(self.buttons(request, standing)),
            "watch": Watch(f"{self.url('standing', obj.pk)}?seen={standing.seal}"),
            "notices": self.notices(request, standing),
            "facts": parts.facts_of(standing),
            "verdicts": parts.verdicts_of(standing, self.url("reproduces", obj.pk)),
            "sections": sections,
            "details": [
                SimpleNamespace(
                    title="Every command on the pointer", content=parts.pointer_history(standing)
                ),
                SimpleNamespace(title="Evidence as stored", content=ui.JsonTree(obj.evidence, "evidence")),
            ],
        }

    def notices(self, request: HttpRequest, standing: Standing) -> list[ui.Notice]:
        """Proposals that wait, each with what this person may do about it."""
        found = []
        for proposal in standing.own_proposals:
            buttons: list[ui.ActionButton] = []
            if ApproveActivation.permitted(self, request, standing.profile):
                keys = standing.profile.pk, proposal.pk
                why = ApproveActivation.why_not_for(standing, proposal, request)
                approve, withdraw = (
                    self.url(act.name, *keys) for act in (ApproveActivation, WithdrawProposal)
                )
                buttons = [
                    ui.ActionButton(ApproveActivation.label, approve, "primary", blocked=why),
                    ui.ActionButton(WithdrawProposal.label, withdraw, "danger-link"),
                ]
            found.append(parts.proposal_notice(proposal, buttons))
        if standing.is_active and standing.cause:
            words = f"It is active and not applied: {CAUSES[standing.cause]}. Searches are ranked by base scoring."
            found.insert(0, ui.Notice("bad", words))
        return found

    def change_section(self, request: HttpRequest, obj: RankingProfile) -> Any:
        if not holds(request, obj, GRANT):
            return format_html('<p class="gv-subtle">{}</p>', f"Shown to those who hold {GRANT}.")
        return Slow(self.url("preview", obj.pk), "Show what would change")

    # What is loaded after the page -------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = []
        for name in ("preview", "reproduces", "standing"):
            view = self.admin_site.admin_view(getattr(self, f"{name}_view"))
            own.append(path(f"<uuid:object_id>/{name}/", view, name=f"learning_rankingprofile_{name}"))
        return [*own, *super().get_urls()]

    def preview_view(self, request: HttpRequest, object_id: Any) -> HttpResponseBase:
        """Recent answers in the order that they would have, replayed."""
        obj = seen_object(self, request, object_id)
        if not holds(request, obj, GRANT):
            return fragment(self, request, obj, "What would change", self.change_section(request, obj))
        found = preview_for(profile_id=obj.pk)
        content = format_html('<div class="gv-stack"><p>{}.</p>{}</div>', a_day(found), orders_of(found))
        return fragment(self, request, obj, "What would change", content)

    def reproduces_view(self, request: HttpRequest, object_id: Any) -> HttpResponseBase:
        """Whether the evidence still gives both decisions, computed again."""
        obj = seen_object(self, request, object_id)
        content = parts.reproduces_mark(obj) if holds(request, obj, GRANT) else parts.CLOSED
        return fragment(self, request, obj, "Does the evidence reproduce?", content)

    def standing_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        """Nothing while the state is the one that the page shows; else what has happened since."""
        obj = seen_object(self, request, object_id)
        standing, url = standing_of(obj), request.get_full_path()
        stale = "" if request.GET.get("seen") == standing.seal else since(standing)
        watch = Watch(url, stale, self.url("change", obj.pk))
        response = HttpResponse(str(watch))
        response["Cache-Control"] = "no-store"
        return response


def since(standing: Standing) -> SafeString:
    """`Since you opened this page ben activated …9a02.`"""
    newest = standing.moved_by
    proposed = standing.proposals[0] if standing.proposals else None
    if proposed and (newest is None or proposed.proposed_at > newest.recorded_at):
        who = person_of(proposed.proposed_by) or "somebody"
        return format_html(
            "Since you opened this page {} proposed to activate {}.", who, linked_profile(proposed.profile_id)
        )
    if newest is None:
        return format_html("{}", "Since you opened this page the state has changed.")
    return format_html(
        "Since you opened this page {} {} {}.",
        person_of(newest.actor_user) or parts.actor_of(newest),
        MOVED[newest.kind],
        linked_profile(newest.resulting_profile_id),
    )
