"""HTTPS requests to addresses that people entered: key sets of issuers, webhooks.

The law of this module: https only; every address that the name resolves to is public, or the host is listed
in OUTBOUND_PRIVATE_HOSTS; the connection goes to the very address that was checked; no redirect is followed,
no proxy of the environment used; the whole exchange has one deadline, and the answer a greatest size.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from django.conf import settings

CONNECT_SECONDS = 2.0
TOTAL_SECONDS = 5.0
MAX_BYTES = 256 * 1024
# RFC 6052 and RFC 8215: addresses behind a translator to IPv4, the second of one's own network.
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
TRANSLATED_HERE = ipaddress.IPv6Network("64:ff9b:1::/48")


class OutboundRefused(Exception):
    """The address may not be called. `code` says why; nothing was sent."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class OutboundFailed(Exception):
    """The call was made and failed. `code` says how; the other side's words are not kept."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]


def check_url(url: str) -> tuple[str, int]:
    """Host and port of an https URL without credentials. Raises OutboundRefused."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 443
    except ValueError as error:
        raise OutboundRefused("not_a_url") from error
    if parts.scheme != "https":
        raise OutboundRefused("not_https")
    if not host or parts.username is not None or parts.password is not None:
        raise OutboundRefused("not_a_url")
    return host, port


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as text."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def is_public(address: str) -> bool:
    """Whether an address is one of the open Internet, also when it is wrapped in an IPv6 form."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found in TRANSLATED_HERE:
            return False
        inner = found.ipv4_mapped or found.sixtofour
        if found in TRANSLATED:
            inner = ipaddress.IPv4Address(found.packed[-4:])
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast


def checked_address(host: str, port: int) -> str:
    """One address to connect to, after all of them were checked. Raises OutboundRefused, OutboundFailed."""
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as error:
        raise OutboundFailed("name_not_found") from error
    if not addresses:
        raise OutboundFailed("name_not_found")
    listed = host.lower() in settings.OUTBOUND_PRIVATE_HOSTS
    if not listed and not all(is_public(address) for address in addresses):
        raise OutboundRefused("private_address")
    return addresses[0]


def request(
    method: str,
    url: str,
    *,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = MAX_BYTES,
    seconds: float = TOTAL_SECONDS,
) -> Answer:
    """One exchange. Raises OutboundRefused (nothing sent) or OutboundFailed (code: timeout, too_large, …)."""
    host, port = check_url(url)
    deadline = time.monotonic() + seconds
    address = checked_address(host, port)
    pinned = httpx.URL(url).copy_with(host=address)
    default_port = port == 443
    sent = {**(headers or {}), "Host": host if default_port else f"{host}:{port}"}
    timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
    try:
        with (
            httpx.Client(verify=_tls(), timeout=timeout, trust_env=False, follow_redirects=False) as client,
            client.stream(
                method, pinned, content=content, headers=sent, extensions={"sni_hostname": host}
            ) as answer,
        ):
            body = _read(answer, max_bytes, deadline)
            return Answer(answer.status_code, body, dict(answer.headers))
    except httpx.TimeoutException as error:
        raise OutboundFailed("timeout") from error
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
        raise OutboundFailed("not_reached") from error


def _tls() -> ssl.SSLContext:
    """The system's authorities; SSL_CERT_FILE names others."""
    return ssl.create_default_context()


def _read(answer: httpx.Response, max_bytes: int, deadline: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    # As they come: a chunk size would wait for a full chunk, and a slow sender would never meet the deadline.
    for chunk in answer.iter_bytes():
        size += len(chunk)
        if size > max_bytes:
            raise OutboundFailed("too_large")
        # A read timeout starts anew with every byte; the deadline does not.
        if time.monotonic() > deadline:
            raise OutboundFailed("timeout")
        chunks.append(chunk)
    return b"".join(chunks)
