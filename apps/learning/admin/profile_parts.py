"""What the page of a ranking profile is made of: verdicts, evidence, the pointer's way, drills, re-checks."""

from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.learning.admin.parts import PointerLine, Slow, Station, Verdicts
from apps.learning.admin.words import (
    BASE,
    CAUSES,
    KINDS,
    VERDICTS,
    decision_mark,
    linked,
    linked_profile,
    page_url,
    person_of,
    scopes_in_words,
    short,
)
from apps.learning.models import ActivationProposal, RankingProfile, Recheck, RollbackDrill, Transition
from apps.learning.policy import gate_of
from apps.learning.schemas import GatePolicy
from apps.learning.scorer import FEATURES
from apps.learning.selectors.staff import Standing
from apps.learning.services.staff import Reproduction, reproduction_for

STATIONS_SHOWN = 6
STEPS = {"activate": "goes active", "rollback": "goes back"}


def facts_of(standing: Standing) -> ui.Facts:
    profile = standing.profile
    owner = profile.principal
    return ui.Facts(
        [
            ui.Fact("state", state_mark(standing)),
            ui.Fact(
                "principal",
                ui.person(
                    owner.display_name,
                    owner.subject,
                    href=page_url("accounts_principal_change", owner.pk),
                ),
            ),
            ui.Fact("scopes", scopes_in_words(profile.scopes)),
            ui.Fact("baseline", linked_profile(profile.baseline_profile_id)),
            ui.Fact("made", ui.when(profile.created_at)),
            ui.Fact("ends", ui.deadline(profile.effective_until, absent="no term")),
            ui.Fact("profile", ui.short_id(profile.pk, "profile id", main=True)),
            ui.Fact("manifest", ui.short_hash(profile.manifest_sha256, "manifest hash")),
        ],
        first=True,
    )


def state_mark(standing: Standing) -> Any:
    """Where the profile stands: what is not applied though it is active is the one danger."""
    if standing.is_active:
        if standing.cause:
            return ui.Mark("bad", f"active, not applied: {CAUSES[standing.cause]}")
        return ui.Mark("ok", "active")
    if standing.own_proposals:
        return ui.Mark("run", "waits for a second person")
    if any(row.resulting_profile_id == standing.profile.pk for row in standing.history):
        return "was active"
    return "never active"


def verdicts_of(standing: Standing, reproduces_url: str) -> Verdicts:
    """What must hold before this ranking goes live."""
    profile, kept = standing.profile, standing.profile.evidence
    contract: Any = ui.Mark("ok", profile.contract, bare=True)
    if standing.cause:
        contract = ui.Mark("bad", f"does not apply: {CAUSES[standing.cause]}")
    return Verdicts(
        [
            ("proposal", decision_mark(kept.get("evaluation", {}).get("decision"))),
            ("holdout", decision_mark(kept.get("holdout", {}).get("decision"))),
            ("gate", gate_mark(standing)),
            ("reproduces", Slow(reproduces_url, "Compute it again", small=True)),
            ("scorer contract", contract),
        ]
    )


def gate_mark(standing: Standing) -> ui.Mark:
    """Whether the gate that both decisions passed is the one that rules."""
    passed, rules = gate_of(standing.profile.gate_policy_id), standing.gate
    if passed.id == rules.id:
        return ui.Mark("ok", f"v{rules.version} current", bare=True)
    if passed.document == rules.document:
        return ui.Mark("ok", f"v{passed.version}, same as v{rules.version}", bare=True)
    return ui.Mark("warn", f"passed v{passed.version}; another rules now, v{rules.version}")


def evidence_plot(profile: RankingProfile, minimums: tuple[float, float]) -> ui.IntervalPlot:
    """Both gains on one scale. `minimums`: of the gate, for the proposal and for the holdout."""
    proposal, holdout = profile.evidence.get("evaluation", {}), profile.evidence.get("holdout", {})
    return ui.IntervalPlot(
        "NDCG gain of the proposal and of the holdout",
        [
            _interval("proposal, observed", proposal, "validation_queries", minimums[0]),
            _interval("holdout, unseen", holdout, "query_groups", minimums[1]),
        ],
    )


def _interval(name: str, kept: dict[str, Any], counted: str, minimum: float) -> ui.Interval:
    low, high = kept.get("ndcg_gain_interval") or (None, None)
    return ui.Interval(name, kept.get("ndcg_gain"), low, high, kept.get(counted), minimum)


