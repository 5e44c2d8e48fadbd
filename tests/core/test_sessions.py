"""Sessions: closed by default, one identity a transaction."""

import pytest
from django.db import ProgrammingError, connection, transaction

from apps.accounts.models import ApiToken, Principal, Workspace
from apps.accounts.services import enter_principal
from apps.core.db import sessions
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.roles import expected_rights
from apps.core.db.rowpolicy import APP
from tests.support.factories import make_principal, make_staff, make_world

pytestmark = pytest.mark.django_db


def role() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        return str(cursor.fetchone()[0])


def test_the_suite_runs_as_the_application() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolinherit, pg_has_role(rolname, 'memory_owner', 'MEMBER') "
            "FROM pg_roles WHERE rolname = session_user"
        )
        assert cursor.fetchone() == ("memory_app", False, False, False, False)


@pytest.mark.parametrize(
    "table", [t for t in expected_rights() if APP not in t.rights], ids=lambda t: t.table
)
def test_outside_a_session_owned_tables_are_denied(table) -> None:
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as c,
    ):
        c.execute(f'SELECT 1 FROM "{table.table}" LIMIT 1')


def test_a_session_sets_role_and_leaves_nothing() -> None:
    world = make_world()
    with sessions.principal_session(world.principal):
        assert role() == "memory_api"
        assert sessions.current() == world.principal
    assert role() == "memory_app"
    assert sessions.current() is None
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('memory.principal_id', true)")
        assert cursor.fetchone()[0] == ""


def test_another_identity_inside_raises_and_the_same_joins() -> None:
    world = make_world()
    other = make_principal(world.workspace)
    with sessions.principal_session(world.principal):
        with sessions.principal_session(world.principal.principal_id) as same:
            assert same == world.principal
        with pytest.raises(sessions.NestedSession), sessions.principal_session(other):
            pass
        with pytest.raises(sessions.NestedSession), sessions.staff_session(world.superuser):
            pass
        assert role() == "memory_api"


def test_whom_a_failing_session_entered_is_not_there() -> None:
    world = make_world()

    def enter() -> PrincipalIdentity:
        return enter_principal(workspace=world.workspace.pk, subject="token:new")

    with pytest.raises(RuntimeError), sessions.entering_session(enter) as identity:
        raise RuntimeError
    with pytest.raises(sessions.UnknownPrincipal):
        sessions.identity_of(identity.principal_id)
    with sessions.entering_session(enter) as identity:
        assert sessions.current_principal() == identity
        with pytest.raises(sessions.NestedSession), sessions.entering_session(enter):
            pass
    assert sessions.identity_of(identity.principal_id) == identity


def test_a_principal_sees_itself_and_the_shared_one() -> None:
    world = make_world()
    make_principal(world.workspace)
    with sessions.principal_session(world.principal):
        seen = set(Principal.objects.values_list("id", flat=True))
    assert seen == {world.principal.principal_id, world.principal.shared_principal_id}


def test_a_disabled_or_unknown_principal_has_no_session() -> None:
    world = make_world()
    with sessions.staff_session(world.superuser):
        from apps.core import clock

        Principal.objects.filter(pk=world.principal.principal_id).update(disabled_at=clock.now())
    with pytest.raises(sessions.UnknownPrincipal), sessions.principal_session(world.principal.principal_id):
        pass


def test_staff_see_by_grant_alone() -> None:
    mine, other = make_world(), make_world()
    reader = make_staff(mine.workspace, "view_traces")
    with sessions.staff_session(reader):
        assert list(Workspace.objects.values_list("slug", flat=True)) == [mine.workspace.slug]
        assert not Principal.objects.filter(workspace=other.workspace).exists()
        assert not ApiToken.objects.exists()
    operator = make_staff(mine.workspace, groups=("Operator",))
    with sessions.staff_session(operator):
        assert Principal.objects.filter(workspace=mine.workspace).count() == 2


def test_act_for_takes_and_gives_back() -> None:
    world = make_world()
    curator = make_staff(world.workspace, groups=("Curator",))
    with sessions.staff_session(curator) as staff:
        with sessions.act_for(world.principal.principal_id, "curate") as identity:
            assert identity == world.principal
            assert role() == "memory_api"
            assert sessions.acting_staff() == staff
        assert role() == "memory_staff"
        assert sessions.acting_staff() is None
        with pytest.raises(ValueError), sessions.act_for(world.principal.principal_id, "curate"):
            raise ValueError
        assert role() == "memory_staff"
        with (
            pytest.raises(sessions.GrantMissing),
            sessions.act_for(world.principal.principal_id, "review_retention"),
        ):
            pass


def test_act_for_a_foreign_principal_is_refused() -> None:
    mine, other = make_world(), make_world()
    curator = make_staff(mine.workspace, groups=("Curator",))
    with (
        sessions.staff_session(curator),
        pytest.raises(sessions.GrantMissing),
        sessions.act_for(other.principal.principal_id, "curate"),
    ):
        pass


def test_maintenance_and_monitor_read_nothing() -> None:
    for session in (sessions.maintenance_session, sessions.monitor_session):
        with (
            pytest.raises(ProgrammingError, match="permission denied"),
            session(),
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1 FROM accounts_principal")


@pytest.mark.django_db(transaction=True)
def test_a_pooled_connection_carries_nothing_over() -> None:
    world = make_world()
    with sessions.principal_session(world.principal):
        assert Principal.objects.count() == 2
    with pytest.raises(ProgrammingError, match="permission denied"):
        Principal.objects.count()


@pytest.mark.django_db(transaction=True)
def test_a_session_may_not_begin_inside_another_transaction() -> None:
    world = make_world()
    with pytest.raises(RuntimeError), transaction.atomic(), sessions.principal_session(world.principal):
        pass
