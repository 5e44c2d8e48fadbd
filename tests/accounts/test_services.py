"""Principals, tokens and grants: who may change them, and what of them works afterwards."""

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts import selectors, services, subjects
from apps.accounts.models import ApiToken, Principal
from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.problems import Forbidden, InvalidRequest, NotFound, StateConflict
from tests.support.factories import make_staff, make_token, make_world

pytestmark = pytest.mark.django_db


def status(secret: str) -> int:
    return Client().get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_token_works_until_it_expires_or_is_revoked() -> None:
    world = make_world()
    operator = make_staff(world.workspace, groups=("Operator",))
    with staff_session(operator):
        principal = selectors.get_principal(world.principal.principal_id)
        lasting = services.create_token(name="a", scopes=["search"], principal=principal)
        brief = services.create_token(
            name="b",
            scopes=["search"],
            principal=principal,
            expires_at=clock.now() + dt.timedelta(hours=1),
        )
    assert status(lasting.secret) == status(brief.secret) == 200
    with clock.frozen(clock.now() + dt.timedelta(hours=1)):
        assert status(brief.secret) == 401
    with staff_session(operator):
        services.revoke_token(lasting.token.pk)
    assert status(lasting.secret) == 401


def test_the_secret_is_nowhere_in_the_row() -> None:
    world = make_world()
    secret = make_token(world.principal, "search")
    with staff_session(make_staff(world.workspace, groups=("Operator",))):
        token = selectors.tokens().get()
    assert secret[:8] == token.prefix
    assert secret not in str(vars(token))
    assert token.last_used_at is None


def test_last_use_is_noted_at_minute_precision() -> None:
    world = make_world()
    secret = make_token(world.principal, "search")
    status(secret)
    with staff_session(make_staff(world.workspace, groups=("Operator",))):
        used = selectors.tokens().get().last_used_at
    assert (used.second, used.microsecond) == (0, 0)


def test_rotation_keeps_the_rights_and_ends_the_old_secret() -> None:
    world = make_world()
    operator = make_staff(world.workspace, groups=("Operator",))
    with staff_session(operator):
        principal = selectors.get_principal(world.principal.principal_id)
        old = services.create_token(name="a", scopes=["search", "erase"], principal=principal)
        new = services.rotate_token(old.token.pk, reason="yearly")
    assert new.token.scopes == ["erase", "search"]
    assert (status(old.secret), status(new.secret)) == (401, 200)
    with staff_session(operator):
        newer = services.rotate_token(new.token.pk, grace=dt.timedelta(hours=1))
        with pytest.raises(StateConflict):
            services.rotate_token(old.token.pk)
    assert (status(new.secret), status(newer.secret)) == (200, 200)
    with clock.frozen(clock.now() + dt.timedelta(hours=2)):
        assert (status(new.secret), status(newer.secret)) == (401, 200)


def test_unknown_scopes_and_past_expiries_are_refused() -> None:
    world = make_world()
    with staff_session(world.superuser):
        principal = selectors.get_principal(world.principal.principal_id)
        with pytest.raises(InvalidRequest) as raised:
            services.create_token(name="a", scopes=["all"], principal=principal)
        assert raised.value.pointer == "/scopes"
        with pytest.raises(InvalidRequest):
            services.create_token(name="a", scopes=[], principal=principal, expires_at=clock.now())
        with pytest.raises(InvalidRequest):
            services.create_token(name="a", scopes=[])


def test_principals_and_tokens_are_the_operators() -> None:
    world, other = make_world(), make_world()
    curator = make_staff(world.workspace, groups=("Curator",))
    operator = make_staff(world.workspace, groups=("Operator",))
    stranger = make_staff(other.workspace, groups=("Operator",))
    make_token(world.principal, "search")
    token_id = None
    with staff_session(operator):
        token_id = selectors.tokens().get().pk
        made = services.create_principal(workspace=world.workspace.pk, subject="github:7", display_name="Ann")
        with pytest.raises(StateConflict):
            services.create_principal(workspace=world.workspace.pk, subject="github:7")
    with staff_session(curator):
        principal = selectors.get_principal(made.pk)
        with pytest.raises(Forbidden):
            services.create_token(name="a", scopes=[], principal=principal)
        with pytest.raises(Forbidden):
            services.disable_principal(made.pk, reason="no")
    with staff_session(stranger):
        with pytest.raises(NotFound):
            services.disable_principal(made.pk, reason="no")
        with pytest.raises(NotFound):
            services.revoke_token(token_id)
        with pytest.raises(Forbidden):
            services.create_principal(workspace=world.workspace.pk, subject="x")


