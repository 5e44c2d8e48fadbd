"""How values are written: never bare, never a 0 for what was not measured."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from apps.core import clock, ui

AT = datetime(2026, 11, 29, 11, 32, 35, 123456, tzinfo=UTC)


def test_a_time_names_its_zone_and_keeps_microseconds_for_machines() -> None:
    html = ui.when(AT)
    assert ">2026-11-29 11:32:35 UTC<" in html
    assert 'datetime="2026-11-29T11:32:35.123456Z"' in html


def test_a_persons_zone_is_always_named() -> None:
    with timezone.override("Pacific/Auckland"):
        assert "2026-11-30 00:32:35 NZDT" in ui.when(AT)


def test_the_distance_follows_the_absolute_time() -> None:
    with clock.frozen(AT + timedelta(minutes=3)):
        html = ui.when(AT, relative=True)
    assert html.index("2026-11-29") < html.index("3 min ago")


@pytest.mark.parametrize(
    ("left", "words", "tone"),
    [
        (timedelta(days=61, hours=4), "in 61 d 4 h", "gv-subtle"),
        (timedelta(days=2), "in 2 d", "gv-warn"),
        (timedelta(minutes=12), "in 12 min", "gv-warn"),
        (-timedelta(hours=2), "overdue 2 h", "gv-bad"),
    ],
)
def test_a_deadline_says_what_remains(left: timedelta, words: str, tone: str) -> None:
    with clock.frozen(AT):
        html = ui.deadline(AT + left)
    assert words in html
    assert tone in html


def test_an_id_keeps_the_digits_that_tell_neighbours_apart() -> None:
    html = ui.short_id(UUID("01975c3a-9b1f-7d53-8a01-cc0a06c36284"), "trace id")
    assert ">0197…6c36284<" in html
    assert 'aria-label="Copy trace id"' in html
    assert "01975c3a-9b1f-7d53-8a01-cc0a06c36284" in html


def test_a_source_id_keeps_its_prefix() -> None:
    assert ">s:cf43b290…<" in ui.short_hash("s:" + "cf43b2901f0426bb" * 4)


def test_two_hashes_mark_the_first_difference() -> None:
    html = ui.hash_pair("aaaab", "aaaac")
    assert html.count("<mark") == 2
    assert '<mark class="gv-diff">b</mark>' in html
    assert "equal" in ui.hash_pair("ab", "ab")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.8051, ".8051"), (-0.125, "−.1250"), (1.0, "1.0000"), (-0.00001, ".0000"), (0.0, ".0000")],
)
def test_a_score_has_four_decimals_and_a_real_minus(value: float, shown: str) -> None:
    assert ui.score(value) == shown


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_not_a_number_is_not_measured(value: float | None) -> None:
    assert "not measured" in ui.score(value)
    assert "0" not in ui.score(value).replace("&#x27;", "")


def test_a_gain_never_stands_without_its_interval() -> None:
    assert "+.031 [.012, .050] n 64" in ui.gain(0.031, 0.012, 0.050, 64)
    assert "not measured" in ui.gain(0.031, None, None, 64)
    assert ".031" not in ui.gain(0.031, None, None, 64)


def test_counts_say_whether_they_are_exact() -> None:
    assert ui.count(1_204_331) == "1\u202f204\u202f331"  # a space that does not break
    assert ui.about(1_204_331) == "about 1.2\u202fM"
    assert ui.about(52_000) == "about 52\u202fk"
    assert ui.about(812) == "about 812"


def test_values_are_escaped() -> None:
    evil = '<script>"&'
    for html in (
        ui.person(evil, evil),
        ui.short_id(evil),
        ui.short_hash(evil),
        str(ui.Mark("ok", evil)),
        str(ui.JsonTree({evil: [evil]})),
        str(ui.LongText(evil)),
        str(ui.Facts([ui.Fact(evil, evil)])),
        str(ui.Records(evil, [ui.Column(evil, "main")], [ui.Record([evil], more=evil)])),
        str(ui.PathDrawing([[ui.Hop(evil, evil, evil, 0.5)]], evil)),
        str(ui.EmptyState(evil, evil, evil, evil)),
    ):
        assert "<script>" not in html


def test_long_text_keeps_its_lines_and_offers_the_rest() -> None:
    text = "\n".join(f"line {n}" for n in range(40))
    html = str(ui.LongText(text))
    assert "Show all" in html
    assert "line 39" in html
    assert "Show all" not in str(ui.LongText("short"))
