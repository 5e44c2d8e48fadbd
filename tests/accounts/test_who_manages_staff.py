"""Grants, groups and staff are changed by superusers alone, whatever code writes; and each change is audited."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, transaction
from guardian.shortcuts import assign_perm

from apps.accounts import selectors, services
from apps.core.db.sessions import staff_session
from apps.core.models import AuditEntry
from tests.support.factories import make_staff, make_superuser, make_world

pytestmark = pytest.mark.django_db


def refused(act) -> None:
    with pytest.raises(DatabaseError, match="only a superuser"), transaction.atomic():
        act()


def test_a_staff_session_cannot_raise_itself() -> None:
    world = make_world()
    user = make_staff(world.workspace, *("operate_collection", "audit"))
    group = Group.objects.get(name=f"{world.workspace.slug}: Auditor")
    with staff_session(user):
        refused(lambda: assign_perm("accounts.curate", user, world.workspace))
        refused(lambda: assign_perm("accounts.curate", group, world.workspace))
        refused(lambda: user.groups.add(group))
        refused(lambda: User.objects.filter(pk=user.pk).update(is_superuser=True))
        refused(lambda: User.objects.filter(pk=world.superuser.pk).update(email="x@example.org"))
        refused(lambda: User.objects.create_user("friend", is_staff=True))
        refused(lambda: Group.objects.create(name="friends"))
        assert not selectors.holds(world.workspace.pk, "curate")


def test_staff_change_their_own_password_and_address() -> None:
    world = make_world()
    user = make_staff(world.workspace, "audit")
    with staff_session(user):
        user.set_password("another-long-password")
        user.email = "me@example.org"
        user.save()
    assert User.objects.get(pk=user.pk).check_password("another-long-password")


def test_superusers_see_no_data_until_they_grant_themselves_and_that_shows() -> None:
    world = make_world()
    curious = make_superuser()
    with staff_session(curious):
        assert not selectors.granted_workspaces("view_traces", "reveal_text")
        services.give_grant(user=curious, workspace=world.workspace, grant="view_traces", reason="incident 7")
        assert selectors.holds(world.workspace.pk, "view_traces")
        services.join_group(user=curious, workspace=world.workspace, title="Curator", reason="incident 7")
    auditor = make_staff(world.workspace, groups=("Auditor",))
    with staff_session(auditor):
        shown = AuditEntry.objects.filter(action="accounts.grant_self").order_by("sequence")
        assert [(e.actor_user_id, e.reason, e.details) for e in shown] == [
            (curious.pk, "incident 7", {"user": curious.pk, "grant": "view_traces"}),
            (curious.pk, "incident 7", {"user": curious.pk, "group": "Curator"}),
        ]


def test_every_change_of_accounts_has_its_entry() -> None:
    world = make_world()
    person = User.objects.create_user("person", is_staff=True)
    with staff_session(world.superuser):
        principal = services.create_principal(workspace=world.workspace.pk, subject="github:1", reason="a")
        token = services.create_token(name="t", scopes=["search"], principal=principal, reason="b")
        renewed = services.rotate_token(token.token.pk, reason="c")
        services.revoke_token(renewed.token.pk, reason="d")
        services.revoke_token(renewed.token.pk, reason="again")
        services.disable_principal(principal.pk, reason="e")
        services.enable_principal(principal.pk, reason="f")
        services.give_grant(user=person, workspace=world.workspace, grant="audit", reason="g")
        services.take_grant(user=person, workspace=world.workspace, grant="audit", reason="h")
    with staff_session(make_staff(world.workspace, groups=("Auditor",))):
        entries = AuditEntry.objects.filter(workspace=world.workspace).order_by("sequence")
        found = [(entry.action.removeprefix("accounts."), entry.reason) for entry in entries]
        text = str([vars(entry) for entry in entries])
    assert [entry for entry in found if entry[1]] == [
        ("create_principal", "a"),
        ("create_token", "b"),
        ("create_token", "c"),
        ("revoke_token", "c"),
        ("revoke_token", "d"),
        ("disable_principal", "e"),
        ("enable_principal", "f"),
        ("give_grant", "g"),
        ("take_grant", "h"),
    ]
    assert token.secret not in text
    assert renewed.secret not in text


def test_a_reason_that_may_not_be_kept_stops_the_change() -> None:
    world = make_world()
    from apps.core.problems import InvalidRequest

    with staff_session(world.superuser), pytest.raises(InvalidRequest), transaction.atomic():
        services.disable_principal(world.principal.principal_id, reason="password: hunter2hunter2")
    with staff_session(world.superuser):
        assert selectors.get_principal(world.principal.principal_id).disabled_at is None
