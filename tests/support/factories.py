"""Makes what tests stand on, through the services and sessions of the product."""

from dataclasses import dataclass
from itertools import count

from django.contrib.auth.models import Group, User
from guardian.shortcuts import assign_perm

from apps.accounts import services
from apps.accounts.models import Principal, Workspace
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import staff_session

_numbers = count(1)


@dataclass(frozen=True)
class World:
    """A workspace with a superuser who made it and one principal."""

    workspace: Workspace
    superuser: User
    principal: PrincipalIdentity


def make_superuser() -> User:
    return User.objects.create_superuser(f"root{next(_numbers)}", password="a-long-password")


def make_workspace(superuser: User | None = None) -> Workspace:
    with staff_session(superuser or make_superuser()):
        number = next(_numbers)
        return services.create_workspace(slug=f"space-{number}", name=f"Space {number}")


def make_principal(workspace: Workspace, subject: str | None = None) -> PrincipalIdentity:
    return services.enter_principal(workspace=workspace.pk, subject=subject or f"token:p{next(_numbers)}")


def make_world() -> World:
    superuser = make_superuser()
    workspace = make_workspace(superuser)
    return World(workspace, superuser, make_principal(workspace))


def make_staff(workspace: Workspace, *grants: str, groups: tuple[str, ...] = ()) -> User:
    """A staff user with the grants, directly, and in the named ready-made groups of the workspace."""
    user = User.objects.create_user(f"staff{next(_numbers)}", password="a-long-password", is_staff=True)
    with staff_session(make_superuser()):
        for grant in grants:
            assign_perm(f"accounts.{grant}", user, workspace)
        for title in groups:
            user.groups.add(Group.objects.get(name=f"{workspace.slug}: {title}"))
    return user


def make_token(principal: PrincipalIdentity, *scopes: str, superuser: User | None = None) -> str:
    """The secret of a new token of the principal."""
    with staff_session(superuser or make_superuser()):
        owner = Principal.objects.defer("hash_key").get(pk=principal.principal_id)
        return services.create_token(name="test", scopes=list(scopes), principal=owner).secret
