"""Documents that cross a boundary or are stored: strict pydantic models and a strict JSON reader.

What is refused is named by a JSON pointer (RFC 6901) to the field. The value is never repeated, neither in
the answer nor in an exception: it may be a query, a handle or a secret.
"""

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from apps.core import clock
from apps.core.problems import InvalidRequest
from apps.core.text import BadText, check_text, text_fault, trim

MAX_DEPTH = 32
"""Arrays and objects inside each other that a body may hold."""
MAX_INTEGER = 2**53 - 1
"""Integers beyond have no exact value in JSON of other readers (RFC 7493) and no canonical form."""
MAX_FAILURES = 20
"""Failures that an answer lists."""
MAX_NAME = 256
"""Characters of a member name that a pointer repeats."""

# RFC 3339; the fraction may be longer than the six digits that are kept.
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)
_NAIVE = "The time needs a zone, such as Z"
_NO_TIME = "This is not a time of the form 2026-01-31T12:00:00Z"

M = TypeVar("M", bound=BaseModel)


def _checked_text(value: str) -> str:
    try:
        return check_text(value)
    except BadText as bad:
        raise PydanticCustomError("bad_text", "{reason}", {"reason": str(bad)}) from None


def _not_blank(value: str) -> str:
    if not trim(value):
        raise PydanticCustomError("blank", "The text is blank")
    return value


def _time(value: Any) -> Any:
    """RFC 3339 text becomes an aware time; an aware time stays; nothing else is a time."""
    if isinstance(value, str):
        value = _parsed_time(value)
    if not isinstance(value, datetime):
        raise PydanticCustomError("not_a_time", _NO_TIME)
    if value.tzinfo is None:
        raise PydanticCustomError("naive_time", _NAIVE)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("not_a_time", _NO_TIME) from None


def _parsed_time(value: str) -> datetime:
    if not _TIME.fullmatch(value):
        raise PydanticCustomError("not_a_time", _NO_TIME)
    try:
        return datetime.fromisoformat(value.upper().replace(" ", "T"))
    except ValueError:
        raise PydanticCustomError("not_a_time", _NO_TIME) from None


