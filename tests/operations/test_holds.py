"""Legal holds: asked for under lock, placed and released by two persons, never over raw data."""

import threading
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection

from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.problems import InvalidRequest, NotFound, Unprocessable
from apps.operations import holds
from apps.operations.models import HoldItem, LegalHold
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db

THING, RAW = "tests.thing", "tests.raw"


@pytest.fixture
def world():
    return make_world()


@pytest.fixture(autouse=True)
def kinds(world):
    holds.register_kind(holds.HoldKind(THING, "a thing", locate=lambda _: world.workspace.pk))
    holds.register_kind(holds.HoldKind(RAW, "raw data", raw=True))
    yield
    for name in (THING, RAW):
        holds.unregister_kind(name)


def reviewer(world):
    return make_staff(world.workspace, "review_retention")


def place(world, *ids, user=None, kind=THING):
    with staff_session(user or reviewer(world)):
        return holds.place(
            workspace_id=world.workspace.pk,
            reference="case 7",
            reason="asked by counsel",
            items=[(kind, one) for one in ids],
        )


def free(world, *items) -> bool:
    with principal_session(world.principal):
        try:
            holds.require_free(*items)
        except holds.LegalHoldInPlace:
            return False
    return True


def test_the_refusal_is_a_conflict_with_a_code() -> None:
    refusal = holds.LegalHoldInPlace().document()
    assert (refusal["code"], refusal["status"]) == ("legal_hold", 409)


def test_a_held_object_is_not_free_until_the_last_hold_is_released(world) -> None:
    held, other = uuid4(), uuid4()
    first, second = place(world, held), place(world, held, uuid4())
    assert not free(world, (THING, held))
    assert not free(world, (THING, other), (THING, held))
    assert free(world, (THING, other), ("tests.another", held))
    for hold, still in ((first, False), (second, True)):
        with staff_session(reviewer(world)):
            holds.release(hold_id=hold.pk, reason="over")
        assert free(world, (THING, held)) is still
    with staff_session(reviewer(world)):
        assert LegalHold.objects.count() == 2
        assert HoldItem.objects.count() == 3


def test_maintenance_and_principals_ask_but_do_not_read(world) -> None:
    held = uuid4()
    place(world, held)
    for session in (maintenance_session, lambda: principal_session(world.principal)):
        with session():
            assert holds.covers(THING, held)
            assert holds.is_held(THING, held)
        with pytest.raises(DatabaseError, match="permission denied"), session():
            LegalHold.objects.exists()


def test_the_placer_cannot_release_and_a_release_is_final(world) -> None:
    placer = reviewer(world)
    hold = place(world, uuid4(), user=placer)
    with staff_session(placer), pytest.raises(holds.FourEyes):
        holds.release(hold_id=hold.pk, reason="over")
    with staff_session(reviewer(world)):
        holds.release(hold_id=hold.pk, reason="over")
    with staff_session(reviewer(world)):
        with pytest.raises(holds.HoldReleased):
            holds.release(hold_id=hold.pk, reason="again")
        with pytest.raises(holds.HoldReleased):
            holds.extend(hold_id=hold.pk, items=[(THING, uuid4())], reason="more")


def test_the_database_keeps_the_placer_from_releasing_too(world) -> None:
    placer = reviewer(world)
    hold = place(world, uuid4(), user=placer)
    for changes in (
        {"released_by_id": placer.pk, "released_at": hold.placed_at, "release_reason": "over"},
        {"reason": "another"},
    ):
        with pytest.raises(DatabaseError), staff_session(placer):
            LegalHold.objects.filter(pk=hold.pk).update(**changes)
    with pytest.raises(DatabaseError), staff_session(placer):
        LegalHold.objects.all().delete()


def test_without_the_grant_holds_are_neither_placed_seen_nor_released(world) -> None:
    hold = place(world, uuid4())
    stranger = make_staff(make_world().workspace, "review_retention")
    auditor = make_staff(world.workspace, "audit")
    with staff_session(stranger):
        assert not LegalHold.objects.exists()
        with pytest.raises(NotFound):
            holds.release(hold_id=hold.pk, reason="over")
    with staff_session(auditor):
        assert LegalHold.objects.exists()
        with pytest.raises(NotFound):
            holds.release(hold_id=hold.pk, reason="over")
    for user in (stranger, auditor):
        with pytest.raises(DatabaseError):
            place(world, uuid4(), user=user)


@pytest.mark.parametrize(
    ("kind", "code"), [(RAW, "hold_cannot_cover_raw_data"), ("tests.unknown", "unknown_hold_kind")]
)
def test_raw_data_and_unknown_kinds_are_refused(world, kind, code) -> None:
    with pytest.raises(Unprocessable) as refused:
        place(world, uuid4(), kind=kind)
    assert (refused.value.shown_code, refused.value.pointer) == (code, "/items/0")


def test_only_objects_of_the_workspace_are_held(world) -> None:
    holds.register_kind(holds.HoldKind(THING, "a thing", locate=lambda _: None))
    with pytest.raises(Unprocessable) as refused:
        place(world, uuid4())
    assert refused.value.shown_code == "unknown_object"


def test_a_hold_has_a_reason_and_items(world) -> None:
    with staff_session(reviewer(world)):
        for reason, items in ((" ", [(THING, uuid4())]), ("asked", [])):
            with pytest.raises(InvalidRequest):
                holds.place(workspace_id=world.workspace.pk, reference="case", reason=reason, items=items)


def test_when_holds_cannot_be_read_nothing_is_deleted(world, monkeypatch) -> None:
    with principal_session(world.principal):
        monkeypatch.setattr(holds, "_CHECK", "SELECT nothing_of_the_sort(%s, %s)")
        with pytest.raises(holds.HoldCheckFailed) as refused:
            holds.require_free((THING, uuid4()))
        assert (refused.value.shown_code, refused.value.status) == ("hold_check_failed", 503)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")


@pytest.mark.django_db(transaction=True)
def test_it_must_be_asked_in_the_deleting_transaction() -> None:
    with pytest.raises(RuntimeError):
        holds.require_free((THING, uuid4()))


@pytest.mark.django_db(transaction=True)
def test_a_hold_waits_for_a_deletion_that_asked_first(world) -> None:
    """Either the deletion sees the hold, or the hold comes after the deletion's commit."""
    held, user = uuid4(), reviewer(world)
    done = threading.Event()

    def place_it() -> None:
        place(world, held, user=user)
        done.set()
        connection.close()

    with principal_session(world.principal):
        holds.require_free((THING, held))
        placing = threading.Thread(target=place_it)
        placing.start()
        assert not done.wait(0.5)
    placing.join(20)
    assert done.is_set()
    assert not free(world, (THING, held))
