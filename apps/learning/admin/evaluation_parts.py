"""What the page of an evaluation is made of, out of its stored report."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, QuerySet
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core import ui
from apps.learning.admin.run_parts import change_of, gain_mark
from apps.learning.admin.words import (
    EXCLUDED_RECORDS,
    LACKING,
    in_words,
    linked_receipt,
    page_url,
)
from apps.learning.models import EvaluatedQuery, Evaluation, EvaluationResult
from apps.learning.schemas import RequestToLabel
from apps.learning.scorer import FEATURES

Report = Mapping[str, Any]
QUERIES_SHOWN = 15
RECEIPTS_SHOWN = 3
TO_LABEL_SHOWN = 10
DESK = "learning_labelling_desk"
# What a table of queries is sorted by: columns before and after.
SORTS: dict[str, tuple[str, str]] = {
    "ndcg": ("baseline_judged_ndcg", "candidate_judged_ndcg"),
    "accuracy": ("baseline_pairwise_accuracy", "candidate_pairwise_accuracy"),
}


def decision_sentence(report: Report, requests: Sequence[Mapping[str, Any]] = ()) -> str:
    """The decision with the numbers that made it."""
    if report["decision"] == "insufficient_data":
        return insufficient_sentence(report, requests)
    config, n = report["config"], report["coverage"]["validation_queries"]
    gain, (low, high) = report["validation_ndcg_gain"], report["validation_gain_interval"]
    numbers = f"NDCG@{config['ndcg_k']} {ui.signed(gain)} [{ui.score(low, 3)}, {ui.score(high, 3)}] n {n}"
    if report["decision"] == "improved_on_observed_candidates":
        return f"Improved on what was judged: {numbers}. It changes nothing until a holdout confirms it."
    return f"No improvement: {numbers}. {' '.join(why_not(report))}"


def why_not(report: Report) -> list[str]:
    """Which conditions of an improvement do not hold."""
    config, found = report["config"], []
    if report["validation_ndcg_gain"] < config["min_ndcg_gain"]:
        found.append(f"The gain is below {ui.score(config['min_ndcg_gain'], 3)}.")
    if report["validation_gain_interval"][0] <= 0:
        found.append("The interval reaches down to zero: it may be chance.")
    if report["validation_pairwise_gain"] < 0:
        found.append(f"Pairwise accuracy falls by {ui.score(-report['validation_pairwise_gain'])}.")
    return found


def gone_notice(receipts: int) -> ui.Notice:
    """Of receipts that the evaluation stands on and that are not there any more."""
    are = "receipt that it stands on is" if receipts == 1 else "receipts that it stands on are"
    return ui.Notice(
        "warn",
        f"It no longer reproduces: {ui.count(receipts)} {are} gone. No profile can be made of it any more.",
    )


def insufficient_sentence(report: Report, requests: Sequence[Mapping[str, Any]]) -> str:
    """`14 of 20 groups`, and the shortest way to 20."""
    coverage, config = report["coverage"], report["config"]
    sides = [
        ("validation", coverage["validation_queries"], config["min_validation_queries"]),
        ("training", coverage["training_queries"], config["min_training_queries"]),
    ]
    have = " and ".join(f"{have} of {need} {side} groups" for side, have, need in sides)
    return f"Not enough labels: {have}. {shortest_way(report, requests)}"


def shortest_way(report: Report, requests: Sequence[Mapping[str, Any]]) -> str:
    """What to do to get what lacks: label searches that are there, and search more where these are too few.

    `requests` are those that could be labelled, each with its side and group.
    """
    plan = report["label_plan"]
    lacking = {"train": plan["training_queries_lacking"], "validation": plan["validation_queries_lacking"]}
    total = sum(lacking.values())
    groups = {(one["split"], one["group_id"]) for one in requests}
    there = sum(min(need, sum(split == side for split, _ in groups)) for side, need in lacking.items())
    way = (
        f"{total} more {'query needs' if total == 1 else 'queries need'} a relevant and a not relevant result"
    )
    if there == total:
        return f"{way}: label those that are listed below."
    if not there:
        return f"{way}: search and judge new ones, nothing that is there is of use."
    return f"{way}: {there} are listed below, {total - there} have still to be searched."


def to_label(report: Report, unjudged: Sequence[RequestToLabel]) -> list[dict[str, Any]]:
    """Requests that would add most: of the sides that lack groups first, those that were begun before new ones."""
    plan = report["label_plan"]
    lacks = {
        "train": plan["training_queries_lacking"] > 0,
        "validation": plan["validation_queries_lacking"] > 0,
    }
    known = {one["request_id"] for one in plan["requests"]}
    new = [one.model_dump() for one in unjudged if one.request_id not in known]
    return sorted([*plan["requests"], *new], key=lambda one: not lacks[one["split"]])


def gain_plot(report: Report) -> ui.IntervalPlot:
    low, high = report["validation_gain_interval"] or (None, None)
    verdict = "passes" if report["decision"] == "improved_on_observed_candidates" else ""
    row = ui.Interval(
        f"NDCG@{report['config']['ndcg_k']}",
        report["validation_ndcg_gain"],
        low,
        high,
        report["coverage"]["validation_queries"],
        report["config"]["min_ndcg_gain"],
        verdict,
    )
    return ui.IntervalPlot("Gain on validation groups", [row])


def trust(report: Report) -> ui.Facts:
    """Losses, reuse of the validation groups, and how small a gain so many groups can show."""
    before, after = report["training_loss_before"], report["training_loss_after"]
    loss: Any = ui.nothing("not fitted") if before is None else change_of(before, after)
    earlier = report["earlier_evaluations_on_these_groups"]
    reuse: Any = "first fitted on these"
    if earlier:
        reuse = ui.Mark("warn", f"{earlier} fitted before on the same groups")
    power = report["power"]
    graded = report["graded_requests"]
    return ui.Facts(
        [
            ui.Fact("training loss", loss),
            ui.Fact("pairwise accuracy gain", ui.signed(report["validation_pairwise_gain"], 4)),
            ui.Fact("validation groups", reuse),
            ui.Fact(
                "detectable gain",
                ui.score(power["detectable_gain"], 3),
                "the smallest true gain that so many groups find four times out of five",
            ),
            ui.Fact("groups to show the least gain", ui.count(power["groups_for_min_gain"])),
            ui.Fact("graded requests", ui.count(graded)),
            ui.Fact("resampling", report["resampling"].replace("_", " ")),
        ]
    )


def multipliers_of(result: EvaluationResult) -> ui.Multipliers:
    return ui.Multipliers(list(zip(FEATURES, result.multipliers, strict=True)), "Multipliers of the proposal")


def waterfall(report: Report) -> ui.Records:
    """From all judgments to the groups that are fitted and judged; each line says what it takes away."""
    coverage, excluded = report["coverage"], report["exclusions"]
    left = coverage["feedback_records"]
    rows = [ui.Record(["judgments until the start", "", ui.count(left)])]
    for code, words in EXCLUDED_RECORDS.items():
        if gone := excluded.get(code, 0):
            left -= gone
            rows.append(ui.Record([words, _gone(gone), ui.count(left)]))
    known = set(EXCLUDED_RECORDS) | {"conflicting_candidate_labels", "requests_without_explicit_pairs"}
    for code, gone in excluded.items():
        if code not in known and gone:
            rows.append(ui.Record([code.replace("_", " "), _gone(gone), ui.nothing("counted apart")]))
    if gone := excluded.get("conflicting_candidate_labels", 0):
        words = "results on which annotators disagree"
        rows.append(ui.Record([words, _gone(gone), ui.nothing("results are counted apart")], tone="warn"))
    pairs = coverage["requests_with_pairs"]
    without = excluded.get("requests_without_explicit_pairs", 0)
    rows.append(ui.Record(["searches with a judgment", "", ui.count(pairs + without)]))
    if without:
        rows.append(
            ui.Record(["without a relevant and a not relevant result", _gone(without), ui.count(pairs)])
        )
    words = f"pairs of them, in {ui.count(pairs)} searches"
    rows.append(ui.Record([words, "", ui.count(coverage["explicit_pairs"])]))
    config = report["config"]
    for name, split in (("for fitting", "training"), ("for judging", "validation")):
        have, need = coverage[f"{split}_queries"], config[f"min_{split}_queries"]
        shown: Any = ui.count(have) if have >= need else ui.Mark("warn", f"{have} of {need}")
        rows.append(ui.Record([f"query groups {name}, at least {need}", "", shown]))
    columns = [ui.Column("what", "main"), ui.Column("left out", "num"), ui.Column("left", "num")]
    return ui.Records("From judgments to query groups", columns, rows)


def _gone(number: int) -> SafeString:
    return format_html("{}{}", ui.formats.MINUS, ui.count(number))


def label_next(evaluation: Evaluation, requests: Sequence[Mapping[str, Any]], *, may_label: bool) -> Any:
    """Searches whose labels would add most, and the way to the desk for who may sit there."""
    if not requests:
        why = "Every query that was searched of late has a relevant and a not relevant result judged."
        return ui.EmptyState("Nothing to label.", why, level=3)
    rows = [
        ui.Record(
            [
                linked_receipt(one["request_id"]),
                in_words(LACKING, one["reason"]),
                "fitting" if one["split"] == "train" else "judging",
                ui.short_hash(one["group_id"], "group id", copy=False),
            ]
        )
        for one in requests[:TO_LABEL_SHOWN]
    ]
    columns = [
        ui.Column("receipt"),
        ui.Column("what it lacks", "main"),
        ui.Column("would add to"),
        ui.Column("query group", later=True),
    ]
    table = ui.Records("What to label next, the most useful first", columns, rows)
    rest = len(requests) - len(rows)
    more = format_html('<span class="gv-subtle">and {} more</span>', rest) if rest else ""
    desk = desk_link(evaluation) if may_label else ""
    return format_html('{}<p class="gv-row-of gv-after">{}{}</p>', table, desk, more)


def desk_link(evaluation: Evaluation) -> Any:
    """`Open desk with these`, where the desk is installed."""
    desk = page_url(DESK)
    if not desk:
        return ""
    return format_html(
        '<a class="gv-button" href="{}?evaluation={}">Open desk with these</a>', desk, evaluation.pk
    )


def queries_of(evaluation: Evaluation, sort: str = "ndcg") -> QuerySet[EvaluatedQuery]:
    """Query groups of an evaluation, those that lost most first."""
    before, after = SORTS[sort]
    rows = EvaluatedQuery.objects.filter(evaluation_id=evaluation.pk)
    return rows.annotate(change=F(after) - F(before)).order_by("change", "id")


def query_table(rows: Sequence[Any], caption: str, empty: Any = "") -> ui.Records:
    columns = [
        ui.Column("query group"),
        ui.Column("receipts", "main"),
        ui.Column("used for", later=True),
        ui.Column("NDCG before → after", "num"),
        ui.Column("change", "num"),
        ui.Column("pairwise accuracy", "num", later=True),
    ]
    return ui.Records(caption, columns, [_query(row) for row in rows], empty=empty)


def _query(row: EvaluatedQuery) -> ui.Record:
    gain = row.candidate_judged_ndcg - row.baseline_judged_ndcg
    return ui.Record(
        [
            ui.short_hash(row.group_id, "group id", copy=False),
            receipts(row.receipt_ids),
            "fitting" if row.split == "train" else "judging",
            change_of(row.baseline_judged_ndcg, row.candidate_judged_ndcg),
            gain_mark(gain),
            change_of(row.baseline_pairwise_accuracy, row.candidate_pairwise_accuracy),
        ],
        tone="warn" if gain < 0 else "",
    )


def receipts(ids: Sequence[Any]) -> SafeString:
    """The first receipts of a group, and how many more it has."""
    shown = format_html_join(" ", "{}", ((linked_receipt(one),) for one in ids[:RECEIPTS_SHOWN]))
    more = f" +{len(ids) - RECEIPTS_SHOWN}" if len(ids) > RECEIPTS_SHOWN else ""
    return format_html("{}{}", shown, more)


def limitations(report: Report) -> SafeString:
    items = format_html_join("", "<li>{}</li>", ((line,) for line in report["limitations"]))
    return format_html('<ul class="gv-list">{}</ul>', items)


def narrow(part: ui.Part) -> SafeString:
    """A table of few numbers, so that the eye finds the line."""
    return format_html('<div class="lr-narrow">{}</div>', part)
