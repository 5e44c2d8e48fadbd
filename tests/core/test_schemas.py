"""Strict documents and the strict JSON reader."""

import json
from contextlib import suppress
from typing import Annotated, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from apps.core.problems import InvalidRequest
from apps.core.schemas import (
    MAX_DEPTH,
    MAX_FAILURES,
    AwareTime,
    FilledText,
    Finite,
    Handle,
    StrictModel,
    Text,
    loads,
    parse,
    pointer,
    validated,
)


class Circle(StrictModel):
    kind: Literal["circle"]
    radius: Finite


class Square(StrictModel):
    kind: Literal["square"]
    side: int


class Document(StrictModel):
    id: UUID
    at: AwareTime
    title: FilledText = "title"
    note: Text | None = None
    key: Handle = "k"
    count: int = 0
    share: Finite = 0.5
    flag: bool = False
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]] = []
    scopes: frozenset[str] = frozenset()
    weights: dict[str, Finite] = {}
    either: int | str = 0


GOOD = {"id": "0192f000-0000-7000-8000-000000000001", "at": "2026-03-01T12:00:00+02:00"}
SECRET = "hunter2-secret-value"


def refused(data, **more):
    with pytest.raises(InvalidRequest) as caught:
        parse(Document, data, **more)
    document = caught.value.document()
    assert SECRET not in json.dumps(document)
    assert SECRET not in repr(caught.value)
    return document


def test_a_good_document_takes_json_types_and_keeps_time_in_utc():
    found = parse(Document, {**GOOD, "shapes": [{"kind": "circle", "radius": 2}], "scopes": ["b", "a"]})
    assert found.at.isoformat() == "2026-03-01T10:00:00+00:00"
    assert found.id == UUID(GOOD["id"])
    assert found.scopes == {"a", "b"}
    assert found.shapes == [Circle(kind="circle", radius=2.0)]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"unknown": SECRET}, "/unknown"),
        ({"a/b~c": SECRET}, "/a~1b~0c"),
        ({"count": SECRET}, "/count"),
        ({"count": 5.0}, "/count"),
        ({"count": True}, "/count"),
        ({"count": "5"}, "/count"),
        ({"count": 2**53}, "/count"),
        ({"share": float("nan")}, "/share"),
        ({"share": float("-inf")}, "/share"),
        ({"share": True}, "/share"),
        ({"share": "0.5"}, "/share"),
        ({"flag": 1}, "/flag"),
        ({"note": SECRET + "\x00"}, "/note"),
        ({"note": SECRET + "\ud800"}, "/note"),
        ({"note": 5}, "/note"),
        ({"title": " \ufeff\u3000"}, "/title"),
        ({"key": ""}, "/key"),
        ({"key": "x" * 129}, "/key"),
        ({"id": SECRET}, "/id"),
        ({"id": None}, "/id"),
        ({"at": "2026-03-01T12:00:00"}, "/at"),
        ({"at": "2026-02-30T12:00:00Z"}, "/at"),
        ({"at": "2026-03-01"}, "/at"),
        ({"at": 1_700_000_000}, "/at"),
        ({"at": "1700000000"}, "/at"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "/at"),
        ({"at": SECRET}, "/at"),
        ({"shapes": [{"kind": "circle", "radius": 1}, {"kind": SECRET}]}, "/shapes/1"),
        ({"shapes": [{"kind": "square", "side": SECRET}]}, "/shapes/0/side"),
        ({"shapes": [{"kind": "square"}]}, "/shapes/0/side"),
        ({"shapes": [{"kind": "square", "side": 1, "more": SECRET}]}, "/shapes/0/more"),
        ({"weights": {"x/y": SECRET}}, "/weights/x~1y"),
        ({"weights": {"x": float("inf")}}, "/weights/x"),
        ({"scopes": "abc"}, "/scopes"),
        ({"either": [SECRET]}, "/either"),
        ({"x" * 1000: SECRET}, ""),
        ({"\ud800": SECRET}, ""),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(change, where):
    document = refused({**GOOD, **change})
    assert document["pointer"] == where
    assert document["status"] == 400
    assert document["code"] == "invalid_request"


