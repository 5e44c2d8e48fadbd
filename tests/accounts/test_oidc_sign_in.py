"""Staff sign-in through a provider that runs: who gets in, who does not, and what is said, kept and logged of it."""

import io
import logging
import re
import ssl
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx
import jwt
import pytest
from axes.models import AccessAttempt
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import resolve
from django_otp.plugins.otp_totp.models import TOTPDevice

from apps.accounts import second_factor
from apps.accounts.issuers import keys
from apps.accounts.sign_in import OIDC_BACKEND
from apps.core import clock, outbound
from apps.core.db.sessions import staff_session
from apps.core.models import AuditEntry
from memory_platform.logging import formatter
from tests.support.factories import make_workspace
from tests.support.oidc import Provider, make_key, provider_of_the_platform

pytestmark = pytest.mark.django_db
CALLBACK = "http://testserver/oidc/callback/"
PASSWORD = "a-long-password"
NOT_STAFF = "No staff user goes with that account"
NOT_TRUSTED = "could not be trusted"
NO_ANSWER = "does not answer"
BEGUN_ELSEWHERE = "was not begun in this browser"
DECLINED = "did not let you in"


class Visit:
    """A browser without a screen: the platform in this process, the provider over https."""

    def __init__(self, provider: Provider, **more: Any) -> None:
        self.provider = provider
        self.client = Client(**more)

    def begin(self, target: str = "/admin/") -> str:
        """Click the button of the sign-in page; the provider's address that it leads to."""
        page = self.client.get("/admin/login/", {"next": target}).content.decode()
        button = re.search(r'href="(/oidc/authenticate/[^"]*)"', page)
        assert button, page
        answer = self.client.get(button[1].replace("&amp;", "&"))
        assert answer.status_code == 302
        return str(answer["Location"])

    def at_provider(self, address: str) -> str:
        """Where the provider sends the browser."""
        answer = httpx.get(address, verify=_trusting(self.provider), trust_env=False)
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    def back(self, address: str) -> Any:
        """Follow the provider's redirect to the platform."""
        assert address.startswith(CALLBACK), address
        parts = urlsplit(address)
        return self.client.get(f"{parts.path}?{parts.query}")

    def sign_in(self, target: str = "/admin/") -> Any:
        return self.back(self.at_provider(self.begin(target)))

    def is_in(self) -> bool:
        return self.client.get("/admin/").status_code == 200


def _trusting(provider: Provider) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=provider.authority)


def with_query(address: str, **changed: str) -> str:
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changed
    return urlunsplit(parts._replace(query=urlencode(query)))