def evidence_pair(profile: RankingProfile, gate: GatePolicy) -> ui.Records:
    """What the two say beside their gains, held against the gate of now, each with the page that it comes from."""
    proposal, holdout = profile.evidence.get("evaluation", {}), profile.evidence.get("holdout", {})
    none = ui.nothing("not measured")
    pairwise, losses = ui.signed(proposal.get("pairwise_gain")), none
    if proposal.get("loss_before") is not None:
        losses = format_html("{} → {}", ui.score(proposal["loss_before"]), ui.score(proposal["loss_after"]))
    rows = [
        ("page", _evaluation_link(profile), _holdout_link(profile)),
        (
            "query groups",
            f"{ui.count(proposal.get('training_queries'))} fitted, "
            f"{ui.count(proposal.get('validation_queries'))} judged",
            ui.count(holdout.get("query_groups")),
        ),
        ("recall gain", none, _recall(holdout.get("recall_gain"))),
        ("MRR gain", none, ui.signed(holdout.get("mrr_gain"))),
        ("pairwise accuracy gain", pairwise, none),
        ("loss before → after", losses, none),
        ("query groups that regressed", none, _regressed(holdout, gate.holdout.max_regression_fraction)),
    ]
    columns = [
        ui.Column("evidence", "main"),
        ui.Column("proposal (observed)", "num"),
        ui.Column("holdout (unseen queries)", "num"),
    ]
    return ui.Records("Proposal and holdout", columns, [ui.Record(row) for row in rows])


def _recall(gain: float | None) -> Any:
    """The gate asks that recall is not lower."""
    if gain is None:
        return ui.nothing("not measured")
    return ui.Mark("bad", f"{ui.signed(gain)}, lower") if gain < 0 else f"{ui.signed(gain)}, not lower"


def _regressed(kept: dict[str, Any], limit: float) -> Any:
    """`6 of 64 groups, limit 10 %`."""
    share, groups = kept.get("regression_fraction"), kept.get("query_groups")
    if share is None or groups is None:
        return ui.nothing("not measured")
    words = f"{round(share * groups)} of {groups} groups, limit {ui.share(limit)}"
    return words if share <= limit else ui.Mark("bad", words)


def _evaluation_link(profile: RankingProfile) -> SafeString:
    return linked("learning_evaluation_change", profile.evaluation_id, "evaluation id")


def _holdout_link(profile: RankingProfile) -> SafeString:
    return linked("learning_holdout_change", profile.holdout_id, "holdout id")


def multipliers_of(values: Sequence[float]) -> ui.Multipliers:
    return ui.Multipliers(list(zip(FEATURES, values, strict=True)), "Multipliers of the weights")


def pointer_line(standing: Standing, action: Any = "") -> PointerLine:
    """The last moves of the pointer; what changed nothing is in the list below alone."""
    moves = [row for row in standing.history if row.expected_profile_id != row.resulting_profile_id]
    shown = moves[-STATIONS_SHOWN:]
    first = shown[0].expected_profile_id if shown else None
    words = f"after {len(moves) - len(shown)} earlier moves" if len(moves) > len(shown) else ""
    stations = [Station(short(first), words, href=_href(first)), *map(_station, shown)]
    return PointerLine(stations, _now(standing), action)


def _station(row: Transition) -> Station:
    tone: ui.Tone = "ok" if row.kind == "activate" else "warn" if row.kind == "rollback" else "plain"
    return Station(
        short(row.resulting_profile_id),
        KINDS[row.kind],
        row.recorded_at,
        actor_of(row),
        tone,
        _href(row.resulting_profile_id),
    )


def _href(profile_id: Any) -> str:
    return page_url("learning_rankingprofile_change", profile_id)


def _now(standing: Standing) -> Any:
    if standing.active is None:
        return BASE
    here = " (this profile)" if standing.is_active else ""
    return format_html("{}{}", linked_profile(standing.active), here)


def actor_of(row: Transition) -> str:
    """`ana, approved by ben`; the owner, or the platform."""
    if row.actor != "staff":
        return "its owner" if row.actor == "principal" else "the platform"
    by = person_of(row.actor_user) or "staff"
    if row.proposal_id is None:
        return by
    return f"{person_of(row.proposal.proposed_by) or 'staff'}, approved by {by}"


def pointer_history(standing: Standing) -> ui.Timeline:
    """Every accepted command, oldest first, also those that changed nothing."""
    events = [
        ui.Event(
            row.recorded_at,
            _command(row),
            actor_of(row),
            "ok" if row.kind == "activate" else "warn" if row.kind == "rollback" else "plain",
            row.reason,
            id=f"transition-{row.pk}",
        )
        for row in standing.history
    ]
    return ui.Timeline(events, "Commands on the pointer", "No command yet: base scoring.")


def _command(row: Transition) -> str:
    if row.expected_profile_id == row.resulting_profile_id:
        return f"{KINDS[row.kind]}: nothing changed, {short(row.resulting_profile_id)} stays"
    return f"{short(row.expected_profile_id)} → {short(row.resulting_profile_id)}, {KINDS[row.kind]}"


