"""The fold: which labels are in force. One selector, used by evaluations, counts and pages alike.

A label is in force when no withdrawal and no superseding record names it, and it is the latest such label of its
annotator for that receipt, node and surface. A superseded label stays so when its successor is withdrawn. Labels
of two annotators are both in force; whether they conflict is the gate policy's to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg.adapt import Loader
from psycopg.pq import Format

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal


@dataclass(frozen=True, slots=True)
class FoldedLabels:
    """l labels in force of m records, by ascending record id, those of one by their place in the receipt.

    record_ids    (l,) feedback id of the record that a label is of
    annotators    (l,) who said so; `principal` is the owner itself
    receipt_ids   (l,)
    node_ids      (l,)
    positions     (l,) index of the node among the receipt's candidates; so a label is row offset + position
    surfaces      (l,) `results` or `context`
    values        (l,) relevant or not
    grades        (l,) 0..4, or -1
    admitted_at   (l,) when the record was admitted
    offsets       (m + 1,) labels of record i are rows offsets[i]:offsets[i + 1]
    """

    record_ids: tuple[UUID, ...]
    annotators: tuple[str, ...]
    receipt_ids: tuple[UUID, ...]
    node_ids: tuple[UUID, ...]
    positions: NDArray[np.int16]
    surfaces: tuple[str, ...]
    values: NDArray[np.bool_]
    grades: NDArray[np.int8]
    admitted_at: tuple[datetime, ...]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.record_ids)


# Where a receipt has one record alone, all its labels are in force as they stand; only the others are compared
# label by label, so that the usual hundred thousand receipts cost no sort of their labels.
FOLD: LiteralString = """
WITH records AS NOT MATERIALIZED (
  SELECT feedback_id, annotator, receipt_id, surface, admitted_at, corrects, kind, node_ids, positions, relevant,
    grades
  FROM feedback_judgment
  WHERE principal_id = %(owner)s
    AND (%(until)s::timestamptz IS NULL OR admitted_at <= %(until)s)
    AND (%(receipts)s::uuid[] IS NULL OR receipt_id = ANY (%(receipts)s))
    AND (%(surface)s::text IS NULL OR surface = %(surface)s)
), several AS MATERIALIZED (
  SELECT receipt_id FROM records GROUP BY receipt_id HAVING count(*) > 1
), alone AS (
  SELECT r.feedback_id, r.annotator, r.receipt_id, r.surface, r.admitted_at,
    r.node_ids, r.positions, r.relevant, r.grades
  FROM records r LEFT JOIN several s ON s.receipt_id = r.receipt_id
  WHERE s.receipt_id IS NULL AND r.kind = 'labels'
), entries AS MATERIALIZED (
  SELECT r.feedback_id, r.annotator, r.receipt_id, r.surface, r.admitted_at, r.corrects, r.kind,
    e.node_id, e.position, e.relevant, e.grade
  FROM records r JOIN several s ON s.receipt_id = r.receipt_id
  CROSS JOIN LATERAL unnest(r.node_ids, r.positions, r.relevant, r.grades)
    AS e (node_id, position, relevant, grade)
), standing AS (
  SELECT DISTINCT ON (e.receipt_id, e.annotator, e.surface, e.position) e.*
  FROM entries e
  WHERE e.kind = 'labels' AND NOT EXISTS (
    SELECT FROM entries c WHERE c.corrects = e.feedback_id AND c.position = e.position)
  ORDER BY e.receipt_id, e.annotator, e.surface, e.position, e.admitted_at DESC
)
SELECT feedback_id, annotator, receipt_id, surface, admitted_at, node_ids, positions, relevant, grades FROM alone
UNION ALL
SELECT feedback_id, annotator, receipt_id, surface, admitted_at, array_agg(node_id ORDER BY position),
  array_agg(position ORDER BY position), array_agg(relevant ORDER BY position),
  array_agg(grade ORDER BY position)
FROM standing GROUP BY feedback_id, annotator, receipt_id, surface, admitted_at
ORDER BY feedback_id
"""


def folded_labels(
    *,
    until: datetime | None = None,
    receipt_ids: Sequence[UUID] | None = None,
    surface: str | None = None,
) -> FoldedLabels:
    """The caller's labels in force, one statement; in a principal session.

    `until`: as of that time; records admitted later are not known, corrections among them. A record takes its
    time under the principal's lock (`core.db.locks.lock_principal`): who holds it while it takes the time of a
    cut has no record still to come into that cut.
    """
    owner = current_principal().principal_id
    return _folded(owner, until, None if receipt_ids is None else list(receipt_ids), surface)


def folded_labels_of(*, principal_id: UUID, receipt_ids: Sequence[UUID]) -> FoldedLabels:
    """The labels in force on receipts of a principal, as the session sees them: for staff, who see those of many."""
    return _folded(principal_id, None, list(receipt_ids), None)


def _folded(
    owner: UUID, until: datetime | None, receipts: list[UUID] | None, surface: str | None
) -> FoldedLabels:
    asked = {"owner": owner, "until": until, "receipts": receipts, "surface": surface}
    with connection.wrap_database_errors:
        cursor = session_cursor()
        for name in ("uuid", "int2", "bool"):
            cursor.adapters.register_loader(cursor.adapters.types[name].array_oid, _ArrayBytes)
        rows = cursor.execute(FOLD, asked, binary=True).fetchall()
    return _columns(rows)


class _ArrayBytes(Loader):
    """An array as it travels, for `_flat`: an object for each element would cost more than the whole fold."""

    format = Format.BINARY

    def load(self, data: Any) -> bytes:
        return bytes(data)


ARRAY_HEAD = 20
"""Bytes before the elements of an array of one dimension: its shape and type. Each element has its size first."""
NODE_BYTES = 20
"""Of an id in an array: its size, and sixteen."""


def _flat(parts: Sequence[bytes], kind: str) -> NDArray[Any]:
    """The elements of many arrays, none of them empty or holding nulls, in one column."""
    elements = b"".join([part[ARRAY_HEAD:] for part in parts])
    values: NDArray[Any] = np.frombuffer(elements, dtype=[("size", ">i4"), ("value", kind)])["value"]
    return values


def _columns(rows: Sequence[tuple[Any, ...]]) -> FoldedLabels:
    ids, annotators, receipts, surfaces, times, *arrays = zip(*rows, strict=True) if rows else ((),) * 9
    nodes, positions, values, grades = arrays
    sizes = np.array([(len(each) - ARRAY_HEAD) // NODE_BYTES for each in nodes], dtype=np.int64)
    owner = np.repeat(np.arange(len(rows)), sizes).tolist()
    named = _flat(nodes, "V16").tolist()
    known = {name: UUID(bytes=name) for name in set(named)}
    return FoldedLabels(
        record_ids=tuple([ids[row] for row in owner]),
        annotators=tuple([annotators[row] for row in owner]),
        receipt_ids=tuple([receipts[row] for row in owner]),
        node_ids=tuple([known[name] for name in named]),
        positions=_flat(positions, ">i2").astype(np.int16),
        surfaces=tuple([surfaces[row] for row in owner]),
        values=_flat(values, "?").copy(),
        grades=_flat(grades, ">i2").astype(np.int8),
        admitted_at=tuple([times[row] for row in owner]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )
