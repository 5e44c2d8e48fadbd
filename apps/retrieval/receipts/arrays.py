"""The numbers of a receipt as flat arrays, stored beside the document so that thousands load without parsing.

For n candidates, k weight vectors of p names and m adjustments:

node_ids      (n,)    candidates in their order
scores        (n,)    as returned
features      (n·6,)  row by row, in the order of `policy.FEATURES`
raw           (n·r,)  bm25, cosine, lexical rank, semantic rank, and from schema 2 on hops, graph rank, pinned rank
                      (r = 4, then 7); null where a channel did not return the row
channels      (n,)    channels that returned the row: the tie-break after the score
weight_rows   (n,)    which vector a candidate was scored with
weights       (k·3·p,) base, multipliers, applied of each vector
step_rows     (m,)    candidate of each adjustment, ascending; those of one are in the order of application
step_kinds    (m,)    its kind
step_values   (m,)    its coefficient
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

LATER_RAW = ("hops", "graph_rank", "pinned_rank")
"""Raw values that schema 2 added, members of a candidate that are left out where a channel did not return it."""


@dataclass(frozen=True, slots=True)
class ReceiptArrays:
    """The arrays of one receipt, as the module says."""

    node_ids: list[UUID]
    scores: list[float]
    features: list[float]
    raw: list[float | None]
    channels: list[int]
    weight_rows: list[int]
    weights: list[float]
    step_rows: list[int]
    step_kinds: list[str]
    step_values: list[float]


def arrays_of(document: Mapping[str, Any]) -> ReceiptArrays:
    """The arrays of a document of JSON types."""
    candidates = document["candidates"]
    later = LATER_RAW if document["schema_version"] > 1 else ()
    steps = [(row, step) for row, each in enumerate(candidates) for step in each.get("adjustments", ())]
    return ReceiptArrays(
        node_ids=[UUID(each["node_id"]) for each in candidates],
        scores=[float(each["score"]) for each in candidates],
        features=[float(value) for each in candidates for value in each["features"]],
        raw=[
            None if value is None else float(value)
            for each in candidates
            for value in (*each["raw"], *(each.get(name) for name in later))
        ],
        channels=[each["channels"] for each in candidates],
        weight_rows=[each.get("weights", 0) for each in candidates],
        weights=[
            float(value)
            for vector in document["weights"]
            for name in ("base", "multipliers", "applied")
            for value in vector[name]
        ],
        step_rows=[row for row, _ in steps],
        step_kinds=[step["kind"] for _, step in steps],
        step_values=[float(step["coefficient"]) for _, step in steps],
    )
