"""Native receipts as learning has them: base weights apart from a profile's, exact under any multipliers."""

import json
from uuid import UUID

import numpy as np
import pytest

from apps.core.db.sessions import principal_session
from apps.graph.services import PassageItem
from apps.learning.exceptions import NotReproducible, UnknownReference
from apps.learning.native_receipts import ABSENT, load_receipt_set
from apps.retrieval.policy import FEATURES, ScoringPolicy, unstored
from apps.retrieval.receipts.columns import load_columns
from apps.retrieval.schemas import Adjustment, Features, Raw
from apps.retrieval.scoring import score_of, weighed
from tests.retrieval.test_receipts import stored
from tests.support import memory
from tests.support.factories import make_principal, make_world
from tests.support.receipts import keep

pytestmark = pytest.mark.django_db

MULTIPLIERS = {"semantic": 2.0, "lexical": 0.7, "recency": 4.0, "salience": 1.3}
POLICY = {
    "relevance_floor": 1.2,
    "kinds": {"passage": 0.7},
    "epistemic": {"observed": 0.9},
    "session": {"decay": 0.7},
}


@pytest.fixture(scope="module")
def turns():
    return [
        PassageItem(
            identity=f"t{n}",
            text="harbour crane" if n in (3, 11) else f"and then {n}",
            session="s",
            position=n,
        )
        for n in range(14)
    ]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world, turns):
    memory.store(world.principal, *turns, *(f"harbour {'crane ' * n}report" for n in range(1, 9)))
    return world.principal


def load(principal, ids):
    with principal_session(principal):
        return load_receipt_set(ids)


def vector(multipliers):
    return np.array([multipliers.get(name, 1.0) for name in FEATURES])


def scalar_scores(receipt, multipliers):
    """What the live scorer would give each candidate under these multipliers on its base weights."""
    base = dict(zip(FEATURES, receipt.weights[0].base, strict=True))
    factors = dict(zip(FEATURES, multipliers.tolist(), strict=True))
    return [
        score_of(
            formula="weighted",
            applied=weighed(base, factors, normalised=True),
            features=Features(*candidate.features),
            raw=Raw(*candidate.raw),
            adjustments=[Adjustment(step.kind, step.coefficient) for step in candidate.adjustments],
        )
        for candidate in receipt.candidates
    ]


@pytest.fixture
def kept(me):
    ruling = unstored(ScoringPolicy.model_validate(POLICY))
    return [
        keep(me, query="harbour crane report", policy=policy, multipliers=multipliers, limit=15)[1]
        for policy in (ruling, None)
        for multipliers in (None, MULTIPLIERS)
    ]


def test_the_scorer_gives_native_scores_bit_for_bit(me, kept) -> None:
    found = load(me, kept)
    assert found.request_ids == tuple(map(str, sorted(kept)))
    assert len(found.scorer.weights) == 1
    kinds = set()
    for multipliers in (np.ones(6), vector(MULTIPLIERS), np.array([0.25, 4.0, 1.7, 0.61, 1.0, 3.3])):
        scores = found.scorer.scores(multipliers)
        for index, receipt_id in enumerate(sorted(kept)):
            receipt = stored(me, receipt_id).receipt
            rows = slice(found.offsets[index], found.offsets[index + 1])
            assert scores[rows].tolist() == scalar_scores(receipt, multipliers)
            kinds |= {step.kind for candidate in receipt.candidates for step in candidate.adjustments}
    assert kinds == {"epistemic", "kind", "relevance_cap", "session_decay"}


def test_what_was_returned_is_reproduced_by_the_multipliers_that_were_applied(me, kept) -> None:
    found = load(me, kept)
    with principal_session(me):
        returned = load_columns(kept)
    scored = {index: found.scorer.scores(m) for index, m in enumerate((np.ones(6), vector(MULTIPLIERS)))}
    for index, receipt_id in enumerate(sorted(kept)):
        rows = slice(found.offsets[index], found.offsets[index + 1])
        applied = kept.index(receipt_id) % 2
        assert scored[applied][rows].tolist() == returned.scores[rows].tolist()
        assert found.recorded[rows].tolist() == scored[0][rows].tolist()
    assert (scored[0] != scored[1]).any()


