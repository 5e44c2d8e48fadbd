"""Choosing what enters a context: tier by tier, in the order asked for, whole or as a reference, while it fits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.core.text import render_json

from .options import MAX_BYTES, PACKING, TIERS, Packing, Reason, Representation, Tier
from .render import CLOSED, Entry, assembled, context_hash, head, numbered, written
from .sources import Source
from .tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class PackedEntry:
    """An entry of a context. token_cost: of its rendered lines, counted by themselves."""

    node_id: UUID
    tier: Tier
    representation: Representation
    token_cost: int
    has_content: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A source that is not in the context.

    `token_budget`, `byte_budget`: not even a reference fitted (or would be allowed); `min_fidelity`: only a
    reference fitted, and the caller wants none.
    """

    node_id: UUID
    reason: Reason


@dataclass(frozen=True, slots=True)
class PackedContext:
    """A context: its text, what is in it in the order of the text, and what is not.

    used_tokens: of the whole text, at most the budget. sha256: of its UTF-8 bytes.
    """

    options: Packing
    tokenizer: str
    text: str
    sha256: str
    used_tokens: int
    entries: tuple[PackedEntry, ...]
    left_out: tuple[LeftOut, ...]
    version: str = PACKING


@dataclass(frozen=True, slots=True)
class _Admitted:
    entry: Entry
    text: str
    cost: int
    size: int


def pack(sources: Sequence[Source], options: Packing, tokenizer: Tokenizer) -> PackedContext:
    """The context of these sources. The same sources, in any order, and options give the same bytes."""
    packer = _Packer(options, tokenizer)
    for offered in _ranked(sources, options, tokenizer):
        packer.offer(offered)
    return packer.packed()


@dataclass(frozen=True, slots=True)
class _Offered:
    """A source, and how it is written whole."""

    source: Source
    whole: str


def _ranked(sources: Sequence[Source], options: Packing, tokenizer: Tokenizer) -> list[_Offered]:
    """Sources as they are offered: by tier, then as the ordering says, then by score, channels and id.

    `score` takes the best first; `density` the best a token; `balanced` the best a square root of tokens, which lets
    a long source stand before a short one only where it is clearly better.
    """

    def key(offered: _Offered) -> tuple[int, float, float, int, int]:
        source, worth = offered.source, offered.source.score
        if options.ordering != "score":
            cost = max(1, tokenizer.count(offered.whole))
            worth /= cost if options.ordering == "density" else math.sqrt(cost)
        return (TIERS.index(source.tier), -worth, -source.score, -source.channels, source.node_id.int)

    offers = [_Offered(each, written(Entry(each, each.tier, "full"), options)) for each in sources]
    return sorted(offers, key=key)


class _Packer:
    """What has been admitted so far."""

    def __init__(self, options: Packing, tokenizer: Tokenizer) -> None:
        self.options, self.tokenizer = options, tokenizer
        self.admitted: list[_Admitted] = []
        self.left_out: list[LeftOut] = []
        frame = head(options) + CLOSED
        self.tokens, self.bytes = tokenizer.count(frame), len(render_json(frame))

    def offer(self, offered: _Offered) -> None:
        source = offered.source
        whole = self._fits(Entry(source, source.tier, "full"), offered.whole)
        if isinstance(whole, _Admitted):
            self._admit(whole)
            return
        reference = Entry(source, source.tier, "reference")
        found = self._fits(reference, written(reference, self.options))
        if not isinstance(found, _Admitted):
            self.left_out.append(LeftOut(source.node_id, found))
        elif self.options.min_fidelity == "full":
            self.left_out.append(LeftOut(source.node_id, "min_fidelity"))
        else:
            self._admit(found)

    def _fits(self, entry: Entry, text: str) -> "_Admitted | Reason":
        text = numbered(len(self.admitted) + 1, text)
        size = _bytes(text)
        if self.bytes + size > MAX_BYTES:
            return "byte_budget"
        cost = self.tokenizer.count(text)
        if self.tokens + cost > self.options.token_budget:
            return "token_budget"
        return _Admitted(entry, text, cost, size)

    def _admit(self, admitted: _Admitted) -> None:
        self.admitted.append(admitted)
        self.tokens += admitted.cost
        self.bytes += admitted.size

    def packed(self) -> PackedContext:
        """The text, counted as a whole. A tokenizer need not add up, so the last ones go while it is too much."""
        text, used = self._whole()
        while used > self.options.token_budget:
            dropped = self.admitted.pop()
            self.left_out.insert(0, LeftOut(dropped.entry.source.node_id, "token_budget"))
            text, used = self._whole()
        return PackedContext(
            options=self.options,
            tokenizer=self.tokenizer.name,
            text=text,
            sha256=context_hash(text),
            used_tokens=used,
            entries=tuple(_packed(one) for one in self.admitted),
            left_out=tuple(self.left_out),
        )

    def _whole(self) -> tuple[str, int]:
        if not self.admitted:
            return "", 0
        text = assembled([one.text for one in self.admitted], self.options)
        return text, self.tokenizer.count(text)


def _packed(one: _Admitted) -> PackedEntry:
    entry = one.entry
    return PackedEntry(entry.source.node_id, entry.tier, entry.representation, one.cost, entry.has_content)


def _bytes(text: str) -> int:
    return len(render_json(text)) - 2  # without the quotation marks
