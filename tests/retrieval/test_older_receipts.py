"""Receipts that an older schema wrote: verified, replayed, loaded as they were, and refused a later claim."""

import hashlib
import json
from pathlib import Path

import pytest

from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.replay import read, replay, verified
from apps.retrieval.receipts.writing import dumps

DATA = Path(__file__).parent / "data"
SHORT = "A" * 43


def stored_under(schema):
    return [
        json.loads(line) for line in (DATA / f"receipts_of_schema_{schema}.jsonl").read_text().splitlines()
    ]


STORED = stored_under(1)
"""As they lay in the database: weighted, with multipliers, rank fusion, other constants, without rows."""
LATER = stored_under(2)
"""The same of schema 2: weighted, with multipliers and a context, rank fusion, inherited scores, without rows."""


@pytest.mark.parametrize(
    ("schema", "stored"), [(1, each) for each in STORED] + [(2, each) for each in LATER], ids=range(10)
)
def test_a_receipt_of_an_older_schema_verifies_replays_and_agrees_with_its_arrays(schema, stored) -> None:
    receipt = verified(stored["document"].encode(), stored["checksum"])
    assert receipt.schema_version == schema
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
        lambda d: d.update(schema_version=4),
    ],
    ids=["graph", "pinned", "reranked", "hints", "contract", "schema"],
)
def test_what_its_schema_has_not_is_refused(claim) -> None:
    document = json.loads(STORED[0]["document"])
    read(*signed(document))
    claim(document)
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


def test_an_entry_of_a_context_of_schema_2_says_so_and_is_one_as_in_schema_3() -> None:
    receipt = read(LATER[1]["document"].encode(), LATER[1]["checksum"])
    assert [c.in_context for c in receipt.candidates] == [c.in_context_stated for c in receipt.candidates]
    assert any(c.in_context for c in receipt.candidates)


@pytest.mark.parametrize(
    "claim",
    [
        lambda c: c.update(content_hash=SHORT),
        lambda c: c.pop("in_context"),
        lambda c: c.update(in_context=False),
        lambda c: c.pop("token_cost"),
    ],
    ids=["hash", "not said", "denied", "no cost"],
)
def test_schema_2_says_it_in_its_own_way(claim) -> None:
    document = json.loads(LATER[1]["document"])
    read(*signed(document))
    claim(document["candidates"][0])
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


@pytest.mark.parametrize(
    "claim",
    [
        {"in_context": True},
        {"in_context": False},
        {"content_hash": "0" * 64},
        {"content_hash": SHORT + "="},
        {"content_hash": SHORT[:-1]},
        {"content_hash": SHORT[:-1] + "+"},
    ],
)
def test_schema_3_says_it_in_no_other_way(claim) -> None:
    document = json.loads(LATER[0]["document"]) | {"schema_version": 3}
    for candidate in document["candidates"]:
        candidate["content_hash"] = SHORT
    assert read(*signed(document)).candidates[0].content_digest == bytes(32)
    document["candidates"][0] |= claim
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
