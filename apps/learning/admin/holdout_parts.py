"""What the page of a holdout is made of, out of its stored report and pairs."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Avg, F, QuerySet
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core import ui
from apps.learning.admin.run_parts import change_of, gain_mark
from apps.learning.admin.words import GATES, in_words, linked_receipt
from apps.learning.models import Holdout, HoldoutPair

Report = Mapping[str, Any]
GROUPS_SHOWN = 15
PAIRS_SHOWN = 2
METRICS = (("ndcg", "NDCG"), ("recall", "recall"), ("mrr", "MRR"))


def newest_holdouts(principal_id: UUID, most: int, **of: UUID) -> QuerySet[Holdout]:
    """Holdouts of something of a principal, the newest first, with the numbers of their results."""
    found = Holdout.objects.filter(principal_id=principal_id, **of).select_related("result")
    return found.defer("trials", "result__report", "result__summary").order_by("-requested_at", "-id")[:most]


def decision_sentence(report: Report) -> str:
    """The decision with the numbers that made it."""
    n, k = report["coverage"]["query_groups"], report["config"]["k"]
    if report["ndcg_gain_interval"] is None:
        need = report["config"]["min_query_groups"]
        return f"Not enough queries: {n} of {need} query groups. Hold out on a larger query set."
    low, high = report["ndcg_gain_interval"]
    numbers = f"NDCG@{k} {ui.signed(report['ndcg_gain'])} [{ui.score(low, 3)}, {ui.score(high, 3)}] n {n}"
    if report["decision"] == "improved_full_retrieval":
        if report["exploratory"]:
            return f"Improved on unseen queries: {numbers}."
        return f"Improved on unseen queries: {numbers}. A profile can be made of it."
    return f"No improvement on unseen queries: {numbers}."


def failed_gates(report: Report) -> ui.Checklist | None:
    """Each gate that does not hold, in words with its numbers; None where all hold."""
    if not report["failed_gates"]:
        return None
    steps = [
        ui.Step("bad", in_words(GATES, gate), gate_numbers(gate, report)) for gate in report["failed_gates"]
    ]
    return ui.Checklist(steps)


def gate_numbers(gate: str, report: Report) -> str:
    config = report["config"]
    if gate == "query_groups":
        return f"{report['coverage']['query_groups']} of {config['min_query_groups']}"
    if gate == "ndcg_gain":
        return f"{ui.signed(report['ndcg_gain'])}, at least {ui.score(config['min_ndcg_gain'], 3)}"
    if gate == "recall":
        return f"{ui.score(report['baseline_recall'])} before, {ui.score(report['candidate_recall'])} after"
    if gate == "regression_fraction":
        most = ui.share(config["max_regression_fraction"])
        return f"{regressed(report)} of {report['coverage']['query_groups']} groups, at most {most}"
    if gate in ("protected_slice", "protected_slice_unmeasured"):
        wanted = gate == "protected_slice"
        failed = [one for one in report["slices"] if not one["holds"]]
        return ", ".join(one["name"] for one in failed if (one["ndcg_gain"] is not None) == wanted)
    return ""


def regressed(report: Report) -> int:
    share: float = report["regression_fraction"]
    return round(share * int(report["coverage"]["query_groups"]))


def gain_plot(report: Report) -> ui.IntervalPlot:
    """The gain over all query groups."""
    low, high = report["ndcg_gain_interval"] or (None, None)
    n, config = report["coverage"]["query_groups"], report["config"]
    passes = "passes" if report["decision"] == "improved_full_retrieval" else ""
    name = f"NDCG@{config['k']}, all"
    rows = [ui.Interval(name, report["ndcg_gain"], low, high, n, config["min_ndcg_gain"], passes)]
    return ui.IntervalPlot("Gain on unseen queries", rows)


def arms(report: Report) -> ui.Records:
    """Both arms beside each other, metric by metric."""
    rows = [
        ui.Record(
            [
                words,
                ui.score(report[f"baseline_{metric}"]),
                ui.score(report[f"candidate_{metric}"]),
                gain_mark(report[f"{metric}_gain"]),
            ]
        )
        for metric, words in METRICS
    ]
    columns = [
        ui.Column(f"mean over groups, at {report['config']['k']}", "main"),
        *(ui.Column(name, "num") for name in ("baseline", "candidate", "gain")),
    ]
    return ui.Records("Metrics of both arms", columns, rows)


def regression_facts(report: Report) -> ui.Facts:
    n, limit = report["coverage"]["query_groups"], report["config"]["max_regression_fraction"]
    lost = regressed(report)
    words = f"{lost} of {n} groups, limit {ui.share(limit)}"
    within = report["regression_fraction"] <= limit
    power = report["power"]
    return ui.Facts(
        [
            ui.Fact("regressed", words if within else ui.Mark("bad", words)),
            ui.Fact("queries", ui.count(report["coverage"]["trials"])),
            ui.Fact("graded queries", ui.count(report["graded_trials"])),
            ui.Fact("relevant documents", ui.count(report["coverage"]["relevant_nodes"])),
            ui.Fact(
                "detectable gain",
                ui.score(power["detectable_gain"], 3),
                "the smallest true gain that so many groups find four times out of five",
            ),
            ui.Fact("groups to show the least gain", ui.count(power["groups_for_min_gain"])),
        ]
    )


def slices(report: Report) -> ui.Records | None:
    """Protected slices against their bounds; None where the gate protects none."""
    if not report["slices"]:
        return None
    rows = []
    for one in report["slices"]:
        measured = one["ndcg_gain"] is not None
        verdict: Any = (
            "holds" if one["holds"] else ui.Mark("bad", "below its bound" if measured else "not measured")
        )
        rows.append(
            ui.Record(
                [
                    one["name"],
                    ui.count(one["query_groups"]),
                    ui.signed(one["ndcg_gain"]),
                    ui.signed(one["bound"]),
                    verdict,
                ],
                tone="" if one["holds"] else "bad",
            )
        )
    columns = [
        ui.Column("slice", "main"),
        *(ui.Column(name, "num") for name in ("query groups", "NDCG gain", "bound")),
        ui.Column("verdict"),
    ]
    return ui.Records("Protected slices", columns, rows)


def groups_of(holdout: Holdout) -> QuerySet[Any, Any]:
    """Query groups with the means of both arms and their receipts, those that lost most first."""
    rows = HoldoutPair.objects.filter(principal_id=holdout.principal_id, holdout_id=holdout.pk)
    found = rows.values("group_id").annotate(
        before=Avg("baseline_ndcg"),
        after=Avg("candidate_ndcg"),
        recall_before=Avg("baseline_recall"),
        recall_after=Avg("candidate_recall"),
        names=ArrayAgg("query_name", order_by="position"),
        baselines=ArrayAgg("baseline_request_id", order_by="position"),
        candidates=ArrayAgg("candidate_request_id", order_by="position"),
    )
    return found.annotate(change=F("after") - F("before")).order_by("change", "group_id")


def group_table(rows: Sequence[dict[str, Any]], empty: Any = "") -> ui.Records:
    columns = [
        ui.Column("query", "main"),
        ui.Column("receipts, baseline and candidate"),
        ui.Column("NDCG before → after", "num"),
        ui.Column("change", "num"),
        ui.Column("recall before → after", "num", later=True),
    ]
    return ui.Records(
        "Query groups, those that lost most first", columns, [_group(row) for row in rows], empty=empty
    )


def _group(row: dict[str, Any]) -> ui.Record:
    names = [name for name in row["names"] if name] or [row["group_id"]]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return ui.Record(
        [
            f"{names[0]}{more}",
            _pairs(row),
            change_of(row["before"], row["after"]),
            gain_mark(row["change"]),
            change_of(row["recall_before"], row["recall_after"]),
        ],
        tone="warn" if row["change"] < 0 else "",
    )


def _pairs(row: dict[str, Any]) -> SafeString:
    both = list(zip(row["baselines"], row["candidates"], strict=True))
    shown = ((linked_receipt(before), linked_receipt(after)) for before, after in both[:PAIRS_SHOWN])
    more = f" +{len(both) - PAIRS_SHOWN}" if len(both) > PAIRS_SHOWN else ""
    pairs = format_html_join(" ", '<span class="gv-id">{} → {}</span>', shown)
    return format_html("{}{}", pairs, more)
