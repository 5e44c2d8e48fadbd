"""The byte budget of answers."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.problems import InvalidRequest, ResponseTooLarge
from apps.core.text import (
    RESERVED,
    SOURCES_BUDGET,
    Utf16Text,
    check_request_id,
    fit_budget,
    largest_end,
    render_json,
    utf16_len,
)
from apps.core.text.budget import CAPS

ESCAPES = '"\\\n\u0001é€😀x'


def answer(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"request_id": 'q"uoted', "degraded": {"error": "dependency_timeout"}, "results": rows}


def test_caps_halve_rounding_down():
    assert CAPS == (2000, 1000, 500, 250, 125, 62, 31, 15, 7, 3, 1, 0)


def test_small_texts_are_byte_identical_and_unflagged():
    document = answer([{"id": 1, "content": ESCAPES}, {"id": 2, "content": "x" * 2000}])
    fitted = fit_budget(document, budget=SOURCES_BUDGET)
    assert fitted.document == document
    assert fitted.cap is None
    assert fitted.body == render_json(document)
    assert json.loads(fitted.body) == document


def test_twenty_huge_hits_keep_order_and_metadata():
    rows: list[dict[str, Any]] = [{"content": ESCAPES * 4000, "id": n, "score": n / 7} for n in range(20)]
    fitted = fit_budget(answer(rows), budget=SOURCES_BUDGET, reserve=RESERVED)
    assert fitted.cap is not None
    assert len(fitted.body) <= SOURCES_BUDGET - RESERVED
    body = json.loads(fitted.body)
    assert [(row["id"], row["score"]) for row in body["results"]] == [(n, n / 7) for n in range(20)]
    for row in body["results"]:
        assert row["content_truncated"] is True
        assert row["content"].endswith("…")
        assert utf16_len(row["content"]) - 1 in (fitted.cap, fitted.cap - 1)
        row["content"].encode()
    before = CAPS[CAPS.index(fitted.cap) - 1]
    looser = [{**row, "content": row["content"][:before] + "…", "content_truncated": True} for row in rows]
    assert len(render_json(answer(looser))) > SOURCES_BUDGET - RESERVED
    assert len(rows[0]["content"]) == len(ESCAPES) * 4000  # the caller's rows are untouched


def test_only_what_is_cut_is_flagged():
    rows: list[dict[str, Any]] = [{"content": "x" * 2001}, {"content": "short"}, {"content": None}, {"id": 4}]
    fitted = fit_budget(answer(rows), budget=SOURCES_BUDGET)
    assert fitted.document["results"] == [
        {"content": "x" * 2000 + "…", "content_truncated": True},
        {"content": "short"},
        {"content": None},
        {"id": 4},
    ]


def test_a_fetch_is_whole_while_it_fits():
    rows = [{"content": "x" * 9000}]
    assert fit_budget(answer(rows), budget=SOURCES_BUDGET, whole_first=True).cap is None
    assert fit_budget(answer(rows), budget=SOURCES_BUDGET).cap == 2000
    assert fit_budget(answer(rows), budget=5000, whole_first=True).cap == 2000


def test_several_places_share_one_cap():
    document = {"results": [{"content": "a" * 500}], "hints": [{"text": "b" * 500}], "none": None}
    places = [("results", "content"), ("hints", "text"), ("none", "text"), ("absent", "text")]
    fitted = fit_budget(document, budget=400, texts=places)
    assert fitted.cap is not None
    assert fitted.document["results"][0]["content"] == "a" * fitted.cap + "…"
    assert fitted.document["hints"][0]["text"] == "b" * fitted.cap + "…"


def test_what_does_not_fit_at_cap_zero_is_refused_whole():
    with pytest.raises(ResponseTooLarge) as refused:
        fit_budget(answer([{"title": "t" * 40_000, "content": "secret text"}]), budget=SOURCES_BUDGET)
    assert refused.value.status == 422
    assert refused.value.document()["code"] == "response_too_large"
    assert "secret" not in json.dumps(refused.value.document())


def test_the_complete_envelope_is_counted():
    def envelope(document):
        return b"<" + b" " * 100 + render_json(document) + b">"

    document = {"results": [{"content": "x" * 1000}]}
    size = len(render_json(document))
    assert fit_budget(document, budget=size).cap is None
    assert fit_budget(document, budget=size, render=envelope, texts=[("results", "content")]).cap is not None


def test_a_request_id_of_its_own_size_is_refused_with_null():
    check_request_id("x" * (SOURCES_BUDGET - RESERVED - len('{"request_id":""}')))
    for request_id in ("x" * (SOURCES_BUDGET - RESERVED - len('{"request_id":""}') + 1), '"' * 20_000):
        with pytest.raises(InvalidRequest) as refused:
            check_request_id(request_id)
        assert refused.value.document()["request_id"] is None
        assert refused.value.status == 400


def test_bodies_are_plain_json():
    assert render_json({"é": "\u2028<"}) == '{"é":"\\u2028<"}'.encode()
    with pytest.raises(ValueError):
        render_json({"x": float("nan")})


@given(
    st.lists(st.text(alphabet='a"\\é😀\n', max_size=3000), max_size=5),
    st.integers(150, 20_000),
)
def test_every_answer_fits_and_is_cut_as_little_as_the_caps_allow(contents, budget):
    document = {"results": [{"id": n, "content": text} for n, text in enumerate(contents)]}
    try:
        fitted = fit_budget(document, budget=budget)
    except ResponseTooLarge:
        return
    assert len(fitted.body) <= budget
    rows = json.loads(fitted.body)["results"]
    assert [row["id"] for row in rows] == list(range(len(contents)))
    for row, text in zip(rows, contents, strict=True):
        if "content_truncated" in row:
            assert text.startswith(row["content"][:-1])
        else:
            assert row["content"] == text


@given(st.text(alphabet='a"😀é', max_size=60), st.integers(1, 40))
def test_pages_join_to_the_text_and_end_as_late_as_they_fit(text, room):
    measured = Utf16Text(text)

    def fits(start: int, end: int) -> bool:
        return bool(len(render_json(measured.slice(start, end))) <= room)

    start, pages = 0, []
    while start < measured.length:
        end = largest_end(measured, start, partial(fits, start))
        if end < measured.length:
            assert not fits(start, end + 1 if measured.is_boundary(end + 1) else end + 2)
        if end == start:
            return
        assert fits(start, end)
        pages.append(measured.slice(start, end))
        start = end
    assert "".join(pages) == text
