"""Calls to addresses that people entered: https, public, bounded."""

import threading

import pytest
from django.test import override_settings

from apps.core import outbound
from tests.support.tls import https_server


@pytest.fixture
def server(tmp_path, monkeypatch):
    seen = []
    stop = threading.Event()

    def handle(request) -> None:
        seen.append((request.path, request.headers["Host"]))
        if request.path == "/moved":
            request.send_response(302)
            request.send_header("Location", "https://example.org/")
            request.end_headers()
            return
        request.send_response(200)
        request.end_headers()
        if request.path == "/endless":
            while not stop.wait(0.02):
                request.wfile.write(b"x")
                request.wfile.flush()
        request.wfile.write(b"a" * (5000 if request.path == "/large" else 5))

    with https_server(tmp_path, handle) as (address, authority):
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        yield address, seen
        stop.set()


def test_a_listed_host_is_reached_by_its_name(server) -> None:
    address, seen = server
    with override_settings(OUTBOUND_PRIVATE_HOSTS={"localhost"}):
        answer = outbound.request("GET", f"{address}/keys")
    assert (answer.status, answer.body) == (200, b"aaaaa")
    assert seen == [("/keys", address.removeprefix("https://"))]


def test_a_private_host_that_is_not_listed_is_never_connected_to(server) -> None:
    address, seen = server
    with pytest.raises(outbound.OutboundRefused, match="private_address"):
        outbound.request("GET", f"{address}/keys")
    assert not seen


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "::ffff:10.0.0.1",
        "2002:a00:1::",
        "64:ff9b:1::1",
        "64:ff9b::10.0.0.1",
        "ff02::1",
    ],
)
def test_addresses_that_are_not_of_the_open_internet(address, monkeypatch) -> None:
    monkeypatch.setattr(outbound, "resolve", lambda host, port: ["93.184.216.34", address])
    with pytest.raises(outbound.OutboundRefused, match="private_address"):
        outbound.checked_address("keys.example.org", 443)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1"])
def test_public_addresses(address, monkeypatch) -> None:
    monkeypatch.setattr(outbound, "resolve", lambda host, port: [address])
    assert outbound.checked_address("keys.example.org", 443) == address


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "ftp://example.org/",
        "https://",
        "https://user:secret@example.org/",
        "https://example.org:99999/",
        "https://[::1/",
        "file:///etc/passwd",
        "",
    ],
)
def test_addresses_that_are_refused_unread(url) -> None:
    with pytest.raises(outbound.OutboundRefused):
        outbound.check_url(url)


@override_settings(OUTBOUND_PRIVATE_HOSTS={"localhost"})
def test_an_answer_is_bounded_and_no_redirect_followed(server) -> None:
    address, seen = server
    with pytest.raises(outbound.OutboundFailed, match="too_large"):
        outbound.request("GET", f"{address}/large", max_bytes=1000)
    with pytest.raises(outbound.OutboundFailed, match="timeout"):
        outbound.request("GET", f"{address}/endless", seconds=0.3)
    assert outbound.request("GET", f"{address}/moved").status == 302
    assert len(seen) == 3


@override_settings(OUTBOUND_PRIVATE_HOSTS={"localhost"})
def test_a_certificate_of_nobody_is_a_failure(server, monkeypatch) -> None:
    address, seen = server
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(outbound.OutboundFailed, match="not_reached"):
        outbound.request("GET", f"{address}/keys")
    assert not seen


def test_the_proxy_of_the_environment_is_not_asked(server, monkeypatch) -> None:
    address, _ = server
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with override_settings(OUTBOUND_PRIVATE_HOSTS={"localhost"}):
        assert outbound.request("GET", f"{address}/keys").status == 200
