"""Native receipts as columns, read from the database in batches of arrays.

They are fitted from base features and base weights: a receipt made under an active profile is not multiplied twice.
What it returned is reproduced with the multipliers that were applied, before it is let in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import numpy as np
import numpy.typing as npt

from apps.learning.exceptions import NotReproducible, UnknownReference
from apps.learning.receipt_set import Formula, ReceiptSet
from apps.learning.scorer import FEATURES, IndexArray, WeightedScorer
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.receipts.columns import ReceiptColumns, load_columns

ABSENT = -1
_LABELS_AT_ONCE = 65_536
"""Labels that are looked up together: some 50 MiB of comparisons."""


@dataclass(frozen=True, slots=True)
class NativeReceiptSet(ReceiptSet):
    """Receipts of the platform; a request id is a receipt's id, `contracts` are scorer contracts.

    node_ids   (n, 2) both halves of each candidate's id, the higher first
    """

    node_ids: npt.NDArray[np.uint64]

    def receipt_indexes(self, receipt_ids: Sequence[UUID]) -> IndexArray:
        """Index of each receipt; ABSENT where it is not among these."""
        place = {request_id: index for index, request_id in enumerate(self.request_ids)}
        return np.array([place.get(str(one), ABSENT) for one in receipt_ids], dtype=np.int64)

    def candidate_rows(self, receipt_indexes: IndexArray, node_ids: Sequence[UUID]) -> IndexArray:
        """Row of each node in the pool of the receipt beside it; ABSENT where the receipt did not return it.

        Both arguments have one length; so has the answer.
        """
        nodes = halves_of(node_ids)
        rows = np.full(len(nodes), ABSENT, dtype=np.int64)
        for start in range(0, len(nodes), _LABELS_AT_ONCE):
            part = slice(start, start + _LABELS_AT_ONCE)
            rows[part] = self._rows(receipt_indexes[part], nodes[part])
        return rows

    def _rows(self, receipts: IndexArray, nodes: npt.NDArray[np.uint64]) -> IndexArray:
        """Every node against every candidate of its receipt, of which there are few."""
        first = self.offsets[receipts]
        sizes = np.where(receipts == ABSENT, 0, self.offsets[receipts + 1] - first)
        asked = np.repeat(np.arange(len(nodes)), sizes)
        within = np.arange(len(asked)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        candidates = first[asked] + within
        same = (self.node_ids[candidates] == nodes[asked]).all(axis=1)
        rows = np.full(len(nodes), ABSENT, dtype=np.int64)
        rows[asked[same]] = candidates[same]
        return rows


def load_receipt_set(receipt_ids: Iterable[UUID]) -> NativeReceiptSet:
    """The caller's receipts with these ids, in a session of the principal; some 150 bytes a candidate.

    Raises UnknownReference when one is not there, NotReproducible when one is not what was stored or does not
    give its own scores and order.
    """
    wanted = set(receipt_ids)
    try:
        columns = load_columns(list(wanted))
    except CorruptReceipt:
        raise NotReproducible("a stored receipt does not hold") from None
    if len(columns.ids) != len(wanted):
        raise UnknownReference("a receipt is not there any more")
    return receipt_set_of(columns)


def receipt_set_of(columns: ReceiptColumns) -> NativeReceiptSet:
    """The same receipts as learning has them; `columns` reproduce what was returned."""
    scorer = base_scorer(columns)
    return NativeReceiptSet(
        request_ids=tuple(map(str, columns.ids)),
        checksums=columns.checksums,
        query_identities=columns.query_identities,
        scopes=columns.scopes,
        formulas=cast(tuple[Formula, ...], columns.formulas),
        contracts=columns.contracts,
        offsets=columns.offsets,
        recorded=scorer.scores(np.ones(len(FEATURES))),
        tie_group=(~columns.reranked()).astype(np.int8),
        tie_path=columns.tie_path().astype(np.float64),
        id_rank=_ranks(columns),
        scorer=scorer,
        node_ids=columns.node_ids,
    )


def base_scorer(columns: ReceiptColumns) -> WeightedScorer:
    """The formula over base weights, each distinct vector once."""
    weights, place = np.unique(columns.base, axis=0, return_inverse=True)
    return WeightedScorer(
        features=columns.features,
        weights=weights,
        weight_row=place.reshape(-1)[columns.weight_rows],
        steps=columns.steps(),
    )


def halves_of(ids: Sequence[UUID]) -> npt.NDArray[np.uint64]:
    """(l, 2) both halves of each id, the higher first."""
    halves = np.frombuffer(b"".join(one.bytes for one in ids), ">u8")
    return halves.astype(np.uint64).reshape(-1, 2)


def _ranks(columns: ReceiptColumns) -> npt.NDArray[np.int32]:
    """(n,) rank of each node id in its pool."""
    owner = columns.receipt_of_row
    order = np.lexsort((columns.node_ids[:, 1], columns.node_ids[:, 0], owner))
    ranks = np.empty(len(owner), dtype=np.int32)
    ranks[order] = np.arange(len(owner)) - columns.offsets[owner]
    return ranks
