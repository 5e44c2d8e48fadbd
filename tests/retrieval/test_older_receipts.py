"""Receipts that an older schema wrote: verified, replayed, loaded as they were, and refused a later claim."""

import hashlib
import json
from pathlib import Path

import pytest

from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.replay import read, replay, verified
from apps.retrieval.receipts.writing import dumps

STORED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "receipts_of_schema_1.jsonl").read_text().splitlines()
]
"""As they lay in the database: weighted, with multipliers, rank fusion, other constants, without rows."""


@pytest.mark.parametrize("stored", STORED, ids=range(len(STORED)))
def test_a_receipt_of_schema_1_verifies_replays_and_agrees_with_its_arrays(stored) -> None:
    receipt = verified(stored["document"].encode(), stored["checksum"])
    assert receipt.schema_version == 1
    assert replay(receipt).scores == tuple(stored["arrays"]["scores"])
    said = arrays_of(receipt.model_dump(include={"schema_version", "candidates", "weights"}))
    for name, values in stored["arrays"].items():
        kept = [str(each) for each in getattr(said, name)] if name == "node_ids" else getattr(said, name)
        assert kept == values, name


@pytest.mark.parametrize(
    "claim",
    [
        lambda d: d["candidates"][0].update(hops=1, graph_rank=1),
        lambda d: d["candidates"][0].update(pinned_rank=1),
        lambda d: d["candidates"][0].update(
            adjustments=[
                {"kind": "rerank_keep", "coefficient": 1},
                {"kind": "rerank", "coefficient": 0},
            ]
        ),
        lambda d: d["request"].update(include_cross_scope=True),
        lambda d: d["features"].update(contract="native-2"),
        lambda d: d.update(schema_version=3),
    ],
    ids=["graph", "pinned", "reranked", "hints", "contract", "schema"],
)
def test_what_its_schema_has_not_is_refused(claim) -> None:
    document = json.loads(STORED[0]["document"])
    read(*signed(document))
    claim(document)
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


def test_rank_fusion_of_schema_1_has_two_weights_and_of_schema_2_four() -> None:
    document = json.loads(STORED[2]["document"])
    assert document["policy"]["formula"] == "rank_fusion"
    assert len(document["weights"][0]["base"]) == 2
    document["schema_version"] = 2
    with pytest.raises(CorruptReceipt):
        read(*signed(document))
    for vector in document["weights"]:
        for values in vector.values():
            values += [1, 1]
    assert replay(read(*signed(document))).exact


def signed(document):
    written = dumps(document)
    return written, hashlib.sha256(written).hexdigest()