def test_ties_are_those_of_the_native_order(me, kept) -> None:
    found = load(me, kept)
    for index, receipt_id in enumerate(sorted(kept)):
        receipt = stored(me, receipt_id).receipt
        rows = slice(found.offsets[index], found.offsets[index + 1])
        ids = [candidate.node_id for candidate in receipt.candidates]
        assert found.id_rank[rows].tolist() == [sorted(ids).index(one) for one in ids]
        assert found.tie_path[rows].tolist() == [candidate.channels for candidate in receipt.candidates]
        assert found.tie_group[rows].all(), "no row is of a reranked prefix"
        returned = [c.score for c in receipt.candidates]
        order = np.lexsort((found.id_rank[rows], -found.tie_path[rows], -np.array(returned)))
        assert order.tolist() == list(range(len(ids)))


def test_identities_scopes_and_contracts_are_the_receipts(me) -> None:
    ids = [
        keep(me, query=query, scopes=scopes)[1]
        for query, scopes in (
            ("harbour crane", None),
            ("  HARBOUR  crane", ("b", "a")),
            ("harbour report", ()),
        )
    ]
    found = load(me, ids)
    documents = [json.loads(stored(me, UUID(one)).document) for one in found.request_ids]
    assert found.checksums == tuple(stored(me, UUID(one)).checksum for one in found.request_ids)
    assert found.query_identities == tuple(d["request"]["query_identity"] for d in documents)
    assert [found.query_identities.count(one) for one in found.query_identities] == [2, 2, 1]
    assert set(found.scopes) == {None, ("a", "b"), ()}
    assert set(found.contracts) == {documents[0]["features"]["contract"]}


def test_rank_fusion_is_known_and_not_fitted(me) -> None:
    weighted = keep(me)[1]
    fused = keep(me, policy=unstored(ScoringPolicy(formula="rank_fusion")))[1]
    found = load(me, [fused, weighted])
    assert found.formulas == ("weighted", "rank_fusion")
    assert found.offsets.tolist()[1:] == [len(found.recorded)] * 2


def test_labels_find_their_rows(me, kept, monkeypatch) -> None:
    monkeypatch.setattr("apps.learning.native_receipts._LABELS_AT_ONCE", 3)
    found = load(me, kept)
    asked, nodes, expected = [], [], []
    for index, request_id in enumerate(found.request_ids):
        candidates = stored(me, UUID(request_id)).receipt.candidates
        for place, candidate in reversed(list(enumerate(candidates))):
            asked.append(index)
            nodes.append(UUID(candidate.node_id))
            expected.append(found.offsets[index] + place)
        asked.append(index)
        nodes.append(UUID(int=7))
        expected.append(ABSENT)
    asked.append(ABSENT)
    nodes.append(nodes[0])
    expected.append(ABSENT)
    assert found.candidate_rows(np.array(asked), nodes).tolist() == expected
    assert found.candidate_rows(np.array([], dtype=int), []).tolist() == []
    assert found.receipt_indexes([kept[0], UUID(int=3)]).tolist() == [
        found.request_ids.index(str(kept[0])),
        ABSENT,
    ]


def test_what_is_not_there_or_does_not_hold_fails_the_load(world, me, kept, monkeypatch) -> None:
    for owner, ids in ((me, [*kept, UUID(int=4)]), (make_principal(world.workspace), kept)):
        with pytest.raises(UnknownReference):
            load(owner, ids)
    assert len(load(me, [])) == 0
    monkeypatch.setattr("apps.retrieval.receipts.columns.ReceiptColumns.replayed", lambda self: -self.scores)
    with pytest.raises(NotReproducible):
        load(me, kept)
