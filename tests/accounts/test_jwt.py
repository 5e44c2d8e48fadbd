"""JWTs of trusted issuers: whom they name, and all that is refused."""

import base64
import datetime as dt
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.test import Client, override_settings
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from apps.accounts import selectors, services
from apps.accounts.credentials import caller_of_bearer
from apps.accounts.issuers import keys
from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from apps.core.problems import InvalidRequest, Problem, StateConflict, Unauthenticated
from tests.support.factories import make_staff, make_world
from tests.support.tls import https_server

pytestmark = pytest.mark.django_db

ISS, AUD = "https://login.example.org", "memory"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def jwk(key, kid: str, **more) -> dict:
    kinds = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    algorithm = next((a for kind, a in kinds.items() if isinstance(key, kind)), OKPAlgorithm)
    return json.loads(algorithm.to_jwk(key.public_key())) | {"kid": kid} | more


def claims(**changes) -> dict:
    now = int(time.time())
    found = {"iss": ISS, "aud": AUD, "sub": "ann", "iat": now, "exp": now + 300, "nbf": now - 5} | changes
    return {name: value for name, value in found.items() if value is not None}


def token(key=RSA_KEY, algorithm="RS256", kid: str | None = "k1", **changes) -> str:
    headers = {"kid": kid} if kid else {}
    return jwt.encode(claims(**changes), key, algorithm, headers=headers)


def trust(world, **changes):
    values = {
        "workspace": world.workspace.pk,
        "iss": ISS,
        "audience": AUD,
        "subject_prefix": "oidc:login#",
        "algorithms": ["RS256", "ES256", "EdDSA"],
        "scopes": ["search", "feedback"],
        "pinned_keys": [jwk(RSA_KEY, "k1"), jwk(EC_KEY, "k2"), jwk(ED_KEY, "k3")],
    } | changes
    with staff_session(world.superuser):
        return services.create_issuer(**values)


def call(text: str):
    return caller_of_bearer(f"Bearer {text}")


@pytest.fixture(autouse=True)
def _no_keys_of_others():
    keys.forget()


def test_a_subject_becomes_a_principal_at_first_sight() -> None:
    world = make_world()
    trust(world)
    first, again = call(token()), call(token(EC_KEY, "ES256", "k2"))
    assert first == again == call(token(ED_KEY, "EdDSA", "k3"))
    assert first.kind == "principal"
    assert first.via == "jwt"
    assert first.scopes == {"search", "feedback"}
    assert first.identity.workspace_id == world.workspace.pk
    with staff_session(world.superuser):
        assert Principal.objects.defer("hash_key").get(pk=first.identity.principal_id).subject == (
            "oidc:login#ann"
        )
    assert call(token(sub="bob")).identity.principal_id != first.identity.principal_id


def test_through_http_and_a_disabled_principal() -> None:
    world = make_world()
    trust(world)
    caller = call(token())
    headers = {"Authorization": f"Bearer {token()}"}
    assert Client().get("/v1/me", headers=headers).status_code == 200
    with staff_session(world.superuser):
        services.disable_principal(caller.identity.principal_id, reason="left")
    refused = Client().get("/v1/me", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


def unsigned(header: dict, body: dict) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in (header, body)]
    return ".".join([*parts, ""])


def public_pem() -> bytes:
    from cryptography.hazmat.primitives import serialization

    return RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def hmac_with_public_key() -> str:
    import hashlib
    import hmac

    head = unsigned({"alg": "HS256", "kid": "k1", "typ": "JWT"}, claims()).rstrip(".")
    signature = hmac.new(public_pem(), head.encode(), hashlib.sha256).digest()
    return f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


