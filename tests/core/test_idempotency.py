"""Idempotency keys: the same call twice has one effect and one answer."""

import threading
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from apps.core import clock
from apps.core.db.locks import NoTransaction, lock_principal
from apps.core.db.sessions import SessionError, act_for, principal_session, staff_session
from apps.core.idempotency import Made, key_of, once, payload_digest
from apps.core.models import IdempotencyKey
from apps.core.problems import InvalidRequest, StateConflict
from tests.support.factories import make_principal, make_staff, make_world

pytestmark = pytest.mark.django_db


class Tool:
    """A tool that counts its effects and renders its answer from the id of its record."""

    def __init__(self):
        self.effects: list[UUID] = []
        self.expires_at = None
        self.failure = None

    def __call__(self, principal, key="k1", payload=None, tool="uses"):
        with principal_session(principal):
            return self.within(key, payload, tool)

    def within(self, key="k1", payload=None, tool="uses"):
        return once(tool=tool, key=key, payload=payload or {"a": 1}, run=self.run, again=self.again)

    def run(self, record_id):
        if self.failure is not None:
            raise self.failure
        self.effects.append(record_id)
        return Made(self.again(record_id), self.expires_at)

    @staticmethod
    def again(record_id):
        return {"receipt_id": str(record_id)}


def test_the_same_key_and_payload_give_the_first_answer_and_no_effect():
    world, tool = make_world(), Tool()
    first = tool(world.principal)
    second = tool(world.principal)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.answer == second.answer
    assert len(tool.effects) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": None}, {"b": 1}),
        ({"a": 1, "b": None}, {"a": 1}),
    ],
)
def test_another_payload_is_a_conflict(one, other):
    world, tool = make_world(), Tool()
    tool(world.principal, payload=one)
    with pytest.raises(StateConflict) as refused:
        tool(world.principal, payload=other)
    assert refused.value.document()["code"] == "idempotency_conflict"
    assert refused.value.status == 409
    assert len(tool.effects) == 1


def test_the_tool_is_part_of_the_payload_and_member_order_is_not():
    world, tool = make_world(), Tool()
    tool(world.principal, payload={"a": 1, "b": 2})
    assert tool(world.principal, payload={"b": 2, "a": 1}).replayed
    with pytest.raises(StateConflict):
        tool(world.principal, payload={"a": 1, "b": 2}, tool="outcomes")
    assert payload_digest("t", {"a": 1, "b": 2}) == payload_digest("t", {"b": 2, "a": 1})
    assert len(payload_digest("t", {})) == 32


def test_keys_of_principals_do_not_meet():
    world, tool = make_world(), Tool()
    other = make_principal(world.workspace)
    tool(world.principal, payload={"a": 1})
    assert not tool(other, payload={"a": 2}).replayed
    with principal_session(other):
        assert IdempotencyKey.objects.count() == 1


def test_a_failed_call_leaves_no_key_even_when_its_error_is_caught():
    world, tool = make_world(), Tool()
    tool.failure = StateConflict(code="stage_order_violation")
    with principal_session(world.principal):
        with pytest.raises(StateConflict):
            tool.within()
        assert not IdempotencyKey.objects.exists()
    tool.failure = None
    assert not tool(world.principal, payload={"a": 2}).replayed


def test_a_key_past_its_time_counts_as_absent_and_is_replaced():
    world, tool = make_world(), Tool()
    tool.expires_at = clock.now() - timedelta(seconds=1)
    first = tool(world.principal)
    tool.expires_at = clock.now() + timedelta(hours=1)
    second = tool(world.principal, payload={"a": 2})
    assert not second.replayed
    assert first.answer != second.answer
    assert tool(world.principal, payload={"a": 2}).replayed
    with principal_session(world.principal):
        (row,) = IdempotencyKey.objects.all()
    assert row.expires_at == tool.expires_at
    assert str(row.receipt_id) == second.answer["receipt_id"]


def test_the_record_takes_the_id_that_the_key_names():
    world, tool = make_world(), Tool()
    tool(world.principal)
    with principal_session(world.principal):
        assert IdempotencyKey.objects.get().receipt_id == tool.effects[0]


def test_staff_that_act_for_a_principal_share_its_keys():
    world, tool = make_world(), Tool()
    curator = make_staff(world.workspace, "curate")
    tool(world.principal)
    with staff_session(curator):
        with pytest.raises(SessionError):
            tool.within()
        with act_for(world.principal.principal_id, "curate"):
            assert tool.within().replayed


def test_keys_are_invisible_to_others():
    world, tool = make_world(), Tool()
    tool(world.principal)
    with principal_session(make_principal(world.workspace)):
        assert not IdempotencyKey.objects.exists()


def test_a_key_comes_from_header_or_body():
    assert key_of("h", None) == "h"
    assert key_of(None, "b") == "b"
    assert key_of(None, "x" * 128) == "x" * 128
    for header, body in (("h", "b"), ("h", "h"), (None, None), ("", None), (None, "x" * 129)):
        with pytest.raises(InvalidRequest) as refused:
            key_of(header, body, code="invalid_memory_request")
        assert refused.value.document()["code"] == "invalid_memory_request"
        assert refused.value.pointer == "/idempotency_key"


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_once_has_one_effect():
    world, tool = make_world(), Tool()
    answers, errors = [], []
    barrier = threading.Barrier(8)

    def call():
        try:
            barrier.wait()
            answers.append(tool(world.principal).answer)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(tool.effects) == 1
    assert answers == [answers[0]] * 8


@pytest.mark.django_db(transaction=True)
def test_a_lock_needs_a_transaction():
    with pytest.raises(NoTransaction):
        lock_principal(uuid4())
    with transaction.atomic():
        lock_principal(uuid4())
