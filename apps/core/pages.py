"""Keyset pages: no counts, no offsets, and cursors that only their owner and their listing can use.

A cursor is a position (time to the microsecond, id as tie-break) and a direction, signed by HMAC. Owner,
listing, filters and ordering are part of what is signed, not of what is shown; so a foreign, misplaced,
edited, cut or invented cursor fails alike, as `unknown_cursor`.
"""

import base64
import binascii
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import BooleanField, F, Field, Func, Model, QuerySet, Value
from django.utils.crypto import salted_hmac

from apps.core import canonical
from apps.core.problems import UnknownCursor

M = TypeVar("M", bound=Model)
Direction = Literal["next", "previous"]
Position = tuple[datetime | UUID | int | str, ...]

DEFAULT_ORDER = ("-recorded_at", "-id")
MAX_CURSOR = 512
"""Characters of a cursor; longer ones are not looked at."""

_SALT = "apps.core.pages.cursor"
_MAC_BYTES = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Binding:
    """What a cursor belongs to. `owner` is a principal or user id, `listing` names the listing, `filters` are
    JSON values that narrow it, `order` its ordering."""

    owner: str
    listing: str
    order: tuple[str, ...]
    filters: Mapping[str, Any] | None = None

    def message(self, payload: bytes) -> bytes:
        bound = [self.owner, self.listing, list(self.order), dict(self.filters or {})]
        return canonical.dumps(bound) + b"\0" + payload


def encode_cursor(binding: Binding, direction: Direction, position: Position) -> str:
    """The opaque cursor of a position."""
    payload = json.dumps([direction[0], *map(_packed, position)], separators=(",", ":")).encode()
    mac = _mac(binding, payload, settings.SECRET_KEY)
    return base64.urlsafe_b64encode(mac + payload).decode().rstrip("=")


def decode_cursor(binding: Binding, cursor: str) -> tuple[Direction, Position]:
    """Direction and position of a cursor. Raises `UnknownCursor` unless it was made for just this binding."""
    if not cursor or len(cursor) > MAX_CURSOR or not cursor.isascii():
        raise UnknownCursor
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raise UnknownCursor from None
    # Base64 has several spellings of the same bytes; only the one that was handed out is known.
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != cursor:
        raise UnknownCursor
    mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(hmac.compare_digest(mac, _mac(binding, payload, key)) for key in keys):
        raise UnknownCursor
    letter, *parts = json.loads(payload)
    return ("next" if letter == "n" else "previous"), tuple(map(_unpacked, parts))


@dataclass(frozen=True)
class KeysetPage(Generic[M]):
    """One page of a listing, evaluated. A cursor is None where nothing lies on its side."""

    items: list[M]
    next_cursor: str | None
    previous_cursor: str | None

    @classmethod
    def of(
        cls,
        queryset: QuerySet[M],
        *,
        limit: int,
        cursor: str | None,
        owner: object,
        listing: str,
        order: Sequence[str] = DEFAULT_ORDER,
        filters: Mapping[str, Any] | None = None,
    ) -> "KeysetPage[M]":
        """The page of at most `limit` rows that `cursor` names (None: the first).

        `order` names not-null columns in one direction, unique together; an index that begins with what the
        queryset fixes and goes on with them makes each page a range scan, however deep. `filters` must hold
        all that narrows the queryset beyond the owner, since a cursor is good for the same filters alone.
        """
        binding = Binding(str(owner), listing, tuple(order), filters)
        names, descending = _columns(order)
        direction, position = decode_cursor(binding, cursor) if cursor is not None else ("next", None)
        backwards = direction == "previous"
        found = queryset
        if position is not None:
            found = found.filter(_beyond(queryset.model, names, position, less=descending != backwards))
        sorted_names = [f"-{name}" if descending != backwards else name for name in names]
        rows = list(found.order_by(*sorted_names)[: limit + 1])
        if backwards and not rows:  # what lay before is gone, so this is the first page
            return cls.of(
                queryset, limit=limit, cursor=None, owner=owner, listing=listing, order=order, filters=filters
            )
        more, rows = len(rows) > limit, rows[:limit]
        if backwards:
            rows.reverse()
        after, before = (True, more) if backwards else (more, position is not None)
        return cls(
            items=rows,
            next_cursor=_edge(binding, "next", rows[-1:], names) if after else None,
            previous_cursor=_edge(binding, "previous", rows[:1], names) if before else None,
        )


def _edge(binding: Binding, direction: Direction, rows: Sequence[Model], names: Sequence[str]) -> str | None:
    if not rows:
        return None
    position = tuple(attrgetter(name.replace("__", "."))(rows[0]) for name in names)
    return encode_cursor(binding, direction, position)


def _columns(order: Sequence[str]) -> tuple[list[str], bool]:
    descending = {name.startswith("-") for name in order}
    if len(descending) != 1:
        raise ValueError("a keyset runs in one direction")
    return [name.removeprefix("-") for name in order], descending.pop()


class _RowComparison(Func):
    """`(a, b) < (x, y)`, which PostgreSQL turns into one range of an index over (a, b)."""

    output_field = BooleanField()
    conditional = True

    def __init__(self, *expressions: Any, operator: str) -> None:
        super().__init__(*expressions)
        self.operator = operator

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: Any, **context: Any
    ) -> tuple[str, list[Any]]:
        compiled = [compiler.compile(expression) for expression in self.get_source_expressions()]
        half = len(compiled) // 2
        left, right = (", ".join(sql for sql, _ in part) for part in (compiled[:half], compiled[half:]))
        return f"({left}) {self.operator} ({right})", [p for _, params in compiled for p in params]


def _beyond(model: type[Model], names: Sequence[str], position: Position, *, less: bool) -> _RowComparison:
    values = [
        Value(value, output_field=_field(model, name)) for name, value in zip(names, position, strict=True)
    ]
    return _RowComparison(*map(F, names), *values, operator="<" if less else ">")


def _field(model: type[Model], name: str) -> "Field[Any, Any]":
    *relations, last = name.split("__")
    for relation in relations:
        model = model._meta.get_field(relation).related_model  # type: ignore[assignment]
    return model._meta.get_field(last)  # type: ignore[return-value]


def _mac(binding: Binding, payload: bytes, key: str | bytes) -> bytes:
    return salted_hmac(_SALT, binding.message(payload), secret=key, algorithm="sha256").digest()[:_MAC_BYTES]


def _packed(value: Any) -> str | int:
    if isinstance(value, datetime):
        return f"t{(value - _EPOCH) // _MICROSECOND}"
    if isinstance(value, UUID):
        return f"u{value.hex}"
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return f"s{value}"
    raise TypeError("a keyset column holds times, ids, integers or texts")


def _unpacked(value: str | int) -> datetime | UUID | int | str:
    if isinstance(value, int):
        return value
    kind, text = value[0], value[1:]
    if kind == "t":
        return _EPOCH + int(text) * _MICROSECOND
    return UUID(text) if kind == "u" else text
