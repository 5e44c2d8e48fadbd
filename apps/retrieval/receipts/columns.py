"""Many receipts as columns, out of their arrays alone, and their replay in a few passes over all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from apps.core.db.sessions import current_principal
from apps.retrieval.candidates.run import session_cursor
from apps.retrieval.policy import FEATURES
from apps.retrieval.prme.rounding import round_scores
from apps.retrieval.scoring import RERANK, RERANK_KEEP, SESSION_DECAY

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]

SELECT: LiteralString = """
SELECT id, checksum, query_identity, scopes, contract, node_ids, scores, features, channels, weight_rows, weights,
  step_rows, step_kinds, step_values
FROM retrieval_receipt
WHERE principal_id = %s AND id = ANY(%s) AND formula = 'weighted' ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class ReceiptColumns:
    """r receipts of the weighted formula, by ascending id, with n candidates and m adjustments in all.

    scopes       of each receipt; None is all
    offsets      (r + 1,) candidates of receipt i are rows offsets[i]:offsets[i + 1]
    scores       (n,) as returned
    features     (n, 6) in the order of FEATURES
    channels     (n,) the tie-break after the score, descending; then the node id, ascending
    base, applied  (k, 6) weight vectors of all receipts
    weight_rows  (n,) which of them a candidate was scored with
    step_rows    (m,) candidate of each adjustment, ascending; those of one in the order of application
    """

    ids: tuple[UUID, ...]
    checksums: tuple[str, ...]
    query_identities: tuple[str, ...]
    scopes: tuple[tuple[str, ...] | None, ...]
    contracts: tuple[str, ...]
    offsets: Indexes
    node_ids: tuple[UUID, ...]
    scores: Floats
    features: Floats
    channels: Indexes
    base: Floats
    applied: Floats
    weight_rows: Indexes
    step_rows: Indexes
    step_kinds: tuple[str, ...]
    step_values: Floats

    def reranked(self) -> NDArray[np.bool_]:
        """(n,) rows that a reranker scored: they come first, by score and id alone."""
        found = np.zeros(len(self.scores), dtype=bool)
        steps = np.array([kind == RERANK for kind in self.step_kinds], dtype=bool)
        found[self.step_rows[steps]] = True
        return found

    def replayed(self) -> Floats:
        """(n,) every score again, equal to `score_of` to the last bit: the same operations in the same order."""
        weights = self.applied[self.weight_rows]
        scores = self.features[:, 0] * weights[:, 0]
        for index in range(1, len(FEATURES)):
            scores += self.features[:, index] * weights[:, index]
        inherited = np.zeros(len(scores), dtype=bool)
        for row, kind, value in zip(
            self.step_rows.tolist(), self.step_kinds, self.step_values.tolist(), strict=True
        ):
            if kind == SESSION_DECAY:
                scores[row] = round_scores(round_scores(scores[row : row + 1]) * value)[0]
                inherited[row] = True
            elif kind == RERANK_KEEP:
                scores[row] = round_scores(scores[row : row + 1])[0] * value
            elif kind == RERANK:
                scores[row] = round_scores(scores[row : row + 1] + value)[0]
                inherited[row] = True
            elif kind == "relevance_cap":
                scores[row] = min(scores[row], value)
            elif kind == "temporal_bonus":
                scores[row] += value
            else:
                scores[row] *= value
        return np.where(inherited, scores, round_scores(scores))


def load_columns(receipt_ids: Sequence[UUID]) -> ReceiptColumns:
    """The caller's receipts among these that the weighted formula scored; unknown and foreign ids are absent."""
    with connection.wrap_database_errors:
        cursor = session_cursor()
        owner = current_principal().principal_id
        rows = cursor.execute(SELECT, [owner, list(receipt_ids)], binary=True).fetchall()
    return columns_of(rows)


def columns_of(rows: Sequence[tuple[Any, ...]]) -> ReceiptColumns:
    """From rows of `SELECT`."""
    ids, checksums, identities, scopes, contracts, *parts = zip(*rows, strict=True) if rows else ((),) * 14
    nodes, scores, features, channels, weight_rows, weights, step_rows, kinds, values = parts
    sizes = np.array([len(each) for each in nodes], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    vectors = _flat(weights).reshape(-1, 3, len(FEATURES))
    vector_counts = [len(each) // (3 * len(FEATURES)) for each in weights]
    first_vector = np.concatenate([[0], np.cumsum(vector_counts)])[:-1].astype(np.int64)
    step_counts = [len(each) for each in step_rows]
    return ReceiptColumns(
        ids=tuple(ids),
        checksums=tuple(checksums),
        query_identities=tuple(identities),
        scopes=tuple(None if each is None else tuple(each) for each in scopes),
        contracts=tuple(contracts),
        offsets=offsets,
        node_ids=tuple(node for each in nodes for node in each),
        scores=_flat(scores),
        features=_flat(features).reshape(-1, len(FEATURES)),
        channels=_flat(channels).astype(np.int64),
        base=vectors[:, 0],
        applied=vectors[:, 2],
        weight_rows=_flat(weight_rows).astype(np.int64) + np.repeat(first_vector, sizes),
        step_rows=_flat(step_rows).astype(np.int64) + np.repeat(offsets[:-1], step_counts),
        step_kinds=tuple(kind for each in kinds for kind in each),
        step_values=_flat(values),
    )


def _flat(parts: Sequence[Sequence[float]]) -> Floats:
    return np.array([value for part in parts for value in part], dtype=np.float64)