def test_missing_fields_are_named_and_several_are_listed():
    document = refused({}, code="invalid_memory_request")
    assert document["code"] == "invalid_memory_request"
    assert document["pointer"] == "/id"
    assert [error["pointer"] for error in document["errors"]] == ["/id", "/at"]


def test_a_long_list_of_failures_is_cut():
    failures = validated(Document, {**GOOD, "shapes": [{"kind": "square", "side": "x"}] * 50})
    assert isinstance(failures, list)
    assert len(failures) == MAX_FAILURES


@pytest.mark.parametrize("data", [None, [], "text", 5, float("nan")])
def test_something_else_than_an_object(data):
    assert refused(data)["pointer"] == ""


def test_models_made_in_code_are_as_strict():
    for change in ({"count": "1"}, {"note": "\x00"}, {"share": float("nan")}, {"more": 1}):
        with pytest.raises(ValidationError) as caught:
            Document.model_validate({"id": UUID(GOOD["id"]), "at": "2026-03-01T12:00:00Z", **change})
        assert "\x00" not in str(caught.value)
    with pytest.raises(ValidationError):
        setattr(parse(Document, GOOD), "count", 5)  # noqa: B010


def test_pointers_are_escaped_and_end_before_what_cannot_be_repeated():
    assert pointer() == ""
    assert pointer("a", 0, "x/~y") == "/a/0/x~1~0y"
    assert pointer("") == "/"
    assert pointer("a", "\ud800", "b") == "/a"


# --- loads ---


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"a": NaN}', "/a"),
        (b'{"a": [0, Infinity]}', "/a/1"),
        (b'{"a": -Infinity}', "/a"),
        (b'{"a": 1e999}', "/a"),
        (b'{"a": {"b": 1, "b": 1}}', "/a"),
        (b'{"a": 1, "a": 1}', ""),
        (b'{"a": "\\u0000"}', "/a"),
        (b'{"a": ["x", "\\ud83d"]}', "/a/1"),
        (b'{"\\udfff": 1}', ""),
        (b'{"a": 9007199254740992}', "/a"),
        (b"[" * 33 + b"]" * 33, "/0" * 32),
    ],
)
def test_values_that_strict_json_has_not_are_pointed_at(body, where):
    with pytest.raises(InvalidRequest) as caught:
        loads(body)
    assert caught.value.document()["pointer"] == where


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"\xff",
        b'{"a": "\xed\xa0\x80"}',
        b"{",
        b"{'a': 1}",
        b"[1,]",
        b"[" * 100_000,
        b"1" * 5000,
        b"//",
    ],
)
def test_what_is_no_json_is_refused_without_echo(body):
    with pytest.raises(InvalidRequest) as caught:
        loads(body, code="invalid_evaluation")
    document = caught.value.document()
    assert document["code"] == "invalid_evaluation"
    assert "pointer" not in document


def test_good_bodies_are_read():
    assert loads(b'\xef\xbb\xbf{"a": [1, 2.5, null, true, "\\ud83d\\ude00"]}') == {
        "a": [1, 2.5, None, True, "😀"]
    }
    nested = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert loads(nested) == json.loads(nested)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_every_json_value_comes_back(value):
    assert loads(json.dumps(value).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body):
    with suppress(InvalidRequest):
        loads(body)


@given(st.dictionaries(st.sampled_from([*Document.model_fields, "x", "a/b"]), json_values))
def test_any_object_is_taken_or_refused_with_a_pointer(data):
    found = validated(Document, data)
    if isinstance(found, list):
        assert found
        assert all(failure.pointer == "" or failure.pointer.startswith("/") for failure in found)
