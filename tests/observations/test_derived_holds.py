"""Legal holds on what was derived: kept past its term while one is in place, gone with the next run after the last."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.problems import Unprocessable
from apps.learning.requests import EvaluationRequest
from apps.learning.services.evaluations import start_evaluation
from apps.observations.models.exports import Location
from apps.observations.services import erasure, evidence
from apps.observations.services.exports import export
from apps.operations import declarations, holds, runs
from apps.operations.erasure import services as erasures
from apps.operations.models import Alarm
from tests.observations.test_pages import act
from tests.support import collection
from tests.support.activation import make_scene
from tests.support.factories import World, make_staff, make_workspace
from tests.support.journal import feedback, record

pytestmark = pytest.mark.django_db(transaction=True)

GRANTS = ("review_retention", "view_traces", "audit")


@dataclass(frozen=True)
class Kind:
    """One kind of record: how one comes to be, where its age stands, after how many days which task deletes it."""

    make: Callable[[World], UUID]
    table: str
    column: str
    days: int
    task: str


def an_evaluation(world: World) -> UUID:
    with principal_session(world.principal):
        return start_evaluation(idempotency_key="k", request=EvaluationRequest())


def a_holdout(world: World) -> UUID:
    question = collection.Question("a word of three", "fresh")
    set_id = collection.query_set(collection.Collection(world.principal, (), (question,)))
    return collection.stored_holdout(world.principal, an_evaluation(world), set_id)


def a_piece_of_evidence(world: World) -> UUID:
    scene = make_scene(world)
    with staff_session(scene.reviewer):
        return evidence.attest(run_id=scene.run_id, item="B10", result="pass", note="seven days").pk


def an_export_record(world: World) -> UUID:
    from apps.observations.models import ExportRecord

    with principal_session(world.principal):
        export(location=Location.API)
        return ExportRecord.objects.get().pk


def a_certificate(world: World) -> UUID:
    with principal_session(world.principal):
        begun = erasure.begin()
    return erasure.run(begun).pk


KINDS = {
    "learning.evaluation": Kind(an_evaluation, "learning_evaluation", "requested_at", 731, "learning.prune"),
    "learning.holdout": Kind(a_holdout, "learning_holdout", "requested_at", 731, "learning.prune"),
    "observations.evidence": Kind(
        a_piece_of_evidence, "observations_evidence", "recorded_at", 1827, "operations.prune"
    ),
    "observations.exportrecord": Kind(
        an_export_record, "observations_export_record", "exported_at", 401, "operations.prune"
    ),
    "operations.erasurecertificate": Kind(
        a_certificate, "operations_erasurecertificate", "completed_at", 1827, "operations.prune"
    ),
}
named = pytest.mark.parametrize("name", KINDS, ids=str)


def there(owner: Any, kind: Kind, key: UUID) -> bool:
    return bool(owner.execute(f"SELECT count(*) FROM {kind.table} WHERE id = %s", [key]).fetchone()[0])


def age(owner: Any, kind: Kind) -> None:
    """Past its term, with what it belongs to."""
    tables = {kind.table: kind.column}
    if kind.table == "observations_evidence":
        tables["observations_activation_run"] = "opened_at"
    for table, column in tables.items():
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        owner.execute(
            f"UPDATE {table} SET {column} = {column} - make_interval(hours => %s)", [kind.days * 24]
        )
        owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def scheduled_run(name: str) -> None:
    """As the schedule runs it: with its run's row, and an alarm where it fails."""
    declaration = declarations.find(name)
    assert declaration is not None
    runs.perform(declaration, runs.Call([], clock.now()), lambda call, seconds: None)


def place(world: World, staff: Any, kind: str, key: UUID) -> UUID:
    with staff_session(staff):
        return holds.place(
            workspace_id=world.workspace.pk, reference="case 7", reason="asked for", items=[(kind, key)]
        ).pk


@pytest.fixture
def people(on: World) -> tuple[Any, Any]:
    """A placer and a releaser."""
    return make_staff(on.workspace, *GRANTS), make_staff(on.workspace, *GRANTS)


@named
def test_a_held_record_outlives_its_term_and_goes_with_the_next_run_after_the_last_release(
    on: World, owner_connection, people, name
) -> None:
    kind, (placer, releaser) = KINDS[name], people
    key = kind.make(on)
    first, second = (place(on, placer, name, key) for _ in range(2))
    age(owner_connection, kind)
    scheduled_run(kind.task)
    assert there(owner_connection, kind, key)
    for hold in (first, second):
        with staff_session(placer), pytest.raises(holds.FourEyes):
            holds.release(hold_id=hold, reason="over")
        scheduled_run(kind.task)
        assert there(owner_connection, kind, key)
        with staff_session(releaser):
            holds.release(hold_id=hold, reason="over")
        assert there(owner_connection, kind, key), "not at once"
    scheduled_run(kind.task)
    assert not there(owner_connection, kind, key)


