"""Receipts: exact on the day, exact for ever, and refused when a bit of them is another."""

import hashlib
import json
import math
import random
from uuid import UUID

import pytest
from django.db import connection

from apps.core import canonical
from apps.core.db.sessions import principal_session
from apps.graph.services import PassageItem
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.models import Receipt
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.document import content_digest
from apps.retrieval.receipts.replay import read, replay, verified
from apps.retrieval.receipts.writing import dumps
from apps.retrieval.selectors import stored_receipt
from tests.support import memory
from tests.support.factories import make_world
from tests.support.receipts import keep

pytestmark = pytest.mark.django_db

TEXTS = [f"harbour crane {'inspection ' * n}report {n}" for n in range(1, 9)]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def stored(principal, receipt_id):
    with principal_session(principal):
        return stored_receipt(receipt_id)


@pytest.fixture
def document(me):
    """A kept document, as JSON."""
    memory.store(me, *TEXTS)
    _, receipt_id = keep(me)
    return json.loads(stored(me, receipt_id).document)


def signed(document):
    """Bytes and checksum, as if somebody had rewritten both."""
    written = dumps(document)
    return written, hashlib.sha256(written).hexdigest()


def test_a_receipt_says_what_was_asked_and_gives_the_rows_that_were_returned(me) -> None:
    memory.store(me, *TEXTS)
    found, receipt_id = keep(me, limit=5, scopes=("default", "a"))
    receipt = stored(me, receipt_id).receipt
    assert [UUID(c.node_id) for c in receipt.candidates] == [row.node_id for row in found.rows]
    assert replay(receipt).scores == tuple(row.score for row in found.rows)
    assert receipt.request.scopes == ("a", "default")
    assert receipt.omitted == found.scored - len(found.rows)
    assert receipt.corpus.digest == found.corpus_digest
    assert (receipt.policy.sha256, receipt.policy.id) == (found.policy.sha256, str(found.policy.id))


def test_words_are_kept_nowhere_but_under_a_key(me) -> None:
    memory.store(me, *TEXTS)
    _, receipt_id = keep(me)
    shown = stored(me, receipt_id).document.decode()
    assert "harbour" not in shown
    assert "inspection" not in shown
    key = owner_key(me)
    assert content_digest("title", "text", key) != content_digest("title", "text", b"another key")
    assert content_digest("title", "text", key) != hashlib.sha256(b"title\ntext").hexdigest()


def owner_key(principal):
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute("SELECT hash_key FROM accounts_principal WHERE id = %s", [principal.principal_id])
        return bytes(cursor.fetchone()[0])


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"formula": "rank_fusion", "fusion_k": 7},
        {"relevance_floor": 1.9, "kinds": {"passage": 0.7}},
        {"epistemic": {"observed": 0.9, "asserted": 0.8}},
    ],
    ids=["default", "fusion", "floor and kind", "standing"],
)
@pytest.mark.parametrize("multipliers", [None, 1.0, 3.7], ids=["none", "unity", "override"])
def test_replay_is_exact_under_every_policy_and_multiplier(me, policy, multipliers) -> None:
    memory.store(me, *TEXTS)
    ruling = unstored(ScoringPolicy.model_validate(policy)) if policy else None
    given = {"lexical": multipliers} if multipliers else None
    _, receipt_id = keep(me, policy=ruling, multipliers=given)
    receipt = stored(me, receipt_id).receipt
    assert receipt.candidates
    if multipliers != 3.7:
        assert receipt.weights[0].applied == receipt.weights[0].base


def test_inherited_scores_replay_from_the_features_of_their_source(me) -> None:
    turns = [
        PassageItem(
            identity=f"t{n}", text="harbour crane" if n == 3 else f"and then {n}", session="s", position=n
        )
        for n in range(6)
    ]
    memory.store(me, *turns)
    _, receipt_id = keep(me, query="harbour")
    receipt = stored(me, receipt_id).receipt
    inherited = [c for c in receipt.candidates if any(a.kind == "session_decay" for a in c.adjustments)]
    assert len(inherited) == 4
    first = receipt.candidates[0]
    assert {c.adjustments[-1].source for c in inherited} == {first.node_id}
    assert {c.features for c in inherited} == {first.features}


# What is refused.


def test_a_score_off_by_a_trillionth_is_refused(document) -> None:
    for index in range(len(document["candidates"])):
        changed = json.loads(json.dumps(document))
        changed["candidates"][index]["score"] += 1e-12
        with pytest.raises(CorruptReceipt):
            verified(*signed(changed))
    verified(*signed(document))


