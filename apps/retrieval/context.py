"""From found rows to a context, and the context of a stored receipt again, from the texts as they are now."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from apps.core.db.cursors import session_cursor
from apps.retrieval.exceptions import ContextChanged
from apps.retrieval.packing import (
    PACKING,
    TIERS,
    Entry,
    PackedContext,
    Packing,
    Source,
    context_hash,
    pack,
    render,
)
from apps.retrieval.packing.installed import tokenizer
from apps.retrieval.packing.sources import place_of
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.schemas import Row


def packed(rows: Sequence[Row], options: Packing) -> PackedContext:
    """The context of the rows of a retrieval, out of their stored texts. Raises Unavailable (no tokenizer)."""
    return pack([_source(row) for row in rows], options, tokenizer())


def _source(row: Row) -> Source:
    given = row.provenance
    return Source(
        node_id=row.node_id,
        title=row.title,
        text=row.content,
        place=place_of(given.repo, given.identity, row.path, given.part),
        kind=row.kind,
        type=given.type or row.subkind or "",
        epistemic=row.epistemic,
        score=row.score,
        at=row.event_at or row.updated_at,
        channels=row.path_score,
        pinned=row.pinned,
        standing=row.standing,
    )


@dataclass(frozen=True, slots=True)
class PresentContext:
    """The context of a receipt, rendered again: byte for byte what was packed."""

    entries: tuple[Entry, ...]
    options: Packing
    text: str
    sha256: str

    def without(self, node_ids: Sequence[UUID]) -> str:
        """The text with exactly these entries taken out; all other bytes stay, the numbers of entries too."""
        removed = set(node_ids)
        return render(self.entries, self.options, leave_out=removed)


def present_context(receipt: ReceiptDocument) -> PresentContext:
    """The context that a receipt names, from the texts of its nodes now, in the session of its principal.

    Raises ContextChanged where they no longer give its hash: a text was edited or is gone, or another version of
    packing made it. The receipt has a context.
    """
    assert receipt.packing is not None
    if receipt.policy.packing != PACKING:
        raise ContextChanged("It was packed by another version")
    options = _options(receipt)
    candidates = [receipt.candidates[index] for index in receipt.packing.order]
    present = _present([UUID(candidate.node_id) for candidate in candidates])
    tiers = [tier for tier, count in zip(TIERS, receipt.packing.tiers, strict=True) for _ in range(count)]
    entries = []
    for candidate, tier in zip(candidates, tiers, strict=True):
        node = present.get(UUID(candidate.node_id))
        if node is None:
            raise ContextChanged("A source of it is no longer there")
        entries.append(Entry(node.source(candidate.score), tier, candidate.representation))
    text = render(entries, options)
    if context_hash(text) != receipt.context_sha256:
        raise ContextChanged("The sources have other words now")
    return PresentContext(tuple(entries), options, text, context_hash(text))


def _options(receipt: ReceiptDocument) -> Packing:
    given = receipt.packing
    assert given is not None
    return Packing(
        token_budget=given.token_budget,
        reference_time=receipt.request.reference_time,
        ordering=given.ordering,
        format=given.format,
        guidance=given.guidance,
        min_fidelity=given.min_fidelity,
    )


_PRESENT = """
SELECT n.id, n.kind, n.subkind, n.epistemic, n.label, n.body, n.event_at, n.updated_at, p.repo, p.type,
       p.identity::text, p.part, p.path
FROM graph_node n LEFT JOIN graph_passage p ON p.node_id = n.id WHERE n.id = ANY(%(ids)s)
"""


class _Present(NamedTuple):
    """A node as it is now, archived or not."""

    id: UUID
    kind: str
    subkind: str
    epistemic: str
    label: str
    body: str
    event_at: datetime | None
    updated_at: datetime
    repo: str | None
    type: str | None
    identity: str | None
    part: int | None
    path: str | None

    def source(self, score: float) -> Source:
        identity: Any = json.loads(self.identity) if self.identity is not None else None
        return Source(
            node_id=self.id,
            title=self.label,
            text=self.body,
            place=place_of(self.repo, identity, self.path, self.part),
            kind=self.kind,
            type=self.type or self.subkind,
            epistemic=self.epistemic,
            score=score,
            at=self.event_at or self.updated_at,
        )


def _present(node_ids: Sequence[UUID]) -> dict[UUID, _Present]:
    if not node_ids:
        return {}
    cursor = session_cursor()
    cursor.execute(_PRESENT, {"ids": list(node_ids)})
    return {row[0]: _Present(*row) for row in cursor.fetchall()}
