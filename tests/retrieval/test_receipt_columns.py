"""Receipts as columns: loaded from arrays alone, and the same scores to the last bit."""

import json
from uuid import UUID

import pytest

from apps.core.db.sessions import principal_session
from apps.graph.services import PassageItem
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.receipts.columns import load_columns
from apps.retrieval.receipts.replay import replay
from tests.retrieval.test_receipts import TEXTS, keep, stored
from tests.support import memory
from tests.support.factories import make_principal, make_world

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
    assert list(found.ids) == sorted(kept[:-1])
    assert found.replayed().tolist() == found.scores.tolist()
    assert "session_decay" in found.step_kinds
    for index, receipt_id in enumerate(found.ids):
        receipt = stored(me, receipt_id).receipt
        rows = slice(found.offsets[index], found.offsets[index + 1])
        assert found.replayed()[rows].tolist() == list(replay(receipt).scores)
        assert found.node_ids[rows] == tuple(UUID(c.node_id) for c in receipt.candidates)
        assert [tuple(each) for each in found.features[rows].tolist()] == [
            c.features for c in receipt.candidates
        ]
        assert found.scopes[index] == receipt.request.scopes
        assert found.query_identities[index] == receipt.request.query_identity


def test_base_weights_are_apart_from_what_was_applied(me, kept) -> None:
    found = columns(me, kept[:2])
    documents = [json.loads(stored(me, one).document) for one in found.ids]
    assert found.base.tolist() == [d["weights"][0]["base"] for d in documents]
    assert found.applied.tolist() == [d["weights"][0]["applied"] for d in documents]
    assert found.base[0].tolist() == found.base[1].tolist()
    assert found.applied[0].tolist() != found.applied[1].tolist()


def test_unknown_and_foreign_receipts_are_absent(world, me, kept) -> None:
    other = columns(make_principal(world.workspace), kept)
    assert (other.ids, other.offsets.tolist(), len(other.replayed())) == ((), [0], 0)
    assert columns(me, [UUID(int=5)]).ids == ()
