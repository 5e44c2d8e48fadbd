"""The table of stored policies is the last defence, and migrations write its defaults."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.migrations.state import ProjectState

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import StoredPolicy
from apps.core.policies import policy_hash
from apps.core.policies.migration import PublishDefaultPolicy
from tests.support.factories import make_staff, make_world
from tests.support.policies import DEFAULT, NAME, publish, trial_kind

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def kind(db, owner_connection):
    with trial_kind(owner_connection) as found:
        yield found


def row_values(workspace_id: Any, author: Any, **more: Any) -> dict[str, Any]:
    return {
        "workspace_id": workspace_id,
        "kind": NAME,
        "version": 1,
        "document": DEFAULT,
        "author_id": author,
        "hash": policy_hash(NAME, DEFAULT),
    } | more


def test_the_database_refuses_a_past_disordered_or_borrowed_version():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    reader = make_staff(world.workspace, "view_traces")
    now = clock.now()
    publish(manager, world.workspace, {"half_life_s": 5.0}, effective_from=now + timedelta(hours=1))
    own = world.workspace.pk
    refused = [
        (manager, row_values(own, manager.pk, version=2, effective_from=now - timedelta(seconds=5))),
        (manager, row_values(own, manager.pk, version=2)),
        (manager, row_values(own, manager.pk, version=2, effective_from=now + timedelta(hours=1))),
        (manager, row_values(own, manager.pk, version=1, effective_from=now + timedelta(hours=2))),
        (manager, row_values(own, manager.pk, version=3, effective_from=now + timedelta(hours=2))),
        (manager, row_values(own, reader.pk, version=2, effective_from=now + timedelta(hours=2))),
        (manager, row_values(None, manager.pk, version=2, effective_from=now + timedelta(hours=2))),
        (reader, row_values(own, reader.pk, version=2, effective_from=now + timedelta(hours=2))),
        (manager, row_values(make_world().workspace.pk, manager.pk)),
    ]
    for user, values in refused:
        with pytest.raises(DatabaseError), staff_session(user), transaction.atomic():
            StoredPolicy.objects.create(**values)
    with staff_session(manager):
        good = row_values(own, manager.pk, version=2, effective_from=now + timedelta(hours=2))
        assert StoredPolicy.objects.create(**good).version == 2


@pytest.mark.parametrize(
    "sql", ["UPDATE core_storedpolicy SET reason = 'x'", "DELETE FROM core_storedpolicy"]
)
def test_no_session_changes_or_deletes_a_version(sql):
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles", "review_retention", "operate_collection")
    for session in (lambda: staff_session(manager), lambda: principal_session(world.principal)):
        with (
            pytest.raises(DatabaseError, match="permission denied"),
            session(),
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)


def test_not_even_the_owner_changes_a_version(owner_connection):
    with pytest.raises(Exception, match="does not change"):
        owner_connection.execute("UPDATE core_storedpolicy SET reason = 'x'")


class _Editor:
    """A schema editor on the owner's connection, as migrations have it."""

    def __init__(self, owner):
        self.connection = owner


def test_a_migration_writes_and_takes_back_a_default(owner_connection):
    document = DEFAULT | {"half_life_s": 7.0}
    operation = PublishDefaultPolicy(NAME, document, "A better number.")
    state = ProjectState()
    operation.database_forwards("core", _Editor(owner_connection), state, state)  # type: ignore[arg-type]
    rows = owner_connection.execute(
        "SELECT version, document, hash FROM core_storedpolicy WHERE kind = %s ORDER BY version", [NAME]
    ).fetchall()
    assert rows[1] == (2, document, policy_hash(NAME, document))
    operation.database_backwards("core", _Editor(owner_connection), state, state)  # type: ignore[arg-type]
    assert owner_connection.execute(
        "SELECT count(*) FROM core_storedpolicy WHERE kind = %s", [NAME]
    ).fetchone() == (1,)
    name, args, more = operation.deconstruct()
    assert (name, PublishDefaultPolicy(*args, **more).hash) == ("PublishDefaultPolicy", operation.hash)