@pytest.fixture
def provider(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with provider_of_the_platform(tmp_path, settings, monkeypatch) as made:
        made.redirect_uris = {CALLBACK}
        yield made


@pytest.fixture
def ann(provider: Provider) -> User:
    return User.objects.create_superuser("ann", "ann@example.org", PASSWORD)


@pytest.fixture
def visit(provider: Provider) -> Visit:
    return Visit(provider)


@pytest.fixture(autouse=True)
def log() -> Iterator[io.StringIO]:
    """All that is logged, at the most talkative level, as it is printed."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    handler.setFormatter(formatter())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield printed
    root.setLevel(before)
    root.removeHandler(handler)


def assert_nothing_leaked(provider: Provider, printed: str) -> None:
    """No secret, claim or address of the exchange stands in the text."""
    assert printed
    told = {text for text in provider.person.values() if isinstance(text, str)}
    for secret in (provider.secrets | told | {provider.client_secret}) - {""}:
        assert secret not in printed
    assert "@example.org" not in printed


def assert_refused(visit: Visit, answer: Any, status: int, words: str, log: io.StringIO, code: str) -> None:
    page = answer.content.decode()
    assert answer.status_code == status, page
    assert words in page
    assert "Request id" in page
    assert 'href="/admin/login/"' in page
    assert answer["Cache-Control"] == "no-store"
    assert_nothing_leaked(visit.provider, page)
    assert_nothing_leaked(visit.provider, log.getvalue())
    assert f'"code": "{code}"' in log.getvalue()
    assert SESSION_KEY not in visit.client.session
    assert not visit.is_in()
    # Nothing of the exchange is kept for later either.
    assert not AccessAttempt.objects.exists()


def test_staff_sign_in_and_land_where_they_wanted_to(
    provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    answer = visit.sign_in("/admin/auth/user/?q=a&o=1")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/auth/user/?q=a&o=1")
    assert visit.is_in()
    assert visit.client.get("/v1/me").json()["via"] == "session"
    assert visit.client.session[SESSION_KEY] == str(ann.pk)
    assert visit.client.session[BACKEND_SESSION_KEY] == OIDC_BACKEND
    ann.refresh_from_db()
    assert ann.last_login is not None
    assert provider.asked == ["auth", "token", "certs", "userinfo"]
    assert '"event": "staff_signed_in"' in log.getvalue()
    assert_nothing_leaked(provider, log.getvalue())
    kept = " ".join(str(row.get_decoded()) for row in Session.objects.all())
    assert not [secret for secret in provider.secrets if secret in kept]


def test_what_they_do_then_is_audited_under_their_name(ann: User, visit: Visit) -> None:
    workspace = make_workspace()
    visit.sign_in()
    page = "/admin/accounts/trustedissuer/create/"
    html = visit.client.get(page).content.decode()
    seen = dict(re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html))
    done = visit.client.post(
        page,
        {
            **seen,
            "reason": "asked for",
            "workspace": str(workspace.pk),
            "iss": "https://login.example.org",
            "audience": "memory",
            "subject_prefix": "oidc:login#",
            "subject_claim": "sub",
            "jwks_url": "https://login.example.org/keys",
            "algorithms": ["ES256"],
            "scopes": ["search"],
        },
    )
    assert done.status_code == 302, done.content
    with staff_session(ann):
        entry = AuditEntry.objects.get(action="accounts.create_issuer")
    assert entry.actor_user_id == ann.pk


def test_the_secret_goes_by_basic_authentication_where_the_provider_wants_that(
    provider: Provider, ann: User, visit: Visit, settings: Any
) -> None:
    settings.OIDC_TOKEN_USE_BASIC_AUTH = True
    assert visit.sign_in().status_code == 302
    assert visit.is_in()
    assert provider.client_authentication == ["basic"]


def test_the_session_is_new_and_the_code_good_once(
    provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    address = visit.at_provider(visit.begin())
    planted = visit.client.cookies["sessionid"].value
    assert visit.back(address).status_code == 302
    assert visit.client.cookies["sessionid"].value != planted
    # Who planted the session of before has nothing of it.
    thief = Client()
    thief.cookies["sessionid"] = planted
    assert thief.get("/admin/").status_code == 302
    again = visit.back(address)
    assert again.status_code == 400
    assert visit.is_in()  # a link from elsewhere signs nobody off
    assert provider.asked.count("token") == 1


def test_a_link_from_elsewhere_signs_nobody_off(ann: User, visit: Visit) -> None:
    visit.sign_in()
    answer = visit.client.get("/oidc/callback/?error=access_denied&state=x")
    assert answer.status_code == 403
    assert visit.is_in()


def test_somebody_else_takes_the_place_in_a_browser(provider: Provider, ann: User, visit: Visit) -> None:
    ben = User.objects.create_user("ben", "ben@example.org", PASSWORD, is_staff=True)
    visit.client.force_login(ann, "django.contrib.auth.backends.ModelBackend")
    before = visit.client.cookies["sessionid"].value
    provider.person = {"sub": "ben-1", "email": "ben@example.org", "email_verified": True}
    # The button is for people who are not in; a link to it is all the same.
    start = visit.client.get("/oidc/authenticate/?next=/admin/")["Location"]
    assert visit.back(visit.at_provider(start)).status_code == 302
    assert visit.client.session[SESSION_KEY] == str(ben.pk)
    assert not Session.objects.filter(session_key=before).exists()


def test_signing_out_ends_it(ann: User, visit: Visit) -> None:
    visit.sign_in()
    cookie = visit.client.cookies["sessionid"].value
    assert visit.client.post("/admin/logout/").status_code == 200
    old = Client()
    old.cookies["sessionid"] = cookie
    assert old.get("/admin/").status_code == 302
    assert old.get("/v1/me").status_code == 401
    assert not visit.is_in()
    assert not Session.objects.filter(session_key=cookie).exists()


@pytest.mark.parametrize("trusted", [True, False])
def test_the_second_factor_is_asked_unless_the_providers_counts(
    ann: User, visit: Visit, settings: Any, trusted: bool
) -> None:
    settings.STAFF_SECOND_FACTOR, settings.OIDC_SECOND_FACTOR = True, trusted
    visit.sign_in()
    assert visit.is_in() is trusted
    gate = visit.client.get("/admin/login/?next=/admin/")
    if not trusted:
        assert gate["Location"].startswith("/admin/second-factor/")
        assert "gv-qr" in visit.client.get(gate["Location"]).content.decode()


@pytest.mark.parametrize("trusted", [True, False])
def test_who_has_set_one_up_shows_it_unless_the_providers_counts(
    ann: User, visit: Visit, settings: Any, trusted: bool
) -> None:
    settings.OIDC_SECOND_FACTOR = trusted
    TOTPDevice.objects.create(user=ann, name=second_factor.NAME, confirmed=True)
    visit.sign_in()
    assert visit.is_in() is trusted


def test_the_providers_second_factor_opens_what_a_password_could_not(
    ann: User, visit: Visit, settings: Any
) -> None:
    """The same person, in the same browser: first by password alone, then through the provider, and back."""
    settings.STAFF_SECOND_FACTOR = settings.OIDC_SECOND_FACTOR = True
    form = {"username": "ann", "password": PASSWORD}
    visit.client.post("/admin/login/", form)
    assert not visit.is_in()
    before = visit.client.cookies["sessionid"].value
    start = visit.client.get("/oidc/authenticate/")["Location"]
    visit.back(visit.at_provider(start))
    assert visit.is_in()
    assert visit.client.cookies["sessionid"].value != before
    visit.client.post("/admin/logout/")
    visit.client.post("/admin/login/", form)
    assert not visit.is_in()


STRANGERS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"email": "eve@example.org"}, "no_account"),
    "not staff": ({"email": "visitor@example.org"}, "no_account"),
    "signed off": ({"email": "gone@example.org"}, "no_account"),
    "of two accounts": ({"email": "two@example.org"}, "several_accounts"),
    # PostgreSQL folds a dotless i to the same capital as an i.
    "look-alike": ({"email": "d\u0131na@example.org"}, "no_account"),
    "unverified": ({"email_verified": False}, "address_not_verified"),
    "verified in words": ({"email_verified": "true"}, "address_not_verified"),
    "without address": ({"email": None}, "address_not_verified"),
    "address of another kind": ({"email": ["ann@example.org"]}, "address_not_verified"),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_who_is_not_staff_is_refused_and_not_made(
    case: str, provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    User.objects.create_user("visitor", "visitor@example.org")
    User.objects.create_user("gone", "gone@example.org", is_staff=True, is_active=False)
    User.objects.create_user("dina", "dina@example.org", is_staff=True)
    for name in ("first", "second"):
        User.objects.create_user(name, "two@example.org", is_staff=True)
    count = User.objects.count()
    provider.user_claims, code = STRANGERS[case]
    assert_refused(visit, visit.sign_in(), 403, NOT_STAFF, log, code)
    assert User.objects.count() == count


def test_signing_a_user_off_ends_the_session_at_once(ann: User, visit: Visit) -> None:
    visit.sign_in()
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert not visit.is_in()
    assert visit.client.get("/v1/me").status_code == 401


UNTRUSTED: dict[str, tuple[dict[str, Any], str]] = {
    "nonce": ({"nonce": "of-another-sign-in"}, "wrong_nonce"),
    "no nonce": ({"nonce": None}, "claim_missing"),
    "audience": ({"aud": "another-client"}, "wrong_audience"),
    "no audience": ({"aud": None}, "claim_missing"),
    "authorized party": ({"azp": "another-client"}, "wrong_party"),
    "two audiences, no party": ({"aud": ["memory", "another-client"]}, "wrong_party"),
    "issuer": ({"iss": "https://login.example.org/realms/other"}, "wrong_issuer"),
    "no issuer": ({"iss": None}, "claim_missing"),
    "expired": ({"exp": 1_700_000_000}, "expired"),
    "no expiry": ({"exp": None}, "claim_missing"),
    "no subject": ({"sub": None}, "claim_missing"),
    "subject": ({"sub": "somebody-else"}, "wrong_subject"),
}


@pytest.mark.parametrize("case", UNTRUSTED)
def test_an_id_token_that_says_something_else_is_refused(
    case: str, provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    provider.id_claims, code = UNTRUSTED[case]
    assert_refused(visit, visit.sign_in(), 403, NOT_TRUSTED, log, code)


def test_several_audiences_are_fine_where_the_party_is_named(
    provider: Provider, ann: User, visit: Visit
) -> None:
    provider.id_claims = {"aud": ["memory", "another-client"], "azp": "memory"}
    visit.sign_in()
    assert visit.is_in()


def _claims(provider: Provider) -> dict[str, Any]:
    return {
        "iss": provider.issuer,
        "aud": provider.client_id,
        "sub": provider.person["sub"],
        "iat": int(clock.now().timestamp()),
        "exp": int((clock.now() + timedelta(minutes=5)).timestamp()),
    }


FORGERIES: dict[str, str] = {
    "unsigned": "wrong_algorithm",
    "signed with the client's secret": "wrong_algorithm",
    "signed by another key": "wrong_signature",
    "of another algorithm": "wrong_algorithm",
    "of an unknown key": "no_key",
    "no token": "malformed",
    "empty": "malformed",
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_id_token_is_refused(
    case: str, provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    other = make_key()
    # A session's nonce is known to whoever carries the browser, so a forger has it.
    address = visit.at_provider(visit.begin())
    [state] = visit.client.session["oidc_states"].values()
    claims = _claims(provider) | {"nonce": state["nonce"]}
    kid = {"kid": provider.key_id}
    if case == "unsigned":
        provider.id_token = jwt.encode(claims, None, "none", headers=kid)
    elif case == "signed with the client's secret":
        provider.id_token = jwt.encode(claims, provider.client_secret * 2, "HS256", headers=kid)
    elif case == "of another algorithm":
        provider.id_token = jwt.encode(claims, provider.key, "RS512", headers=kid)
    elif case == "of an unknown key":
        provider.id_token = jwt.encode(claims, other, "RS256", headers={"kid": "key-9"})
    elif case in ("no token", "empty"):
        provider.id_token = "" if case == "empty" else "abc.def.ghi"
    else:
        provider.signed_by = other
    assert_refused(visit, visit.back(address), 403, NOT_TRUSTED, log, FORGERIES[case])


def test_a_state_that_was_not_given_out_here_is_refused(
    provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    address = visit.at_provider(visit.begin())
    assert_refused(
        visit, visit.back(with_query(address, state="x")), 400, BEGUN_ELSEWHERE, log, "unknown_state"
    )
    elsewhere = Visit(provider)
    assert_refused(elsewhere, elsewhere.back(address), 400, BEGUN_ELSEWHERE, log, "unknown_state")
    for query in ("", "?code=x", "?state=x", "?code=&state="):
        assert visit.client.get(f"/oidc/callback/{query}").status_code == 400
    assert "token" not in provider.asked


def test_a_code_of_somebody_elses_sign_in_opens_nothing(
    provider: Provider, ann: User, visit: Visit, log: Any
) -> None:
    """A stolen code has the thief's own state put beside it: the verifier does not fit."""
    stolen = parse_qs(urlsplit(visit.at_provider(visit.begin())).query)["code"][0]
    thief = Visit(provider)
    mine = thief.at_provider(thief.begin())
    refused = thief.back(with_query(mine, code=stolen))
    assert_refused(thief, refused, 403, NOT_TRUSTED, log, "token_invalid_grant")


def test_the_password_form_takes_no_code(provider: Provider, ann: User, visit: Visit) -> None:
    address = visit.at_provider(visit.begin())
    form = {"username": "ann", "password": "wrong"}
    answer = visit.client.post(f"/admin/login/?{urlsplit(address).query}", form)
    assert answer.status_code == 200
    assert "token" not in provider.asked


def test_a_refusal_over_there_is_said(provider: Provider, ann: User, visit: Visit, log: Any) -> None:
    provider.declines = "access_denied"
    assert_refused(visit, visit.sign_in(), 403, DECLINED, log, "provider_access_denied")
    # The state is used up with it.
    assert visit.client.session["oidc_states"] == {}


def test_words_of_the_provider_are_not_repeated(visit: Visit, provider: Provider, log: Any) -> None:
    provider.secrets.add("secret-of-ann")
    address = visit.at_provider(visit.begin())
    refused = visit.back(with_query(address, error="secret-of-ann", error_description="secret-of-ann"))
    assert_refused(visit, refused, 403, DECLINED, log, "provider_error")


def test_a_wrong_client_secret_is_named_in_the_log(
    provider: Provider, ann: User, visit: Visit, log: Any, settings: Any
) -> None:
    settings.OIDC_RP_CLIENT_SECRET = "another"
    assert_refused(visit, visit.sign_in(), 403, NOT_TRUSTED, log, "token_invalid_client")


NO_ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "failed": (500, b"{}", {"token": "provider_failed", "userinfo": "provider_failed"}),
    "refused": (
        403,
        b'{"error": "ann@example.org"}',
        {"token": "token_refused", "userinfo": "claims_refused"},
    ),
    "a page": (200, b"<html>", {"token": "not_json", "userinfo": "not_json"}),
    "a list": (200, b"[]", {"token": "not_json", "userinfo": "not_json"}),
    "nothing": (200, b"{}", {"token": "no_id_token", "userinfo": "wrong_subject"}),
    "deep": (200, b'{"a":' * 9_000, {"token": "not_json", "userinfo": "not_json"}),
    "endless": (200, b" " * 400_000, {"token": "too_large", "userinfo": "too_large"}),
}


