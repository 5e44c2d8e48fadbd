"""Receipts as columns: loaded from arrays alone, and the same scores to the last bit."""

import json
import random
from dataclasses import fields, replace
from uuid import UUID

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core.db.sessions import principal_session
from apps.graph.services import PassageItem
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.policy import FEATURES, ScoringPolicy, unstored
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.columns import KINDS, load_columns, steps_of
from apps.retrieval.receipts.replay import replay
from apps.retrieval.schemas import Adjustment, Features, Raw
from apps.retrieval.scoring import score_of
from apps.retrieval.services.receipts import _values
from apps.retrieval.steps import weighted_sums
from tests.retrieval.test_receipts import TEXTS, stored
from tests.support import memory
from tests.support.factories import make_principal, make_world
from tests.support.receipts import keep

pytestmark = pytest.mark.django_db

POLICIES = [
    {},
    {"relevance_floor": 1.9, "kinds": {"passage": 0.7}},
    {"epistemic": {"observed": 0.9}, "session": {"decay": 0.7}},
]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def kept(me):
    """Receipts of several policies and multipliers, with inherited rows, one without rows, one of rank fusion."""
    turns = [
        PassageItem(
            identity=f"t{n}", text="harbour crane" if n == 3 else f"and then {n}", session="s", position=n
        )
        for n in range(6)
    ]
    memory.store(me, *TEXTS, *turns)
    ids = []
    for policy in POLICIES:
        for multipliers in (None, {"lexical": 3.7, "recency": 0.25}):
            ruling = unstored(ScoringPolicy.model_validate(policy))
            ids.append(keep(me, policy=ruling, multipliers=multipliers)[1])
    ids.append(keep(me, query="nothing has that", scopes=("b", "a"))[1])
    fusion = unstored(ScoringPolicy(formula="rank_fusion"))
    return [*ids, keep(me, policy=fusion)[1]]


def columns(principal, ids):
    with principal_session(principal):
        return load_columns(ids)


def test_columns_replay_as_the_documents_do(me, kept) -> None:
    found = columns(me, kept)
    assert list(found.ids) == sorted(kept)
    assert found.formulas[found.ids.index(kept[-1])] == "rank_fusion"
    assert found.replayed().tolist() == found.scores.tolist()
    assert KINDS.index("session_decay") in found.step_kinds
    for index, receipt_id in enumerate(found.ids):
        receipt = stored(me, receipt_id).receipt
        rows = slice(found.offsets[index], found.offsets[index + 1])
        assert found.scopes[index] == receipt.request.scopes
        assert found.query_identities[index] == receipt.request.query_identity
        if receipt.policy.formula == "rank_fusion":
            assert rows.start == rows.stop
            continue
        assert found.replayed()[rows].tolist() == list(replay(receipt).scores)
        assert ids_of(found.node_ids[rows]) == [UUID(c.node_id) for c in receipt.candidates]
        assert [tuple(each) for each in found.features[:, rows].T.tolist()] == [
            c.features for c in receipt.candidates
        ]


def ids_of(halves):
    return [UUID(int=(high << 64) | low) for high, low in halves.tolist()]


def test_base_weights_are_apart_from_what_was_applied(me, kept) -> None:
    found = columns(me, kept[:2])
    documents = [json.loads(stored(me, one).document) for one in found.ids]
    assert found.base.tolist() == [d["weights"][0]["base"] for d in documents]
    assert found.applied.tolist() == [d["weights"][0]["applied"] for d in documents]
    assert found.multipliers.tolist() == [d["weights"][0]["multipliers"] for d in documents]
    assert found.base[0].tolist() == found.base[1].tolist()
    assert found.applied[0].tolist() != found.applied[1].tolist()


def test_batches_give_what_one_statement_gives(me, kept, monkeypatch) -> None:
    whole = columns(me, kept)
    monkeypatch.setattr("apps.retrieval.receipts.columns.BATCH", 2)
    parts = columns(me, [*kept, *kept])
    for name in whole.__slots__:
        one, other = getattr(parts, name), getattr(whole, name)
        assert one == other if isinstance(one, tuple) else np.array_equal(one, other), name


