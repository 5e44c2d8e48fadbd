"""Limits a minute, counted in a real Valkey."""

import datetime as dt

import pytest
from django.test import Client, RequestFactory, override_settings

from apps.accounts import throttles
from apps.core import clock
from apps.core.problems import RateLimited
from tests.support.factories import make_principal, make_token, make_world
from tests.support.valkey import running_valkey

AT = dt.datetime(2026, 3, 1, 23, 59, 45, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory):
    with running_valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture(autouse=True)
def _counted(valkey):
    throttles.counters.forget()
    with override_settings(THROTTLE_URL=valkey):
        yield
    throttles.counters.forget()


def test_a_limit_is_counted_a_minute_and_says_when_to_come_back() -> None:
    with clock.frozen(AT) as frozen:
        for _ in range(3):
            throttles.require("test", "a", 3)
        with pytest.raises(RateLimited) as raised:
            throttles.require("test", "a", 3)
        assert raised.value.headers["Retry-After"] == "15"
        throttles.require("test", "b", 3)
        throttles.require("other", "a", 3)
        frozen.advance(dt.timedelta(seconds=15))
        throttles.require("test", "a", 3)


def test_counters_go_by_themselves_and_name_nobody() -> None:
    throttles.require("test", "203.0.113.9", 1)
    client = throttles.counters._connected()
    keys = [key for key in client.keys("memory:throttle:*") if b":test:" in key]
    assert keys
    assert all(0 < client.ttl(key) <= throttles.KEPT_SECONDS for key in keys)
    assert not any(b"203.0.113.9" in key for key in keys)


def test_zero_is_no_limit() -> None:
    for _ in range(5):
        throttles.require("none", "a", 0)


@pytest.mark.django_db
@override_settings(THROTTLE_TOKEN_PER_MINUTE=2)
def test_each_token_has_its_own_limit() -> None:
    world = make_world()
    first, second = (make_token(p, "search") for p in (world.principal, make_principal(world.workspace)))
    with clock.frozen(AT):
        answers = [
            Client().get("/v1/me", headers={"Authorization": f"Bearer {secret}"})
            for secret in (first, first, first, second)
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200]
    assert answers[2]["Retry-After"] == "15"
    assert answers[2].json()["code"] == "rate_limited"
    assert answers[2]["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@override_settings(THROTTLE_ADDRESS_PER_MINUTE=2)
def test_an_address_has_a_limit_whatever_it_sends() -> None:
    with clock.frozen(AT):
        here = [Client(REMOTE_ADDR="203.0.113.7").get("/v1/me").status_code for _ in range(3)]
        there = Client(REMOTE_ADDR="203.0.113.8").get("/v1/me").status_code
        page = Client(REMOTE_ADDR="203.0.113.7").get("/admin/login/").status_code
    assert here == [401, 401, 429]
    assert there == 401
    assert page == 200


@pytest.mark.django_db
@override_settings(THROTTLE_FAILURES_PER_MINUTE=2)
def test_after_too_many_wrong_credentials_none_is_tried() -> None:
    world = make_world()
    good = {"Authorization": f"Bearer {make_token(world.principal, 'search')}"}
    caller = Client(REMOTE_ADDR="203.0.113.20")
    with clock.frozen(AT) as frozen:
        wrong = [caller.get("/v1/me", headers={"Authorization": "Bearer no"}).status_code for _ in range(3)]
        assert wrong == [401, 401, 429]
        assert caller.get("/v1/me", headers=good).status_code == 429
        frozen.advance(dt.timedelta(minutes=1))
        assert caller.get("/v1/me", headers=good).status_code == 200


@pytest.mark.django_db
def test_without_valkey_calls_pass_and_are_counted() -> None:
    world = make_world()
    before = throttles.UNCOUNTED._value.get()
    with override_settings(THROTTLE_URL="unix:///nowhere/valkey.sock", THROTTLE_TOKEN_PER_MINUTE=1):
        secret = make_token(world.principal, "search")
        for _ in range(3):
            answer = Client().get("/v1/me", headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code == 200
    assert throttles.UNCOUNTED._value.get() >= before + 3


@pytest.mark.parametrize(
    ("behind", "header", "address"),
    [
        (0, "198.51.100.1", "127.0.0.1"),
        (1, "198.51.100.1, 203.0.113.1", "203.0.113.1"),
        (2, "6.6.6.6, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
        (2, "198.51.100.1", "127.0.0.1"),
        (1, "", "127.0.0.1"),
    ],
)
def test_the_address_is_what_the_trusted_proxy_saw(behind, header, address) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": header})
    with override_settings(TRUSTED_PROXIES=behind):
        assert throttles.client_address(request) == address