def proposal_notice(proposal: ActivationProposal, buttons: Sequence[Any]) -> ui.Notice:
    """Who waits for whom, until when, and what would void it."""
    words = format_html(
        "{} proposed to activate it at {}: {} It waits for another person until {}. Any move of the pointer "
        "voids it.",
        person_of(proposal.proposed_by) or "Somebody",
        ui.when(proposal.proposed_at),
        _sentence(proposal.reason),
        ui.deadline(proposal.valid_until),
    )
    row = format_html('<div class="gv-row-of gv-after">{}</div>', ui.ActionRow(buttons)) if buttons else ""
    return ui.Notice("run", words, row)


def _sentence(text: str) -> str:
    return f"“{text}”."


def drills_of(profile: RankingProfile) -> Any:
    """The last rehearsal step by step; what is older is counted."""
    found = list(
        RollbackDrill.objects.filter(principal_id=profile.principal_id, profile_id=profile.pk)
        .select_related("actor_user")
        .order_by("-drilled_at")[:5]
    )
    if not found:
        why = "A drill activates the profile on a pointer that no request can reach, looks, and goes back."
        return ui.EmptyState("Never rehearsed.", why, level=3)
    last, earlier = found[0], found[1:]
    head = ui.Mark("ok", "passed") if last.passed else ui.Mark("bad", "did not pass")
    who = person_of(last.actor_user) or "its owner"
    before = format_html(
        '<p class="gv-row-of">{} {} <span>by {}: {}</span></p>',
        head,
        ui.when(last.drilled_at, relative=True),
        who,
        last.reason,
    )
    old = ", ".join(
        f"{'passed' if drill.passed else 'failed'} {drill.drilled_at:%Y-%m-%d}" for drill in earlier
    )
    rest = format_html('<p class="gv-subtle gv-after">Before: {}</p>', old) if old else ""
    return format_html('{}<div class="gv-after">{}{}</div>', before, drill_steps(last), rest)


def drill_steps(drill: RollbackDrill) -> ui.Checklist:
    """What each step expected and what a request would then have been ranked with."""
    steps = [
        ui.Step(
            "ok" if step["as_expected"] else "bad",
            f"{STEPS.get(step['step'], step['step'])}: {short(step['expected']['active'])}",
            f"seen {short(step['seen']['active'])}, {step['seen']['status']}",
        )
        for step in drill.evidence.get("steps", [])
    ]
    if refused := drill.evidence.get("refused"):
        why = CAUSES.get(refused.get("reason", ""), refused.get("reason") or refused["code"])
        steps.append(ui.Step("bad", "refused on the way", why))
    untouched = bool(drill.evidence.get("real_pointer_untouched"))
    steps.append(
        ui.Step("ok" if untouched else "bad", "the real pointer", "where it was" if untouched else "moved")
    )
    return ui.Checklist(steps)


def rechecks_of(profile: RankingProfile) -> ui.Records | None:
    """What the profile was worth on labels admitted since; None where nothing was looked at yet."""
    found = Recheck.objects.filter(principal_id=profile.principal_id, profile_id=profile.pk)
    rows = [
        ui.Record(
            [
                ui.when(row.checked_at),
                ui.Mark(*VERDICTS[row.verdict], bare=row.verdict == "holds"),
                ui.gain(row.ndcg_gain, row.interval_low, row.interval_high, row.groups),
            ],
            tone="bad" if row.verdict == "regressed" else "",
        )
        for row in found.order_by("-checked_at")[:8]
    ]
    if not rows:
        return None
    columns = [ui.Column("checked"), ui.Column("verdict", "main"), ui.Column("gain since", "num")]
    return ui.Records("Re-checks on labels admitted since", columns, rows)


CLOSED = format_html('<span class="gv-subtle">{}</span>', "computed for those who hold manage_profiles")
REPRODUCES: dict[Reproduction, ui.Mark] = {
    Reproduction.HOLDS: ui.Mark("ok", "computed again, equal", bare=True),
    Reproduction.BELOW_GATE: ui.Mark("warn", "equal, but below the gate of now"),
    Reproduction.DIFFERS: ui.Mark("bad", "no longer: a label or receipt has changed"),
    Reproduction.GONE: ui.Mark("plain", "the evidence has had its days"),
    Reproduction.TOO_LARGE: ui.Mark("plain", "too large for a page; manage.py make_profile computes it"),
}


def reproduces_mark(profile: RankingProfile) -> ui.Mark:
    """Whether receipts and labels as they are now give both decisions again."""
    return REPRODUCES[reproduction_for(profile_id=profile.pk)]