NOW = int(time.time())
BAD = {
    "none": lambda: unsigned({"alg": "none"}, claims()),
    "None": lambda: unsigned({"alg": "None", "kid": "k1"}, claims()),
    "no algorithm": lambda: unsigned({"kid": "k1"}, claims()),
    "hmac with the public key": hmac_with_public_key,
    "another key": lambda: token(OTHER_KEY),
    "key of another id": lambda: token(RSA_KEY, kid="k2"),
    "unknown key id": lambda: token(kid="k9"),
    "key id not text": lambda: unsigned({"alg": "RS256", "kid": 7}, claims()),
    "algorithm not allowed": lambda: token(algorithm="RS512"),
    "expired": lambda: token(exp=NOW - 3600),
    "no expiry": lambda: token(exp=None),
    "expiry not a number": lambda: token(exp="soon"),
    "not yet": lambda: token(nbf=NOW + 3600),
    "issued in the future": lambda: token(iat=NOW + 3600),
    "another audience": lambda: token(aud="else"),
    "no audience": lambda: token(aud=None),
    "audience not text": lambda: token(aud=[1]),
    "another issuer": lambda: token(iss="https://evil.example.org"),
    "no issuer": lambda: token(iss=None),
    "issuer with NUL": lambda: token(iss=ISS + "\x00"),
    "issuer with a lone surrogate": lambda: unsigned({"alg": "RS256"}, claims(iss="\ud800")),
    "no subject": lambda: token(sub=None),
    "empty subject": lambda: token(sub=""),
    "subject with NUL": lambda: token(sub="a\x00b"),
    "subject too long": lambda: token(sub="a" * 600),
    "critical header": lambda: jwt.encode(
        claims(), RSA_KEY, "RS256", headers={"kid": "k1", "crit": ["x"], "x": 1}
    ),
    "cut": lambda: token()[:-20],
    "body changed": lambda: ".".join(
        [token().split(".")[0], unsigned({}, claims(sub="bob")).split(".")[1], token().split(".")[2]]
    ),
    "not base64": lambda: "a.b.c",
    "empty parts": lambda: "..",
    "deep": lambda: ".".join(
        [
            token().split(".")[0],
            base64.urlsafe_b64encode(b"[" * 5000).decode().rstrip("="),
            token().split(".")[2],
        ]
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_whatever_is_wrong_is_the_same_401(name) -> None:
    world = make_world()
    trust(world)
    with pytest.raises(Unauthenticated) as raised:
        call(BAD[name]())
    assert raised.value.document() == Unauthenticated().document()
    with staff_session(world.superuser):
        assert Principal.objects.filter(workspace=world.workspace).count() == 2


def test_an_inactive_issuer_is_refused() -> None:
    world = make_world()
    issuer = trust(world)
    with staff_session(world.superuser):
        services.change_issuer(issuer.pk, active=False, reason="left")
    with pytest.raises(Unauthenticated):
        call(token())


def test_one_audience_leads_to_one_workspace() -> None:
    world, other = make_world(), make_world()
    trust(world)
    with pytest.raises(StateConflict):
        trust(other)
    trust(other, audience="other")
    assert call(token(aud="other")).identity.workspace_id == other.workspace.pk
    with pytest.raises(Unauthenticated):
        call(token(aud=["other", AUD]))
    assert call(token(aud=["elsewhere", AUD])).identity.workspace_id == world.workspace.pk


def test_scopes_are_the_issuers_narrowed_by_its_claim() -> None:
    world = make_world()
    issuer = trust(world)
    assert call(token(scope="monitor erase")).scopes == {"search", "feedback"}
    with staff_session(world.superuser):
        services.change_issuer(issuer.pk, scope_claim="scope", reason="narrow")
    assert call(token(scope="openid search erase")).scopes == {"search"}
    assert call(token(scope=["feedback", 3])).scopes == {"feedback"}
    assert call(token()).scopes == set()
    assert call(token(scope={"search": 1})).scopes == set()


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"algorithms": ["none"]}, "/algorithms"),
        ({"algorithms": ["HS256"]}, "/algorithms"),
        ({"algorithms": []}, "/algorithms"),
        ({"scopes": ["everything"]}, "/scopes"),
        ({"jwks_url": "http://login.example.org/keys"}, "/jwks_url"),
        ({"pinned_keys": []}, "/jwks_url"),
        ({"pinned_keys": [{"kty": "oct", "k": "c2VjcmV0"}]}, "/pinned_keys/0"),
        ({"pinned_keys": [{"kty": "RSA"}]}, "/pinned_keys/0"),
        ({"pinned_keys": [jwk(rsa.generate_private_key(65537, 1024), "w")]}, "/pinned_keys/0"),
        ({"pinned_keys": [json.loads(RSAAlgorithm.to_jwk(RSA_KEY))]}, "/pinned_keys/0"),
        ({"subject_prefix": "token:"}, "/subject_prefix"),
        ({"subject_prefix": "shared"}, "/subject_prefix"),
        ({"subject_prefix": "oidc:login"}, "/subject_prefix"),
        ({"subject_prefix": ""}, "/subject_prefix"),
    ],
)
def test_an_issuer_that_may_not_be_trusted(changes, pointer) -> None:
    world = make_world()
    with pytest.raises(InvalidRequest) as raised:
        trust(world, **changes)
    assert raised.value.pointer == pointer


def test_prefixes_that_run_into_each_other_are_refused() -> None:
    world = make_world()
    trust(world)
    with pytest.raises(InvalidRequest):
        trust(world, iss="https://other.example.org", subject_prefix="oidc:")