@pytest.mark.parametrize("endpoint", ["token", "userinfo", "certs"])
@pytest.mark.parametrize("case", NO_ANSWERS)
def test_an_answer_that_is_none_is_refused(
    provider: Provider, ann: User, visit: Visit, log: Any, endpoint: str, case: str
) -> None:
    status, body, codes = NO_ANSWERS[case]
    provider.answers[endpoint] = (status, body)
    # Without keys nothing can be verified, however they fail to come.
    code = codes.get(endpoint, "no_key")
    ours, words = (503, NO_ANSWER) if code in ("provider_failed", "too_large") else (403, NOT_TRUSTED)
    assert_refused(visit, visit.sign_in(), ours, words, log, code)


@pytest.mark.parametrize("endpoint", ["token", "userinfo", "certs"])
def test_a_provider_that_hangs_is_given_up(
    provider: Provider, ann: User, visit: Visit, log: Any, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "request", partial(outbound.request, seconds=0.5))
    address = visit.at_provider(visit.begin())
    provider.hangs = {endpoint}
    expected = (403, NOT_TRUSTED, "no_key") if endpoint == "certs" else (503, NO_ANSWER, "timeout")
    answer = visit.back(address)
    assert_refused(visit, answer, expected[0], expected[1], log, expected[2])


