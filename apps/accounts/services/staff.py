"""Staff users: made with an initial password that is known once, given an address, signed off and
on again. By superusers."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from apps.accounts import selectors
from apps.accounts.models import Workspace
from apps.accounts.services.grants import join_group
from apps.core import audit
from apps.core.db.sessions import current_staff
from apps.core.problems import InvalidRequest, NotFound, StateConflict

PASSWORD_BYTES: Final = 15
MAX_USERNAME: Final = 150
STAFF: Final = "auth.user"


@dataclass(frozen=True, slots=True)
class NewStaff:
    """A staff user with its initial password, which is known here and never again."""

    user: User
    password: str


def create_staff(
    *,
    username: str,
    full_name: str = "",
    email: str = "",
    groups: Iterable[tuple[Workspace, str]] = (),
    reason: str = "",
) -> NewStaff:
    """A staff user in the named groups (workspace, title). Raises Forbidden, InvalidRequest, StateConflict."""
    selectors.require_superuser()
    _check(username, email)
    _require_free(email)
    if User.objects.filter(username__iexact=username).exists():
        raise StateConflict("There is a staff user of that name.", code="staff_exists")
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    first, _, last = full_name.strip().partition(" ")
    user = User.objects.create_user(
        username, email or None, password, is_staff=True, first_name=first[:150], last_name=last[:150]
    )
    for workspace, title in groups:
        join_group(user=user, workspace=workspace, title=title, reason=reason)
    audit.record("accounts.create_staff", STAFF, user.pk, workspace=None, reason=reason)
    return NewStaff(user, password)


def change_staff_email(user_id: int, *, email: str, reason: str) -> User:
    """The address by which an OpenID provider names the user; empty: it names nobody. Idempotent.

    Raises Forbidden, InvalidRequest, NotFound, StateConflict.
    """
    user = _staff(user_id)
    _check(user.username, email)
    if user.email != email:
        _require_free(email, but=user)
        user.email = email
        user.save(update_fields=["email"])
        audit.record("accounts.change_staff_email", STAFF, user.pk, workspace=None, reason=reason)
    return user


def deactivate_staff(user_id: int, *, reason: str) -> User:
    """Sessions and tokens of the user are refused from the next request on; grants stay, unused. Idempotent.

    Raises Forbidden, NotFound, and StateConflict for oneself and for the last superuser.
    """
    user = _staff(user_id)
    if user.pk == current_staff().user_id:
        raise StateConflict("Another superuser signs you off.", code="own_account")
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if user.is_superuser and not others.exists():
        raise StateConflict("The last superuser stays.", code="last_superuser")
    return _set_active(user, False, "accounts.deactivate_staff", reason)


def activate_staff(user_id: int, *, reason: str) -> User:
    """Lets a user in again, with the grants it had. Idempotent. Raises Forbidden, NotFound."""
    return _set_active(_staff(user_id), True, "accounts.activate_staff", reason)


def _staff(user_id: int) -> User:
    selectors.require_superuser()
    found = User.objects.filter(pk=user_id, is_staff=True).first()
    if found is None:
        raise NotFound(code="unknown_staff")
    return found


def _set_active(user: User, active: bool, action: str, reason: str) -> User:
    if user.is_active != active:
        user.is_active = active
        user.save(update_fields=["is_active"])
        audit.record(action, STAFF, user.pk, workspace=None, reason=reason)
    return user


def _require_free(email: str, but: User | None = None) -> None:
    """Two staff users of one address would keep each other out. Raises StateConflict."""
    others = User.objects.filter(email__iexact=email, is_staff=True)
    if but is not None:
        others = others.exclude(pk=but.pk)
    if email and others.exists():
        raise StateConflict("Another staff user has that e-mail address.", code="address_taken")


def _check(username: str, email: str) -> None:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise InvalidRequest("Letters, digits and @ . + - _ alone.", pointer="/username") from error
    if not username or len(username) > MAX_USERNAME:
        raise InvalidRequest(f"A user name has 1 to {MAX_USERNAME} characters.", pointer="/username")
    if email:
        try:
            validate_email(email)
        except ValidationError as error:
            raise InvalidRequest("That is no e-mail address.", pointer="/email") from error