def test_only_superusers_manage_issuers() -> None:
    world = make_world()
    operator = make_staff(world.workspace, groups=("Operator",))
    with pytest.raises(Problem) as raised, staff_session(operator):
        services.create_issuer(
            workspace=world.workspace.pk,
            iss=ISS,
            audience=AUD,
            subject_prefix="oidc:x#",
            algorithms=["RS256"],
            scopes=[],
            pinned_keys=[jwk(RSA_KEY, "k1")],
        )
    assert raised.value.status == 403
    with staff_session(operator):
        assert not selectors.is_superuser()


class KeySet:
    """What a served key set answers, and how often it was asked."""

    def __init__(self) -> None:
        self.keys = [jwk(RSA_KEY, "k1")]
        self.status, self.asked = 200, 0
        self.body: bytes | None = None

    def __call__(self, request) -> None:
        self.asked += 1
        request.send_response(self.status)
        request.end_headers()
        request.wfile.write(self.body or json.dumps({"keys": self.keys}).encode())


@pytest.fixture
def served(tmp_path, monkeypatch):
    key_set = KeySet()
    with https_server(tmp_path, key_set) as (address, authority):
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        key_set.address = f"{address}/keys"
        with override_settings(OUTBOUND_PRIVATE_HOSTS={"localhost"}):
            yield key_set


class Time:
    """Moves the clock of the key cache."""

    def __init__(self, monkeypatch) -> None:
        self.ahead = 0.0
        real = time.monotonic
        monkeypatch.setattr(keys.time, "monotonic", lambda: real() + self.ahead)


def test_a_key_set_is_fetched_once_and_again_for_a_new_key(served, monkeypatch) -> None:
    moved = Time(monkeypatch)
    world = make_world()
    trust(world, pinned_keys=[], jwks_url=served.address)
    for _ in range(3):
        call(token())
    assert served.asked == 1
    served.keys = [jwk(OTHER_KEY, "k5")]
    with pytest.raises(Unauthenticated):
        call(token(OTHER_KEY, kid="k5"))
    assert served.asked == 1  # asked a moment ago: invented key ids must not hammer the issuer
    moved.ahead = keys.COOLDOWN + 1
    call(token(OTHER_KEY, kid="k5"))
    assert served.asked == 2
    with pytest.raises(Unauthenticated):
        call(token())


def test_an_issuer_that_does_not_answer_keeps_its_last_keys_for_a_while(served, monkeypatch) -> None:
    moved = Time(monkeypatch)
    world = make_world()
    trust(world, pinned_keys=[], jwks_url=served.address)
    call(token())
    served.status = 500
    moved.ahead = keys.FRESH + 1
    call(token())
    assert served.asked == 2
    moved.ahead = keys.FRESH + keys.STALE + 2
    with pytest.raises(Unauthenticated):
        call(token())


@pytest.mark.parametrize("body", [b"", b"nothing", b"[]", b'{"keys": 3}', b'{"keys": [3, {}]}', b"x" * 70000])
def test_a_key_set_that_is_none_is_401(served, body) -> None:
    served.body = body or b" "
    world = make_world()
    trust(world, pinned_keys=[], jwks_url=served.address)
    with pytest.raises(Unauthenticated):
        call(token())


def test_a_private_key_set_address_is_refused_unless_listed(served) -> None:
    world = make_world()
    trust(world, pinned_keys=[], jwks_url=served.address)
    with override_settings(OUTBOUND_PRIVATE_HOSTS=frozenset()), pytest.raises(Unauthenticated):
        call(token())
    assert served.asked == 0


def test_symmetric_weak_and_private_keys_of_a_key_set_are_not_used(served) -> None:
    world = make_world()
    weak = rsa.generate_private_key(65537, 1024)
    served.keys = [
        jwk(weak, "weak"),
        json.loads(RSAAlgorithm.to_jwk(OTHER_KEY)) | {"kid": "private"},
        jwk(RSA_KEY, "enc", use="enc"),
        jwk(RSA_KEY, "other", alg="RS512"),
    ]
    trust(world, pinned_keys=[], jwks_url=served.address)
    for key, kid in ((weak, "weak"), (OTHER_KEY, "private"), (RSA_KEY, "enc"), (RSA_KEY, "other")):
        with pytest.raises(Unauthenticated):
            call(token(key, kid=kid))


def test_a_token_without_a_key_id_tries_the_fitting_keys() -> None:
    world = make_world()
    trust(world)
    assert call(token(EC_KEY, "ES256", None)).via == "jwt"
    assert call(token(kid=None, exp=int(dt.datetime.now(dt.UTC).timestamp()) + 60)).via == "jwt"
