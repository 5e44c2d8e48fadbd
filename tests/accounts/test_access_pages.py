"""Issuers and staff on their pages: superusers change them through the services, each change is audited."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts import selectors
from apps.accounts.models import TrustedIssuer
from apps.core.db.sessions import staff_session
from apps.core.models import AuditEntry
from tests.support.factories import make_staff, make_superuser, make_world

pytestmark = pytest.mark.django_db
ISSUERS = "/admin/accounts/trustedissuer/"
STAFF = "/admin/auth/user/"


class Scene:
    def __init__(self) -> None:
        self.world = make_world()
        self.client = Client()
        self.client.force_login(self.world.superuser)
        self.operator = Client()
        self.operator.force_login(make_staff(self.world.workspace, "operate_collection", "audit"))

    def act(self, url: str, **fields: Any) -> Any:
        html = self.client.get(url).content.decode()
        found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
        seen = {name: unescape(value) for name, value in found}
        return self.client.post(url, {**seen, "reason": "asked for", **fields})

    def trust(self, **more: Any) -> Any:
        fields = {
            "workspace": str(self.world.workspace.pk),
            "iss": "https://login.example.org",
            "audience": "memory",
            "subject_prefix": "oidc:login#",
            "subject_claim": "sub",
            "jwks_url": "https://login.example.org/keys",
            "algorithms": ["ES256"],
            "scopes": ["search", "feedback"],
        }
        return self.act(f"{ISSUERS}create/", **(fields | more))

    def actions(self) -> list[str]:
        with staff_session(self.world.superuser):
            return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _issuer(scene: Scene) -> TrustedIssuer:
    with staff_session(scene.world.superuser):
        return TrustedIssuer.objects.get()


def test_an_issuer_is_trusted_changed_switched_off_and_on(scene: Scene) -> None:
    assert scene.trust().status_code == 302
    issuer = _issuer(scene)
    assert (issuer.scopes, issuer.algorithms, issuer.active) == (["feedback", "search"], ["ES256"], True)
    page = f"{ISSUERS}{issuer.pk}/"
    fields = {
        "subject_claim": "sub",
        "jwks_url": issuer.jwks_url,
        "algorithms": ["ES256", "EdDSA"],
        "scopes": ["search"],
    }
    assert scene.act(f"{page}change-issuer/", **fields).status_code == 302
    assert _issuer(scene).scopes == ["search"]
    assert scene.act(f"{page}deactivate/").status_code == 302
    assert not _issuer(scene).active
    assert scene.client.get(f"{page}deactivate/").status_code == 404
    assert scene.act(f"{page}activate/").status_code == 302
    assert _issuer(scene).active
    with staff_session(make_staff(scene.world.workspace, "audit")):
        entries = AuditEntry.objects.filter(object_type="accounts.trustedissuer").order_by("id")
        assert [entry.action for entry in entries] == [
            "accounts.create_issuer",
            *["accounts.change_issuer"] * 3,
        ]


def test_what_may_not_be_trusted_is_refused_in_the_form(scene: Scene) -> None:
    assert scene.trust(algorithms=["none"]).status_code == 422
    assert scene.trust(jwks_url="http://login.example.org/keys").status_code == 400
    assert scene.trust(jwks_url="", pinned_keys='[{"kty": "oct", "k": "c2VjcmV0"}]').status_code == 400
    assert scene.trust(jwks_url="", pinned_keys='{"kty": "RSA"}').status_code == 422
    with staff_session(scene.world.superuser):
        assert not TrustedIssuer.objects.exists()


def test_operators_see_issuers_and_change_none(scene: Scene) -> None:
    scene.trust()
    page = f"{ISSUERS}{_issuer(scene).pk}/"
    html = scene.operator.get(f"{page}change/").content.decode()
    assert "login.example.org" in html
    assert "Switch off…" not in html
    for url in (f"{ISSUERS}create/", f"{page}change-issuer/", f"{page}deactivate/"):
        assert scene.operator.get(url).status_code == 404
        assert scene.operator.post(url, {"reason": "r"}).status_code == 404


def test_a_staff_user_is_made_in_groups_with_a_password_shown_once(scene: Scene) -> None:
    group = f"{scene.world.workspace.pk}:Auditor"
    answer = scene.act(f"{STAFF}create/", username="ana", full_name="Ana Lind", groups=[group])
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    ana = User.objects.get(username="ana")
    assert (ana.is_staff, ana.is_superuser, ana.get_full_name()) == (True, False, "Ana Lind")
    html = answer.content.decode()
    found = [word for word in re.findall(r"[\w-]{20}", html) if ana.check_password(word)]
    assert found
    with staff_session(ana):
        assert selectors.holds(scene.world.workspace.pk, "audit")
        assert not selectors.holds(scene.world.workspace.pk, "curate")
    page = scene.client.get(f"{STAFF}{ana.pk}/change/").content.decode()
    assert found[0] not in page
    assert "accounts.create_staff" in scene.actions()
    assert scene.act(f"{STAFF}create/", username="ANA").status_code == 409
    assert scene.act(f"{STAFF}create/", username="a b").status_code == 400


def test_a_staff_user_is_given_an_address_that_nobody_else_has(scene: Scene) -> None:
    assert scene.act(f"{STAFF}create/", username="ana", email="ana@example.org").status_code == 200
    assert scene.act(f"{STAFF}create/", username="ben", email="ANA@example.org").status_code == 409
    person = make_staff(scene.world.workspace, "view_traces")
    page = f"{STAFF}{person.pk}/change-email/"
    assert scene.act(page, email="Ana@example.org").status_code == 409
    assert scene.act(page, email="no address").status_code == 422
    for email in ("ben@example.org", "Ben@example.org", ""):
        assert scene.act(page, email=email).status_code == 302
        assert User.objects.get(pk=person.pk).email == email
    assert scene.actions()[-3:] == ["accounts.change_staff_email"] * 3
    other = make_staff(scene.world.workspace, "view_traces")
    assert scene.act(f"{STAFF}{other.pk}/change-email/", email="").status_code == 302
    assert scene.operator.post(page, {"reason": "r", "email": "eve@example.org"}).status_code == 404


def test_a_staff_user_is_signed_off_at_once_and_let_in_again(scene: Scene) -> None:
    person = make_staff(scene.world.workspace, "view_traces")
    theirs = Client()
    theirs.force_login(person)
    assert theirs.get("/admin/").status_code == 200
    page = f"{STAFF}{person.pk}/"
    assert scene.act(f"{page}deactivate/").status_code == 302
    assert theirs.get("/admin/").status_code == 302
    assert scene.act(f"{page}activate/").status_code == 302
    assert theirs.get("/admin/").status_code in (200, 302)
    assert User.objects.get(pk=person.pk).is_active
    assert scene.actions()[-2:] == ["accounts.deactivate_staff", "accounts.activate_staff"]


def test_nobody_signs_off_oneself_and_others_than_superusers_nobody(scene: Scene) -> None:
    assert scene.act(f"{STAFF}{scene.world.superuser.pk}/deactivate/").status_code == 409
    assert User.objects.get(pk=scene.world.superuser.pk).is_active
    other = make_superuser()
    assert scene.act(f"{STAFF}{other.pk}/deactivate/").status_code == 302
    assert scene.operator.get(f"{STAFF}create/").status_code == 404
    assert scene.operator.post(f"{STAFF}{other.pk}/activate/", {"reason": "r"}).status_code == 404