Text = Annotated[str, AfterValidator(_checked_text)]
"""A text without NUL and lone surrogates."""
FilledText = Annotated[Text, AfterValidator(_not_blank)]
"""A text that is not blank after trim; it is kept as given."""
Handle = Annotated[Text, Field(min_length=1, max_length=128)]
"""An id, key or cursor that a caller chose or hands back: 1..128 characters, not trimmed."""
AwareTime = Annotated[
    datetime,
    BeforeValidator(_time),
    PlainSerializer(clock.iso, return_type=str, when_used="json-unless-none"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A time with a zone, in UTC; in JSON with six digits and `Z`. Naive times are refused."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number; booleans and texts are none."""


class StrictModel(BaseModel):
    """Base of documents: no unknown fields, no conversions between types, no NaN or Infinity, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_default=True,
    )


class Failure(BaseModel):
    """One thing that is wrong: where, and why in words that repeat nothing of it."""

    model_config = ConfigDict(frozen=True)

    pointer: str
    detail: str


def loads(body: bytes, *, code: str = "invalid_request", max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON body. Raises `InvalidRequest` (with `code`) for whatever strict JSON is not:
    bad UTF-8, duplicate names, NaN, Infinity, numbers without an exact value, NUL, lone surrogates (also as
    escapes), and more than `max_depth` levels. A byte order mark is dropped."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not UTF-8", code=code) from None
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise InvalidRequest("The body is nested too deeply", code=code) from None
    except ValueError:
        raise InvalidRequest("The body is not JSON", code=code) from None
    for failure in data_failures(value, max_depth=max_depth):
        raise InvalidRequest(failure.detail, pointer=failure.pointer, code=code)
    return value


def parse(model: type[M], data: Any, *, code: str = "invalid_request") -> M:
    """`data` (of JSON types) as a model. Raises `InvalidRequest` with the pointer of the first failure; where
    there are more, all are listed in `errors`."""
    found = validated(model, data)
    if isinstance(found, model):
        return found
    assert isinstance(found, list)
    more: dict[str, Any] = {"errors": [failure.model_dump() for failure in found]} if len(found) > 1 else {}
    raise InvalidRequest(found[0].detail, pointer=found[0].pointer, code=code, **more)


def validated(model: type[M], data: Any) -> M | list[Failure]:
    """`data` as a model, or what is wrong with it, at most `MAX_FAILURES`."""
    failures: list[Failure] = []
    for failure in data_failures(data):
        failures.append(failure)
        if len(failures) == MAX_FAILURES:
            return failures
    if failures:
        return failures
    try:
        # Through JSON, since only there do strict models take ids, times and sets from their texts.
        return model.model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_context=False, include_input=False)
        return [
            Failure(pointer=_pointer_of(error["loc"], error["type"], data), detail=_detail(error))
            for error in errors[:MAX_FAILURES]
        ]


def pointer(*path: str | int) -> str:
    """JSON pointer (RFC 6901) of a path; it ends before a name that is no text or too long to repeat."""
    parts: list[str] = []
    for step in path:
        name = str(step)
        if len(name) > MAX_NAME or text_fault(name):
            break
        parts.append("/" + name.replace("~", "~0").replace("/", "~1"))
    return "".join(parts)


def data_failures(data: Any, *, max_depth: int = MAX_DEPTH) -> Iterator[Failure]:
    """What no JSON value of the platform may hold, wherever it is, in the order of the document."""
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(data, ())]
    while pending:
        value, path = pending.pop()
        if detail := _fault(value, len(path), max_depth):
            yield Failure(pointer=pointer(*path), detail=detail)
        elif isinstance(value, dict):
            for name in value:
                if not isinstance(name, str) or (detail := text_fault(name)):
                    yield Failure(pointer=pointer(*path), detail=detail or "A member name is no text")
            members = [(item, (*path, name)) for name, item in value.items() if isinstance(name, str)]
            pending += reversed(members)
        elif isinstance(value, list | tuple):
            pending += reversed([(item, (*path, index)) for index, item in enumerate(value)])


class _DuplicateNames(dict[str, Any]):
    """An object in which a name came twice; `name` is the first such."""

    name: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    duplicated = _DuplicateNames(members)
    duplicated.name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return duplicated


def _fault(value: Any, depth: int, max_depth: int) -> str | None:
    if isinstance(value, str):
        return text_fault(value)
    if isinstance(value, float):
        return None if math.isfinite(value) else "The number is not finite"
    if isinstance(value, int):
        return None if abs(value) <= MAX_INTEGER else "The integer is beyond 2^53 - 1"
    if isinstance(value, _DuplicateNames):
        return "An object has a name twice"
    if isinstance(value, dict | list | tuple):
        return "This is nested too deeply" if depth >= max_depth else None
    return None if value is None else "This is no JSON value"


_DETAILS = {
    "missing": "This field is needed",
    "extra_forbidden": "This field is not known",
    "union_tag_invalid": "No such kind",
    "union_tag_not_found": "The kind is needed",
    "uuid_parsing": "This is not a UUID",
    "uuid_type": "This is not a UUID",
    "url_parsing": "This is not a URL",
    "json_invalid": "This is not JSON",
}


def _detail(error: Any) -> str:
    """The reason in words. pydantic's own texts speak of the schema, but for those replaced here."""
    return _DETAILS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")


def _pointer_of(location: tuple[str | int, ...], kind: str, data: Any) -> str:
    """pydantic's location as a pointer into the data: names of union branches and validators drop out."""
    path: list[str | int] = []
    here = data
    for position, step in enumerate(location):
        last = position == len(location) - 1
        inside = step in here if isinstance(here, dict) else isinstance(here, list) and isinstance(step, int)
        if inside:
            here = here[step]
        elif not (last and kind == "missing"):
            continue
        path.append(step)
    return pointer(*path)
