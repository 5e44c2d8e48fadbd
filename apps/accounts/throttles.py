"""Limits a minute, counted in Valkey for all processes together.

Windows are whole minutes of the clock, so that `Retry-After` is the rest of this one. Without Valkey calls pass
and are counted as uncounted: an outage of the counter must not become one of the platform. Keys are hashed; an
address is forgotten two minutes after its last call.
"""

import hashlib
import hmac
import ipaddress
import threading
import time
from typing import Final

import redis
import structlog
from django.conf import settings
from django.http import HttpRequest
from prometheus_client import Counter

from apps.core import clock
from apps.core.problems import RateLimited

WINDOW: Final = 60
KEPT_SECONDS: Final = 2 * WINDOW
ANSWER_SECONDS: Final = 0.1
REST_SECONDS: Final = 5.0
"""How long a counter that did not answer is left alone."""

UNCOUNTED = Counter("memory_throttle_uncounted_total", "Calls let pass because Valkey did not count them.")
LIMITED = Counter("memory_throttle_limited_total", "Calls refused for their number.", ("limit",))

log = structlog.get_logger(__name__)


class Counters:
    """One connection pool a process, made at the first call."""

    def __init__(self) -> None:
        self._client: redis.Redis | None = None
        self._url = ""
        self._lock = threading.Lock()
        self._resting_until = 0.0

    def add(self, *keys: str, amounts: tuple[int, ...]) -> list[int] | None:
        """Add to each counter of this minute and return the new values; None where Valkey does not answer."""
        now = time.monotonic()
        if now < self._resting_until:
            return None
        try:
            pipeline = self._connected().pipeline(transaction=False)
            for key, amount in zip(keys, amounts, strict=True):
                pipeline.incrby(key, amount)
                pipeline.expire(key, KEPT_SECONDS)
            return [int(value) for value in pipeline.execute()[::2]]
        except (redis.RedisError, OSError, ValueError) as error:
            self._resting_until = now + REST_SECONDS
            log.warning("throttle_uncounted", error=type(error).__name__)
            return None

    def _connected(self) -> redis.Redis:
        url = settings.THROTTLE_URL
        with self._lock:
            if self._client is None or self._url != url:
                self._url, self._resting_until = url, 0.0
                self._client = redis.Redis.from_url(
                    url,
                    socket_timeout=ANSWER_SECONDS,
                    socket_connect_timeout=ANSWER_SECONDS,
                )
            return self._client

    def forget(self) -> None:
        """Connect anew at the next call (tests, another address)."""
        with self._lock:
            self._client, self._url, self._resting_until = None, "", 0.0


counters = Counters()


def require(limit: str, who: str, per_minute: int) -> None:
    """Count one call of `who` under the limit's name. Raises RateLimited; 0 means no limit."""
    if per_minute <= 0:
        return
    found = counters.add(_key(limit, who), amounts=(1,))
    if found is None:
        UNCOUNTED.inc()
    elif found[0] > per_minute:
        raise refused(limit)


def require_address(request: HttpRequest, *, with_credential: bool) -> None:
    """Count a call by its address, and refuse one with a credential after too many wrong ones from there."""
    address = client_address(request)
    keys = (_key("address", address), _key("failures", address))
    found = counters.add(*keys, amounts=(1, 0))
    if found is None:
        UNCOUNTED.inc()
        return
    calls, failures = found
    if 0 < settings.THROTTLE_ADDRESS_PER_MINUTE < calls:
        raise refused("address")
    if with_credential and 0 < settings.THROTTLE_FAILURES_PER_MINUTE <= failures:
        raise refused("failures")


def note_failure(request: HttpRequest) -> None:
    """A credential that was refused counts against its address."""
    counters.add(_key("failures", client_address(request)), amounts=(1,))


def client_address(request: HttpRequest) -> str:
    """The address that called, behind the proxies that the setting TRUSTED_PROXIES counts."""
    behind = settings.TRUSTED_PROXIES
    forwarded = [
        part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()
    ]
    if behind and len(forwarded) >= behind:
        return forwarded[-behind]
    return str(request.META.get("REMOTE_ADDR") or "local")


def sign_in_address(request: HttpRequest) -> str | None:
    """The same for the table of failed sign-ins, which holds addresses alone; None on a socket of this machine."""
    address = client_address(request)
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None


def refused(limit: str) -> RateLimited:
    LIMITED.labels(limit).inc()
    seconds = WINDOW - int(clock.now().timestamp()) % WINDOW
    return RateLimited("Try again when the minute is over.", retry_after=seconds)


def _key(limit: str, who: str) -> str:
    window = int(clock.now().timestamp()) // WINDOW
    digest = hmac.new(settings.SECRET_KEY.encode(), f"{limit}\x00{who}".encode(), hashlib.sha256).hexdigest()
    return f"memory:throttle:{limit}:{digest[:32]}:{window}"
