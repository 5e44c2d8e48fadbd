"""Parts carry their numbers in words, and drawings have a table of the same values."""

import re
from html import unescape

import pytest

from apps.core import ui


def test_a_score_bar_is_named_by_its_numbers_and_scaled_to_the_first_rank() -> None:
    bar = ui.ScoreBar([("graph", 0.1), ("semantic", 0.3)], scale=0.8, adjustments=[("duplicate", -0.02)])
    assert bar.label == "semantic .3000, graph .1000, adjustment duplicate −.0200"
    assert [segment["name"] for segment in bar.segments] == ["semantic", "graph"]
    assert float(bar.segments[-1]["x"]) + float(bar.segments[-1]["width"]) == pytest.approx(50)
    assert float(bar.ticks[0]) == pytest.approx(47.5)


def test_a_score_bar_never_leaves_its_box() -> None:
    bar = ui.ScoreBar([("semantic", 5.0), ("lexical", 5.0), ("graph", -1.0)], scale=1.0)
    for segment in bar.segments:
        assert 0 <= float(segment["x"]) + float(segment["width"]) <= 100.001
    assert ui.ScoreBar([("semantic", 1.0)], scale=0).segments == []


def test_every_point_of_a_trend_is_in_its_table() -> None:
    trend = ui.Trend(
        "Searches", ["a", "b", "c"], [ui.Series("n", [10, None, 30]), ui.Series("z", [1, 2, 3], "line")]
    )
    html = unescape(str(trend))
    cells = re.findall(r'<td class="gv-num">([^<]+)</td>', html)
    assert cells == ["10", "1", "not measured", "2", "30", "3"]
    assert "last n 30, z 3" in html
    assert len(trend.bars) == 2


def test_a_gap_of_a_line_stays_a_gap() -> None:
    trend = ui.Trend(
        "Share", list("abcde"), [ui.Series("s", [0.1, 0.2, None, 0.3, None], "line")], percent=True
    )
    assert [stroke["single"] for stroke in trend.strokes] == [False, True]


def test_a_trend_axis_begins_at_zero_and_holds_every_stack() -> None:
    trend = ui.Trend("Stages", ["a"], [ui.Series("x", [7]), ui.Series("y", [6])])
    assert trend.top == 20
    assert all(float(bar["y"]) >= 0 for bar in trend.bars)


def test_nothing_counted_is_said_not_drawn() -> None:
    html = str(ui.Trend("Labels", ["a", "b"], [ui.Series("n", [0, None])]))
    assert "Nothing was counted" in html
    assert "<svg" not in html


def test_an_interval_plot_says_its_numbers_beside_it() -> None:
    plot = ui.IntervalPlot(
        "Gains",
        [
            ui.Interval("NDCG@10", 0.031, 0.012, 0.05, 64, 0.01, "passes"),
            ui.Interval("MRR", None, verdict="14 of 20 groups"),
        ],
    )
    html = unescape(str(plot))
    words = "+.031 [.012, .050] n 64, minimum .010, passes"
    assert html.count(words) == 2
    assert "not measured, 14 of 20 groups" in html
    lines = plot.lines
    assert float(str(lines[0]["zero"])) < float(str(lines[0]["low"])) < float(str(lines[0]["dot"]))


def test_multipliers_stand_on_both_sides_of_one() -> None:
    lines = ui.Multipliers([("up", 2.0), ("down", 0.5), ("far", 100.0), ("same", 1.0)]).lines
    assert (float(lines[0]["x"]), float(lines[0]["width"])) == (50, 25)
    assert (float(lines[1]["x"]), float(lines[1]["width"])) == (25, 25)
    assert float(lines[2]["x"]) + float(lines[2]["width"]) <= 100
    assert lines[3]["text"] == "1.00"


def test_stage_dots_have_a_word() -> None:
    assert "●●● used" in re.sub(r"<[^>]+>", "", str(ui.StageDots(3)))
    assert "○○○ retrieved" in re.sub(r"<[^>]+>", "", str(ui.StageDots(0)))


def test_a_path_that_went_backwards_says_so_in_its_stored_direction() -> None:
    html = unescape(
        str(ui.PathDrawing([[ui.Hop("rotation", "keys", "mention", 0.375, backwards=True)]], "acme/app"))
    )
    assert "acme/app: rotation → keys (mention, traversed backwards, strength .3750)" in html
    assert html.index(">keys<") < html.index(">rotation<")


def test_a_record_table_has_a_caption_one_row_header_and_named_buttons() -> None:
    html = str(
        ui.Records(
            "Sources",
            [ui.Column("#", "num"), ui.Column("source", "main")],
            [ui.Record([1, "a"], more="m")],
            header=1,
        )
    )
    assert html.count('scope="row"') == 1
    assert "<caption" in html
    controls = re.search(r'aria-controls="([^"]+)"', html)
    assert controls
    assert f'id="{controls[1]}" hidden' in html
    assert "More about row 1" in html


def test_numbers_and_what_is_named_keep_their_heading_where_a_table_is_folded() -> None:
    columns = [
        ui.Column("#", "num"),
        ui.Column("table", "main"),
        ui.Column("found", "num"),
        ui.Column("left out", "num"),
        ui.Column("mode", named=True),
        ui.Column("kind"),
    ]
    html = str(ui.Records("Rows", columns, [ui.Record([1, "a", 0, "", "on", "k"])], header=1))
    assert re.findall(r'data-label="([^"]+)">([^<]*)<', html) == [("found", "0"), ("mode", "on")]


def test_a_json_tree_shows_every_key_and_cuts_long_values() -> None:
    html = unescape(
        str(ui.JsonTree({"a": list(range(143)), "unknown_key": None, "long": "x" * 400}, "settings"))
    )
    assert "20 of 143, show all" in html
    assert "unknown_key" in html
    assert "show all (400 characters)" in html
    assert 'data-download="settings.json"' in html


def test_a_deep_document_is_drawn_too() -> None:
    value: object = 1
    for _ in range(300):
        value = [value]
    assert "<pre>" in str(ui.JsonTree(value))


def test_what_differs_is_marked_and_named() -> None:
    rows = [ui.Difference("half-life", "3600", "3600"), ui.Difference("days", "90", "30")]
    assert str(ui.SideBySide("3", "4", rows)).count("differs</small>") == 1
    assert "half-life" not in str(ui.SideBySide("3", "4", rows, only_differences=True))


def test_a_blocked_action_says_why_and_is_no_link() -> None:
    html = str(ui.ActionButton("Approve", "/x", blocked="You proposed it."))
    assert "href" not in html
    assert html.count("You proposed it.") == 2
    assert 'aria-disabled="true"' in html


def test_a_running_job_line_polls_and_a_finished_one_does_not() -> None:
    line = ui.JobLine("Replay", 3120, 5000, "receipts", poll_url="/p")
    assert 'data-poll="/p"' in str(line)
    assert "3 120 of 5 000 receipts" in line.words.replace("\u202f", " ")
    assert "data-poll" not in str(ui.JobLine("Replay", 1, 1, poll_url="/p", finished=True))


def test_a_secret_asks_before_it_is_left() -> None:
    html = str(ui.Secret("mp_abc", "The secret"))
    assert "data-unstored" in html
    assert "<output" in html