def test_one_statement_reads_a_batch(me, kept) -> None:
    with principal_session(me), CaptureQueriesContext(connection) as through_django:
        load_columns(kept)
    assert not through_django.captured_queries


def test_unknown_and_foreign_receipts_are_absent(world, me, kept) -> None:
    other = columns(make_principal(world.workspace), kept)
    assert (other.ids, other.offsets.tolist(), len(other.replayed())) == ((), [0], 0)
    assert columns(me, [UUID(int=5)]).ids == ()
    assert columns(me, []).ids == ()


def swapped(values):
    values["node_ids"][:2] = values["node_ids"][1::-1]


def equal_scores_in_wrong_order(values):
    values["features"][:6] = values["features"][6:12]
    values["scores"][0] = values["scores"][1]
    values["channels"][:2] = [0, 1]


OF_THE_ROW = {
    "checksum": lambda values: values.update(checksum="0" * 64),
    "document": lambda values: values.update(document=values["document"] + " "),
}
OF_THE_ARRAYS = {
    "score": lambda values: values["scores"].__setitem__(0, values["scores"][0] + 1e-12),
    "feature": lambda values: values["features"].__setitem__(1, 0.123),
    "applied weight": lambda values: values["weights"].__setitem__(12, 0.25),
    "multiplier": lambda values: values["weights"].__setitem__(6, 2.0),
    "tie": equal_scores_in_wrong_order,
    "same scores, swapped": swapped,
}


@pytest.mark.parametrize("spoil", [*OF_THE_ROW, *OF_THE_ARRAYS])
def test_what_does_not_reproduce_itself_is_refused(me, monkeypatch, spoil) -> None:
    memory.store(me, *(PassageItem(identity=str(n), text="harbour crane") for n in range(3)))
    assert columns(me, [keep(me)[1]]).ordered()

    def spoiled_row(new, document):
        values = _values(new, document)
        OF_THE_ROW.get(spoil, dict)(values)
        return values

    def spoiled_arrays(document):
        arrays = arrays_of(document)
        values = {field.name: list(getattr(arrays, field.name)) for field in fields(arrays)}
        OF_THE_ARRAYS.get(spoil, dict)(values)
        return replace(arrays, **values)

    monkeypatch.setattr("apps.retrieval.services.receipts._values", spoiled_row)
    monkeypatch.setattr("apps.retrieval.services.receipts.arrays_of", spoiled_arrays)
    receipt_id = keep(me)[1]
    with pytest.raises(CorruptReceipt):
        columns(me, [receipt_id])


def test_steps_in_any_order_are_those_of_the_scalar_formula() -> None:
    generator = random.Random(3)
    names = dict(zip(FEATURES, (0.36, 0.36, 0.08, 0.06, 0.07, 0.07), strict=True))
    features = [[generator.random() for _ in FEATURES] for _ in range(500)]
    chains = [
        [
            Adjustment(generator.choice(KINDS), generator.uniform(0.05, 1.3))
            for _ in range(generator.choice((0, 0, 1, 2, 3, 5)))
        ]
        for _ in features
    ]
    expected = [
        score_of(formula="weighted", applied=names, features=Features(*row), raw=Raw(), adjustments=chain)
        for row, chain in zip(features, chains, strict=True)
    ]
    flat = [(row, KINDS.index(s.kind), s.coefficient) for row, chain in enumerate(chains) for s in chain]
    rows, kinds, values = (np.array(column) for column in zip(*flat, strict=True))
    scores = weighted_sums(np.array(features).T.copy(), np.array([list(names.values())]), np.zeros(500, int))
    steps = steps_of(rows, kinds, values)
    whole = scores.copy()
    for step in steps:
        whole = step.apply(whole)
    assert whole.tolist() == expected
    picked = np.array(generator.sample(range(500), 123))
    part = scores[picked]
    for step in steps:
        if (taken := step.take(picked, 500)) is not None:
            part = taken.apply(part)
    assert part.tolist() == [expected[index] for index in picked]
