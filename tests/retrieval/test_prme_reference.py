"""Receipts that PRME wrote: verified, replayed to the last bit, and refused when one bit differs."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from apps.retrieval.prme import (
    ChecksumMismatch,
    InvalidReceipt,
    PrmeError,
    PrmeReceipt,
    ReplayMismatch,
    ReplayUnavailable,
    iter_label_records,
    iter_receipts,
    parse_receipt,
    read_receipt,
    replay,
)
from tests.support import judged_data
from tests.support.prme import dump

SETS = ("weighted-v2", "weighted-v12", "served", "holdout")


def receipts_of(name: str) -> Iterator[PrmeReceipt]:
    return iter_receipts(judged_data("prme") / name / "receipts.jsonl.gz")


@pytest.mark.parametrize("name", SETS)
def test_every_receipt_replays_exactly(name: str) -> None:
    for receipt in receipts_of(name):
        if receipt.document.schema_version == 1:
            continue
        recomputed = replay(receipt.document)
        assert recomputed.scores == {c.node_id: c.score for c in receipt.document.candidates}
        assert recomputed.order == tuple(c.node_id for c in receipt.document.candidates)


def test_what_occurs_in_the_collection() -> None:
    versions = Counter(r.document.schema_version for name in SETS for r in receipts_of(name))
    assert versions == {2: 100, 12: 152, 1: 2, 16: 3, 22: 68, 20: 2}


@pytest.mark.parametrize("name", ["weighted-v2", "weighted-v12"])
def test_labels_name_receipts_by_the_checksum_of_their_bytes(name: str) -> None:
    checksums = {r.document.request_id: r.checksum for r in receipts_of(name)}
    records = list(iter_label_records(judged_data("prme") / name / "records.jsonl.gz"))
    assert records
    assert all(checksums[record.request_id] == record.receipt_checksum for record in records)


def test_version_1_refuses_replay_explicitly() -> None:
    legacy = [r for r in receipts_of("weighted-v12") if r.document.schema_version == 1]
    assert len(legacy) == 2
    for receipt in legacy:
        assert not receipt.can_replay
        with pytest.raises(ReplayUnavailable):
            replay(receipt.document)


def first_documents() -> list[dict[str, Any]]:
    """A receipt of each version and formula."""
    chosen: dict[tuple[int, bool], dict[str, Any]] = {}
    for name in SETS:
        for receipt in receipts_of(name):
            if receipt.can_replay:
                key = (receipt.document.schema_version, receipt.document.is_rank_fused)
                chosen.setdefault(key, json.loads(receipt.raw))
    return list(chosen.values())


def spoiled(document: dict[str, Any]) -> Iterator[tuple[type[PrmeError], dict[str, Any]]]:
    """The document with one thing wrong, and how it is refused."""

    def changed() -> dict[str, Any]:
        copy: dict[str, Any] = json.loads(json.dumps(document))
        return copy

    for index, candidate in enumerate(document["candidates"]):
        copy = changed()
        copy["candidates"][index]["score"] += 1e-12
        yield ReplayMismatch, copy
        copy = changed()
        copy["score_provenance"][candidate["node_id"]]["trace"]["composite_score"] += 1e-12
        yield PrmeError, copy
    for index in range(len(document["candidates"]) - 1):
        copy = changed()
        pair = copy["candidates"][index : index + 2]
        copy["candidates"][index : index + 2] = reversed(pair)
        yield ReplayMismatch, copy
    copy = changed()
    copy["candidates"].append(copy["candidates"][0])
    yield InvalidReceipt, copy


def test_a_changed_score_a_swapped_pair_and_a_duplicate_are_refused() -> None:
    documents = first_documents()
    assert len(documents) == 6
    for document in documents:
        for error, copy in spoiled(document):
            with pytest.raises(error):
                read_receipt(dump(copy))


def every_object(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from every_object(member)
    elif isinstance(value, list):
        for member in value:
            yield from every_object(member)


def test_an_unknown_key_is_refused_in_every_object_but_the_free_form_ones() -> None:
    for original in first_documents():
        text = json.dumps(original)
        count = len(list(every_object(json.loads(text))))
        for position in range(count):
            document = json.loads(text)
            target = list(every_object(document))[position]
            free = [
                *every_object(document.get("execution", {}).get("parameters")),
                *every_object(document.get("execution", {}).get("features")),
                *(scoring["node_type_boost"] for scoring in scorings(document)),
            ]
            if any(target is other for other in free):
                continue
            target["surprise"] = 1
            with pytest.raises(PrmeError):
                read_receipt(dump(document))


def scorings(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document["scoring"]
    for provenance in document["score_provenance"].values():
        yield provenance["weights"]


def test_non_finite_numbers_are_refused_anywhere() -> None:
    document = first_documents()[1]
    for number in (math.nan, math.inf, -math.inf):
        for target in ("candidates", "scoring", "execution"):
            copy = json.loads(json.dumps(document))
            if target == "candidates":
                copy["candidates"][0]["score"] = number
            elif target == "scoring":
                copy["scoring"]["node_type_boost"]["fact"] = number
            else:
                copy["execution"]["features"]["deep"] = {"list": [number]}
            with pytest.raises(InvalidReceipt):
                read_receipt(dump(copy))
            with pytest.raises(InvalidReceipt):
                read_receipt(dump(copy).replace(b"NaN", b"1e999").replace(b"Infinity", b"1e999"))


def test_duplicate_keys_are_refused() -> None:
    raw = dump(first_documents()[0])
    with pytest.raises(InvalidReceipt):
        read_receipt(raw.replace(b'{"schema_version"', b'{"schema_version":2,"schema_version"', 1))


def test_a_wrong_checksum_is_refused() -> None:
    lines = gzip.decompress((judged_data("prme") / "served" / "receipts.jsonl.gz").read_bytes()).splitlines()
    stored = json.loads(lines[0])
    raw = stored["receipt"].encode()
    assert read_receipt(raw, expected_checksum=stored["checksum"]).checksum == stored["checksum"]
    with pytest.raises(ChecksumMismatch):
        read_receipt(raw, expected_checksum="0" * 64)
    with pytest.raises(ChecksumMismatch):
        read_receipt(raw + b" ", expected_checksum=stored["checksum"])


def test_errors_do_not_repeat_what_a_receipt_holds() -> None:
    document = first_documents()[0] | {"query": "a very private question\0"}
    with pytest.raises(InvalidReceipt) as refused:
        parse_receipt(dump(document))
    assert "private" not in str(refused.value)
    assert refused.value.pointer == "/query"
