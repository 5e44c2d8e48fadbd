"""The fold: which labels are in force, in any order of corrections; and that learning can be filled from it."""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.feedback.models import Judgment
from apps.feedback.selectors import FoldedLabels, folded_labels
from apps.learning.receipt_set import LabelSet, ReceiptSet
from apps.learning.scorer import FEATURES, WeightedScorer
from apps.learning.selection import Selection, select
from tests.support.factories import make_principal
from tests.support.labels import fill, judge, keep

pytestmark = pytest.mark.django_db


@pytest.fixture
def receipt(me):
    return keep(me, in_context=(0, 1, 2, 3))


def in_force(**given: Any) -> set[tuple[Any, ...]]:
    found = folded_labels(**given)
    columns = (found.record_ids, found.annotators, found.node_ids, found.surfaces, found.values.tolist())
    return set(zip(*columns, strict=True))


def test_columns_are_those_of_the_records_in_ascending_order(me, receipt) -> None:
    a, b = receipt.nodes[:2]
    with clock.frozen(clock.now()) as at, principal_session(me):
        first = judge(receipt.id, {b: True, a: False}, grade={str(b): 4})
        found = folded_labels()
    assert len(found) == 2
    assert found.record_ids == (first, first)
    assert found.receipt_ids == (receipt.id, receipt.id)
    assert found.node_ids == (a, b)
    assert found.positions.tolist() == [0, 1]
    assert found.values.tolist() == [False, True]
    assert found.grades.tolist() == [-1, 4]
    assert found.admitted_at == (at.at, at.at)
    assert found.offsets.tolist() == [0, 2]
    assert (found.values.dtype, found.grades.dtype) == (np.bool_, np.int8)


def test_without_labels_there_are_empty_columns(me) -> None:
    with principal_session(me):
        found = folded_labels()
    assert len(found) == len(found.positions) == 0
    assert found.offsets.tolist() == [0]


def test_the_latest_label_of_an_annotator_counts_and_two_annotators_stand_apart(me, receipt) -> None:
    a = receipt.nodes[0]
    with principal_session(me):
        judge(receipt.id, {a: True})
        mine = judge(receipt.id, {a: False})
        annas = judge(receipt.id, {a: True}, by="anna")
        in_context = judge(receipt.id, {a: True}, surface="context")
        assert in_force() == {
            (mine, "principal", a, "results", False),
            (annas, "anna", a, "results", True),
            (in_context, "principal", a, "context", True),
        }
        assert {row[0] for row in in_force(surface="context")} == {in_context}


def test_a_superseded_label_counts_once_for_the_nodes_that_are_named(me, receipt) -> None:
    a, b, c = receipt.nodes[:3]
    with principal_session(me):
        first = judge(receipt.id, {a: True, b: True})
        second = judge(receipt.id, {b: False, c: True}, supersedes=str(first))
        assert {(row[0], row[2], row[4]) for row in in_force()} == {
            (first, a, True),
            (second, b, False),
            (second, c, True),
        }
        # What was said to be wrong stays so when its correction is taken back.
        judge(receipt.id, withdraws=str(second))
        assert {(row[0], row[2]) for row in in_force()} == {(first, a)}


def test_a_withdrawn_label_is_absent_and_an_older_one_counts_again(me, receipt) -> None:
    a, b = receipt.nodes[:2]
    with principal_session(me):
        first = judge(receipt.id, {a: True})
        second = judge(receipt.id, {a: False, b: False})
        judge(receipt.id, withdraws=str(second), node_ids=[str(a)])
        assert {(row[0], row[2]) for row in in_force()} == {(first, a), (second, b)}
        judge(receipt.id, withdraws=str(first))
        judge(receipt.id, withdraws=str(first))
        judge(receipt.id, withdraws=str(second))
        assert in_force() == set()


def test_a_cut_knows_nothing_of_later_records_nor_later_corrections(me, receipt) -> None:
    a = receipt.nodes[0]
    with clock.frozen(clock.now()) as at, principal_session(me):
        first = judge(receipt.id, {a: True})
        cut = at.at
        at.advance(timedelta(minutes=1))
        judge(receipt.id, {receipt.nodes[1]: True})
        judge(receipt.id, withdraws=str(first))
        assert {row[0] for row in in_force(until=cut)} == {first}
        assert first not in {row[0] for row in in_force()}


def test_it_is_narrowed_to_receipts_and_to_the_owner(world, me, receipt) -> None:
    other, third = keep(me), make_principal(world.workspace)
    fill(third)
    theirs = keep(third)
    with principal_session(third):
        judge(theirs.id, {theirs.nodes[0]: True})
    with principal_session(me):
        judge(receipt.id, {receipt.nodes[0]: True})
        wanted = judge(other.id, {other.nodes[0]: True})
        assert {row[0] for row in in_force(receipt_ids=[other.id, theirs.id])} == {wanted}
        assert len(folded_labels()) == 2


def test_it_is_one_statement(me, receipt, django_assert_num_queries) -> None:
    with principal_session(me):
        judge(receipt.id, {receipt.nodes[0]: True})
        judge(receipt.id, {receipt.nodes[0]: False})
        with django_assert_num_queries(0):  # Django counts its own cursor's, and this is not one of them
            assert len(folded_labels()) == 1