def test_a_disabled_principal_is_shut_out_and_let_in_again() -> None:
    world = make_world()
    secret = make_token(world.principal, "search")
    with staff_session(world.superuser):
        services.disable_principal(world.principal.principal_id, reason="left")
        shared = Principal.objects.defer("hash_key").get(workspace=world.workspace, subject="shared")
        with pytest.raises(InvalidRequest):
            services.disable_principal(shared.pk, reason="no")
    assert status(secret) == 401
    with staff_session(world.superuser):
        services.enable_principal(world.principal.principal_id, reason="back")
    assert status(secret) == 200


def test_a_staff_token_is_made_by_its_user_and_ends_with_the_user() -> None:
    world = make_world()
    curator = make_staff(world.workspace, groups=("Curator",))
    other = make_staff(world.workspace, groups=("Operator",))
    with staff_session(curator):
        secret = services.create_token(name="mine", scopes=["curation"], user_id=curator.pk).secret
        with pytest.raises(Forbidden):
            services.create_token(name="theirs", scopes=["curation"], user_id=other.pk)
    answer = Client().get("/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json() | {"scopes": 0} == {
        "kind": "staff",
        "via": "token",
        "scopes": 0,
        "subject": curator.username,
        "display_name": "",
        "principal_id": None,
        "workspace": None,
    }
    with staff_session(other):
        assert not ApiToken.objects.filter(user_id=curator.pk).exists()
    User.objects.filter(pk=curator.pk).update(is_staff=False)
    assert status(secret) == 401


def test_grants_are_given_by_superusers() -> None:
    world = make_world()
    person = User.objects.create_user("person", is_staff=True)
    with staff_session(make_staff(world.workspace, groups=("Operator",))), pytest.raises(Forbidden):
        services.give_grant(user=person, workspace=world.workspace, grant="curate", reason="no")
    with staff_session(world.superuser):
        services.give_grant(user=person, workspace=world.workspace, grant="curate", reason="new role")
        services.join_group(user=person, workspace=world.workspace, title="Auditor", reason="new role")
        with pytest.raises(InvalidRequest):
            services.give_grant(user=person, workspace=world.workspace, grant="everything", reason="no")
    with staff_session(person):
        assert selectors.holds(world.workspace.pk, "curate")
        assert selectors.holds(world.workspace.pk, "audit")
    with staff_session(world.superuser):
        services.take_grant(user=person, workspace=world.workspace, grant="curate", reason="left")
        services.leave_group(user=person, workspace=world.workspace, title="Auditor", reason="left")
    with staff_session(person):
        assert not selectors.granted_workspaces("curate", "audit")


@pytest.mark.parametrize(
    ("given", "subject"), [("ann", "token:ann"), ("shared", "shared"), ("github:7", "github:7")]
)
def test_a_bare_name_is_a_token_subject(given, subject) -> None:
    assert subjects.parse(given) == subject


@pytest.mark.parametrize("given", ["", " ann", "a\x00b", "a" * 600, "a\nb"])
def test_names_that_are_none(given) -> None:
    with pytest.raises(InvalidRequest):
        subjects.parse(given)


def test_create_token_prints_a_secret_once(capsys) -> None:
    world = make_world()
    arguments = ["--workspace", world.workspace.slug, "--principal", "ann", "--scopes", "search", "memory"]
    call_command("create_token", *arguments)
    printed = capsys.readouterr().out.strip()
    answer = Client().get("/v1/me", headers={"Authorization": f"Bearer {printed}"}).json()
    assert (answer["subject"], answer["scopes"]) == ("token:ann", ["memory", "search"])
    with pytest.raises(CommandError, match="unknown_workspace"):
        call_command("create_token", "--workspace", "nowhere", *arguments[2:])
    with pytest.raises(CommandError, match="no such staff user"):
        call_command("create_token", *arguments, "--as", "nobody")
