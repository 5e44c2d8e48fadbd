"""Codes of learning in words. A code that is not here is shown as it is, with its underscores gone."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.templatetags.gov import gv_sign
from apps.core.ui import Tone

DECISIONS: dict[str, tuple[Tone, str]] = {
    "insufficient_data": ("warn", "not enough labels"),
    "no_improvement": ("plain", "no improvement"),
    "improved_on_observed_candidates": ("ok", "improved"),
    "improved_full_retrieval": ("ok", "improved"),
}
STATUSES: dict[str, tuple[Tone, str]] = {
    "queued": ("run", "queued"),
    "running": ("run", "running"),
    "succeeded": ("ok", "succeeded"),
    "failed": ("bad", "failed"),
    "cancelled": ("plain", "cancelled"),
}
GATES: dict[str, str] = {
    "query_groups": "Too few query groups were measured.",
    "ndcg_gain": "The mean NDCG gain is below the minimum.",
    "ndcg_gain_interval": "The interval of the NDCG gain reaches down to zero: it may be chance.",
    "recall": "Mean recall is lower than before.",
    "regression_fraction": "More query groups do worse than the gate allows.",
    "protected_slice_unmeasured": "A protected slice has no query group, so nobody knows how it fares.",
    "protected_slice": "A protected slice is below its bound.",
}
# Of judgments, in the order in which they are left out.
EXCLUDED_RECORDS: dict[str, str] = {
    "other_surface_records": "of the other surface",
    "other_scope_records": "of another scope set",
    "legacy_receipt_records": "on receipts that cannot be replayed",
    "rank_fusion_receipt_records": "on receipts of another formula",
    "other_contract_records": "on receipts of another scorer contract",
}
FAILURES: dict[str, str] = {
    "too_large": "There are more records or pairs than the settings allow.",
    "conflicting_identity": "One query has two names, or one id two things.",
    "unknown_reference": "A label or group names a receipt that is not there.",
    "not_reproducible": "A stored receipt does not give its own scores.",
    "overlap": "The queries were seen by the evaluation that they are to confirm.",
    "corpus_changed": "The memory changed while both arms were run, so nothing of it is stored.",
    "retrieval_incomplete": "A channel of the search failed in one arm.",
    "pair_mismatch": "The two arms of a pair differ in more than their multipliers.",
    "lost": "Its worker was lost three times.",
    "time_limit": "It took longer than it may.",
    "internal_error": "It failed on our side; the job run says more.",
}
PHASES: dict[str, str] = {
    "": "Waiting for a worker",
    "loading": "Reading receipts and labels",
    "fitting": "Fitting and resampling",
    "storing": "Storing the result",
}
LACKING: dict[str, str] = {
    "unjudged": "nothing is judged yet",
    "conflicting_labels": "annotators disagree",
    "only_relevant": "nothing is judged not relevant",
    "only_not_relevant": "nothing is judged relevant",
}
CAUSES: dict[str, str] = {
    "scorer_contract": "a release scores differently than when it was measured",
    "formula": "another formula is in force",
    "scoring_policy": "another scoring policy is in force",
    "expired": "its term is over",
}
# Why evidence makes no profile.
PROMOTION: dict[str, str] = {
    "not_finished": "Evaluation or holdout has not ended well.",
    "surface": "The evaluation is not of results.",
    "other_evaluation": "The holdout is of another evaluation.",
    "scopes": "Evaluation and holdout are of different scope sets.",
    "exploratory": "One of them is exploratory.",
    "gate_policy": "One of them asks less than the gate policy of now.",
    "evaluation_decision": "The evaluation was no improvement.",
    "holdout_decision": "The holdout was no improvement.",
    "multipliers": "The holdout tried other multipliers than the evaluation proposes.",
    "proposal": "The holdout was of another state of the evaluation.",
    "formula": "The holdout was answered under another formula.",
    "too_large": "It is too large to be computed again within a request; manage.py make_profile does it.",
    **{code: f"It would not apply: {why}." for code, why in CAUSES.items()},
}
# Why an approval does nothing.
APPROVALS: dict[str, str] = {
    "same_person": "You proposed it; another person approves.",
    "lapsed": "The proposal is past its time.",
    "voided": "The pointer moved since, so the proposal is void.",
    "withdrawn": "The proposal was withdrawn.",
    "approved": "The proposal was used already.",
    "other_version": "The proposal was for another state.",
    "no_proposal": "Somebody has to propose it first.",
}
KINDS: dict[str, str] = {
    "activate": "activated",
    "deactivate": "deactivated",
    "rollback": "rolled back",
    "expire": "ended by its term",
}
# What somebody did to a pointer, before where it is now.
MOVED: dict[str, str] = {
    "activate": "activated",
    "deactivate": "went back to",
    "rollback": "rolled back to",
    "expire": "ended its term, and went back to",
}
VERDICTS: dict[str, tuple[Tone, str]] = {
    "holds": ("ok", "holds"),
    "regressed": ("bad", "regressed"),
    "insufficient_data": ("plain", "too few new labels"),
}
BASE = "base scoring"


def in_words(words: dict[str, str], code: str) -> str:
    return words.get(code, code.replace("_", " "))


def decision_mark(decision: str | None, *, exploratory: bool = False) -> Any:
    if decision is None:
        return ui.nothing("no result")
    tone, words = DECISIONS.get(decision, ("plain", decision.replace("_", " ")))
    mark = ui.Mark(tone, words, bare=tone == "ok")
    if not exploratory:
        return mark
    return format_html("{} {}", mark, ui.Mark("warn", "exploratory", sign="◐"))


def decided(decision: str, sentence: str) -> SafeString:
    """A sentence with the sign of its decision before it."""
    tone, _ = DECISIONS.get(decision, ("plain", ""))
    return format_html("{} <span>{}</span>", gv_sign(tone), sentence)


def status_mark(status: str) -> ui.Mark:
    tone, words = STATUSES[status]
    return ui.Mark(tone, words, bare=tone == "ok")


def scopes_in_words(scopes: Sequence[str] | None) -> str:
    return ", ".join(scopes) if scopes else "all scopes"


def short(profile_id: UUID | str | None) -> str:
    """`…6c36284`, or base scoring."""
    return BASE if profile_id is None else f"…{str(profile_id)[-7:]}"


def state_name(profile_id: UUID | str | None) -> str:
    """A state of a pointer by its whole id, for what binds an act to the state that was seen."""
    return BASE if profile_id is None else str(profile_id)


def linked(route: str, key: UUID | str | None, name: str, *, copy: bool = False) -> SafeString:
    """An id that leads to its page, where there is such a page."""
    return ui.short_id(key, name, href=page_url(route, key), copy=copy)


def gain_words(estimate: float | None, low: float | None, high: float | None, n: int | None) -> SafeString:
    """A gain with its interval as plain words, where it is what a row is called by."""
    if estimate is None or low is None or high is None:
        return format_html("{}", "no gain measured")
    return format_html("{} [{}, {}] n {}", ui.signed(estimate), ui.score(low, 3), ui.score(high, 3), n)


def page_url(route: str, *keys: UUID | str | None) -> str:
    """The address of an admin page; empty where no such page is installed."""
    if None in keys:
        return ""
    try:
        return reverse(f"admin:{route}", args=keys)
    except NoReverseMatch:
        return ""


def linked_profile(profile_id: UUID | None) -> SafeString | str:
    return BASE if profile_id is None else linked("learning_rankingprofile_change", profile_id, "profile id")


def linked_receipt(receipt_id: UUID | str | None) -> SafeString:
    return linked("retrieval_receipt_change", receipt_id, "receipt id")


def whose(obj: Any) -> str:
    """Display name of the owner, else its subject cut in the middle."""
    return str(obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))


def person_of(user: Any) -> str:
    return str(user.get_full_name() or user.get_username()) if user is not None else ""