def folded_in_words(records: Iterable[Judgment]) -> set[tuple[Any, ...]]:
    """The rule as it is written, record by record."""
    corrected, latest = set(), {}
    records = sorted(records, key=lambda record: record.admitted_at)
    for record in records:
        corrected |= {(record.corrects, node) for node in record.node_ids}
    for record in records:
        for node, value in zip(record.node_ids, record.relevant, strict=False):
            if (record.feedback_id, node) not in corrected:
                latest[record.annotator, node, record.surface] = (record, value)
    return {
        (record.feedback_id, annotator, node, surface, value)
        for (annotator, node, surface), (record, value) in latest.items()
    }


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_order_of_corrections_the_fold_is_the_rule(me, receipt, seed) -> None:
    draw = random.Random(seed)
    made: list[tuple[UUID, str, str, list[UUID]]] = []
    with principal_session(me):
        for _ in range(24):
            who, surface = draw.choice([None, "anna", "ben"]), draw.choice(["results", "context"])
            own = [m for m in made if (m[1], m[2]) == (who or "", surface)]
            if made and draw.random() < 0.3:
                target = draw.choice(made)
                nodes = draw.sample(target[3], draw.randint(1, len(target[3])))
                by = draw.choice([target[1] or None, None])
                judge(receipt.id, withdraws=str(target[0]), node_ids=list(map(str, nodes)), by=by)
                continue
            more = {"supersedes": str(draw.choice(own)[0])} if own and draw.random() < 0.4 else {}
            nodes = draw.sample(receipt.nodes, draw.randint(1, 3))
            given = {node: draw.random() < 0.5 for node in nodes}
            made.append(
                (judge(receipt.id, given, by=who, surface=surface, **more), who or "", surface, nodes)
            )
        assert in_force() == folded_in_words(Judgment.objects.all())


# Learning.


def label_set(labels: FoldedLabels, receipt_ids: list[UUID], offsets: list[int]) -> LabelSet:
    """Columns of learning out of the fold, without looking at a node."""
    place = {receipt_id: index for index, receipt_id in enumerate(receipt_ids)}
    receipts = np.array([place[receipt_id] for receipt_id in labels.receipt_ids], dtype=np.int64)
    first = labels.offsets[:-1]
    return LabelSet(
        feedback_ids=tuple(str(labels.record_ids[row]) for row in first),
        record_receipt=receipts[first],
        record_surface=tuple(labels.surfaces[row] for row in first),  # type: ignore[arg-type]
        label_record=np.repeat(np.arange(len(first)), np.diff(labels.offsets)),
        label_row=np.array(offsets)[receipts] + labels.positions,
        label_value=labels.values,
        label_grade=labels.grades,
    )


def selected(me, receipts) -> Selection:
    ids = sorted(receipt.id for receipt in receipts)
    count = 4 * len(ids)
    scorer = WeightedScorer(
        features=np.linspace(0.1, 0.9, len(FEATURES) * count).reshape(len(FEATURES), count),
        weights=np.full((1, len(FEATURES)), 1 / len(FEATURES)),
        weight_row=np.zeros(count, dtype=np.int64),
        steps=(),
    )
    pool = ReceiptSet(
        request_ids=tuple(map(str, ids)),
        checksums=("",) * len(ids),
        query_identities=tuple(map(str, ids)),
        scopes=(None,) * len(ids),
        formulas=("weighted",) * len(ids),
        contracts=("1",) * len(ids),
        offsets=np.arange(0, count + 1, 4),
        recorded=scorer.scores(np.ones(len(FEATURES))),
        tie_group=np.zeros(count, dtype=np.int8),
        tie_path=np.zeros(count),
        id_rank=np.tile(np.arange(4, dtype=np.int32), len(ids)),
        scorer=scorer,
    )
    with principal_session(me):
        labels = label_set(folded_labels(), ids, list(range(0, count, 4)))
    return select(pool, labels, scopes=None, surface="results", contract="1", max_pairs_per_request=100)


def test_withdrawn_labels_are_absent_from_pairs_and_counts_and_superseded_count_once(me, receipt) -> None:
    a, b, c = receipt.nodes[:3]
    other = keep(me)
    with principal_session(me):
        judge(other.id, {other.nodes[0]: True, other.nodes[1]: False})
        first = judge(receipt.id, {a: True, b: False, c: False})
    both = [receipt, other]
    assert (len(selected(me, both).receipts), len(selected(me, both).rows)) == (2, 5)
    with principal_session(me):
        second = judge(receipt.id, {b: True}, supersedes=str(first))
    found = selected(me, both)
    assert (len(found.rows), found.exclusions["conflicting_candidate_labels"]) == (5, 0)
    with principal_session(me):
        judge(receipt.id, withdraws=str(first))
        judge(receipt.id, withdraws=str(second))
    found = selected(me, both)
    assert (len(found.receipts), len(found.rows)) == (1, 2)
    assert found.exclusions == {"conflicting_candidate_labels": 0}


def test_two_annotators_who_disagree_conflict_by_default(me, receipt) -> None:
    a, b, c = receipt.nodes[:3]
    with principal_session(me):
        judge(receipt.id, {a: True, b: False, c: False}, by="anna")
        judge(receipt.id, {a: True, b: False, c: True}, by="ben")
    found = selected(me, [receipt])
    assert found.exclusions["conflicting_candidate_labels"] == 1
    assert len(found.rows) == 2