def test_a_swapped_pair_is_refused(document) -> None:
    rows = document["candidates"]
    assert rows[0]["score"] != rows[1]["score"]
    rows[0], rows[1] = rows[1], rows[0]
    with pytest.raises(CorruptReceipt):
        verified(*signed(document))
    found = replay(read(*signed(document)))
    assert (found.order_equal, found.drifts) == (False, ())


def test_a_changed_feature_weight_or_multiplier_is_refused(document) -> None:
    for change in (
        lambda d: d["candidates"][0]["features"].__setitem__(3, 0.123),
        lambda d: d["weights"][0]["applied"].__setitem__(0, 0.37),
        lambda d: d["weights"][0]["multipliers"].__setitem__(0, 2),
        lambda d: d["weights"][0]["base"].__setitem__(0, 0.37),
    ):
        changed = json.loads(json.dumps(document))
        change(changed)
        with pytest.raises(CorruptReceipt):
            verified(*signed(changed))


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("request",),
        ("request", "query"),
        ("policy",),
        ("features",),
        ("corpus",),
        ("weights", 0),
        ("candidates", 0),
        ("channels", 0),
        ("explain",),
    ],
    ids=str,
)
def test_an_unknown_key_is_refused_at_every_depth(document, path) -> None:
    place = document
    for step in path:
        place = place[step]
    place["surprise"] = 1
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


def test_a_duplicate_candidate_and_one_without_weights_are_refused(document) -> None:
    doubled = document | {"candidates": [*document["candidates"], document["candidates"][-1]]}
    with pytest.raises(CorruptReceipt):
        read(*signed(doubled))
    document["candidates"][0]["weights"] = 1
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", '"0.5"', "true", "1.5"])
def test_numbers_that_are_none_are_refused(document, number) -> None:
    document["candidates"][0]["features"][0] = "HERE"
    written = dumps(document).replace(b'"HERE"', number.encode())
    with pytest.raises(CorruptReceipt):
        read(written, hashlib.sha256(written).hexdigest())


def test_a_receipt_of_an_unknown_contract_is_refused(document) -> None:
    document["features"]["contract"] = "native-99"
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


def test_other_bytes_than_the_checksums_are_refused(document) -> None:
    written, checksum = signed(document)
    read(written, checksum)
    with pytest.raises(CorruptReceipt):
        read(written + b" ", checksum)


def test_a_number_is_never_written() -> None:
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="finite"):
            dumps({"a": value})


def test_the_writer_writes_what_the_library_writes() -> None:
    draw = random.Random(5)
    numbers = [draw.random() * 10.0 ** draw.randint(-12, 24) * draw.choice((1, -1)) for _ in range(3000)]
    numbers += [0.0, -0.0, 1.0, -3.0, 1e-6, 1e-7, 9.99e-7, 1e20, 1e21, 2.0**53, 5e-324, 1e16, 0.1, 1e-4, 1e-5]
    values = {
        "z": numbers,
        "a": ["", "é\u2028", '\x00\x1f\x7f"\\/\b\t\n', "😀"],
        "B": {"b": None, "a": (True, False), "_": [1, -7, {}, []]},
    }
    assert dumps(values) == canonical.dumps(values)


def test_arrays_and_document_agree_after_a_round_trip(me, document) -> None:
    with principal_session(me):
        row = Receipt.objects.get()
    said = arrays_of(json.loads(row.document))
    assert row.node_ids
    assert len(row.features) == 6 * len(row.node_ids)
    for name in said.__slots__:
        assert getattr(row, name) == getattr(said, name), name


def test_adjustments_stand_in_the_arrays_by_row_and_in_order(me) -> None:
    memory.store(me, *TEXTS)
    ruling = unstored(ScoringPolicy.model_validate({"relevance_floor": 1.9, "kinds": {"passage": 0.7}}))
    keep(me, policy=ruling)
    with principal_session(me):
        row = Receipt.objects.get()
    assert row.step_rows == sorted(row.step_rows)
    assert row.step_kinds[:2] == ["kind", "relevance_cap"]
    assert row.step_values[0] == 0.7


def test_a_receipt_of_fifteen_rows_is_small(me) -> None:
    memory.store(me, *(f"harbour crane {'inspection ' * n}report {n}" for n in range(1, 31)))
    found, receipt_id = keep(me, limit=15)
    assert len(found.rows) == 15
    assert len(stored(me, receipt_id).document) <= 6 * 1024