@named
def test_a_hold_shortens_no_term_and_restarts_none(on: World, owner_connection, people, name) -> None:
    kind, (placer, releaser) = KINDS[name], people
    key = kind.make(on)
    hold = place(on, placer, name, key)
    with staff_session(releaser):
        holds.release(hold_id=hold, reason="over")
    scheduled_run(kind.task)
    assert there(owner_connection, kind, key)
    age(owner_connection, kind)
    scheduled_run(kind.task)
    assert not there(owner_connection, kind, key)


PAGES = {
    "learning.evaluation": "/admin/learning/evaluation/",
    "learning.holdout": "/admin/learning/holdout/",
    "operations.erasurecertificate": "/admin/operations/erasurecertificate/",
}


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_its_page_places_the_hold_for_retention_reviewers_alone(on: World, name) -> None:
    key = KINDS[name].make(on)
    page = f"{PAGES[name]}{key}/"
    auditor, reviewer = Client(), Client()
    auditor.force_login(make_staff(on.workspace, "audit", "view_traces"))
    reviewer.force_login(make_staff(on.workspace, *GRANTS))
    assert auditor.get(f"{page}change/").status_code == 200
    assert auditor.get(f"{page}hold/").status_code == 404
    assert f"{key}/hold/" in reviewer.get(f"{page}change/").content.decode()
    act(reviewer, f"{page}hold/", reference="case 7")
    with maintenance_session():
        assert holds.covers(name, key)


def test_a_certificate_that_is_not_complete_is_not_held(on: World, people) -> None:
    with principal_session(on.principal):
        begun = erasure.begin()
    with pytest.raises(Unprocessable) as refused:
        place(on, people[0], "operations.erasurecertificate", begun)
    assert refused.value.shown_code == "unknown_object"


@contextmanager
def unreadable(owner: Any) -> Iterator[None]:
    owner.execute("ALTER TABLE operations_holditem RENAME TO operations_holditem_away")
    try:
        yield
    finally:
        owner.execute("ALTER TABLE operations_holditem_away RENAME TO operations_holditem")


@named
def test_while_holds_cannot_be_read_nothing_is_deleted_and_that_is_an_alarm(
    on: World, owner_connection, name
) -> None:
    kind = KINDS[name]
    key = kind.make(on)
    age(owner_connection, kind)
    with unreadable(owner_connection), pytest.raises(runs.JobFailed):
        scheduled_run(kind.task)
    assert there(owner_connection, kind, key)
    assert Alarm.objects.get(source=kind.task, resolved_at=None).reason == "hold_check_failed"
    scheduled_run(kind.task)
    assert not there(owner_connection, kind, key)
    assert not Alarm.objects.filter(source=kind.task, resolved_at=None).exists()


def test_audit_entries_that_cannot_be_judged_leave_the_other_kinds_pruned(
    on: World, owner_connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at holds fails for entries alone, which come before samples in the night."""
    owner_connection.execute(
        "INSERT INTO operations_sample (id, name, labels, value, at) "
        "VALUES (gen_random_uuid(), 'tests', '{}', 1, now() - interval '401 days')"
    )

    def fail(kind: str) -> list[UUID]:
        raise holds.HoldCheckFailed

    monkeypatch.setattr(holds, "held_ids", fail)
    with pytest.raises(runs.JobFailed):
        scheduled_run("operations.prune")
    assert Alarm.objects.get(source="operations.prune").reason == "hold_check_failed"
    assert owner_connection.execute("SELECT count(*) FROM operations_sample").fetchone() == (0,)


@pytest.mark.parametrize(
    "kind", ["observation", "observationtext", "observationfeedback"], ids=lambda kind: kind
)
def test_no_hold_covers_raw_data(on: World, owner_connection, people, kind) -> None:
    key = record(owner_connection, on.principal, text="t")
    feedback(owner_connection, on.principal, key)
    (own,) = owner_connection.execute("SELECT id FROM observations_observation_feedback").fetchone()
    with pytest.raises(holds.HoldCannotCoverRawData) as refused:
        place(on, people[0], f"observations.{kind}", own if kind == "observationfeedback" else key)
    assert refused.value.shown_code == "hold_cannot_cover_raw_data"
    assert owner_connection.execute("SELECT count(*) FROM operations_legalhold").fetchone() == (0,)


@pytest.mark.parametrize("name", ["learning.evaluation", "learning.holdout"])
def test_the_owner_erases_nothing_while_one_of_its_results_is_held(on: World, people, name) -> None:
    key = KINDS[name].make(on)
    hold = place(on, people[0], name, key)
    with pytest.raises(holds.LegalHoldInPlace), principal_session(on.principal):
        erasures.begin()
    with staff_session(people[1]):
        holds.release(hold_id=hold, reason="over")
    with principal_session(on.principal):
        assert erasures.begin()


@named
def test_records_of_another_workspace_are_not_held(on: World, name) -> None:
    stranger_space = make_workspace(on.superuser)
    stranger = make_staff(stranger_space, *GRANTS)
    key = KINDS[name].make(on)
    with staff_session(stranger), pytest.raises(Unprocessable) as refused:
        holds.place(
            workspace_id=stranger_space.pk, reference="case 7", reason="asked for", items=[(name, key)]
        )
    assert refused.value.shown_code == "unknown_object"