def test_a_provider_that_is_down_is_said(
    provider: Provider, ann: User, visit: Visit, log: Any, settings: Any
) -> None:
    address = visit.at_provider(visit.begin())
    settings.OIDC_OP_TOKEN_ENDPOINT = "https://localhost:1/token"
    assert_refused(visit, visit.back(address), 503, NO_ANSWER, log, "not_reached")


def test_no_transaction_is_open_while_the_provider_is_asked(
    provider: Provider, ann: User, visit: Visit
) -> None:
    assert getattr(resolve("/oidc/callback/").func, "own_transactions", False)
    assert connection.settings_dict["ATOMIC_REQUESTS"]


def test_failed_sign_ins_lock_nobody_out(provider: Provider, ann: User, log: Any) -> None:
    """Everybody of an organisation may come from one address."""
    here = {"REMOTE_ADDR": "203.0.113.40"}
    provider.user_claims = {"email": "eve@example.org"}
    for _ in range(7):
        assert Visit(provider, **here).sign_in().status_code == 403
    assert not AccessAttempt.objects.exists()
    assert Client(**here).post("/admin/login/", {"username": "ann", "password": PASSWORD}).status_code == 302


def test_a_name_that_is_locked_for_passwords_comes_in_through_the_provider(
    provider: Provider, ann: User
) -> None:
    here = {"REMOTE_ADDR": "203.0.113.41"}
    guesser = Client(**here)
    answers = [guesser.post("/admin/login/", {"username": "ann", "password": "wrong"}) for _ in range(6)]
    assert answers[-1].status_code == 429
    visit = Visit(provider, **here)
    visit.sign_in()
    assert visit.is_in()


def test_a_target_elsewhere_is_not_followed(ann: User, visit: Visit) -> None:
    answer = visit.sign_in("https://evil.example.org/")
    assert answer["Location"] == "/admin/"


def test_two_windows_sign_in_side_by_side(provider: Provider, ann: User, visit: Visit) -> None:
    first, second = visit.begin("/admin/auth/user/"), visit.begin("/admin/")
    assert visit.back(visit.at_provider(first)).status_code == 302
    assert visit.back(visit.at_provider(second)).status_code == 302
    assert visit.is_in()


def test_keys_may_change(
    provider: Provider, ann: User, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit.sign_in()
    real, ahead = keys.time.monotonic, keys.COOLDOWN + 1
    monkeypatch.setattr(keys.time, "monotonic", lambda: real() + ahead)
    provider.key, provider.key_id = make_key(), "key-2"
    other = Visit(provider)
    other.sign_in()
    assert other.is_in()
