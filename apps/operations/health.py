"""Whether this process can serve: each part is asked, and answers with a code; no message, name or address."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from psycopg_pool import PoolTimeout

from apps.core.db.verify import differences
from memory_platform.embedded import redis_client_url

OK = "ok"
UNREACHABLE = "unreachable"
LOOSENED = "loosened"
PENDING = "pending"

BROKER_SECONDS = 1.0
# Anyone may ask whether we are ready, so the answers that cost are kept for a while.
ROLES_SECONDS = 60.0
MIGRATIONS_SECONDS = 15.0


@dataclass
class Cached:
    """The answer of a check for some seconds; a bad one is asked again at once."""

    ask: Callable[[], str]
    seconds: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _until: float = 0.0

    def __call__(self) -> str:
        with self._lock:
            if time.monotonic() < self._until:
                return OK
            answer = self.ask()
            if answer == OK:
                self._until = time.monotonic() + self.seconds
            return answer

    def forget(self) -> None:
        self._until = 0.0


def database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def roles() -> str:
    """`loosened`: a role may do more than declared, or a policy hides less. Other differences are still served."""
    return LOOSENED if any(found.loosens for found in differences()) else OK


def migrations() -> str:
    executor = MigrationExecutor(connection)
    return PENDING if executor.migration_plan(executor.loader.graph.leaf_nodes()) else OK


def broker() -> str:
    client = redis.Redis.from_url(
        redis_client_url(settings.CELERY_BROKER_URL),
        socket_timeout=BROKER_SECONDS,
        socket_connect_timeout=BROKER_SECONDS,
    )
    with client:
        client.ping()
    return OK


cached_roles = Cached(roles, ROLES_SECONDS)
cached_migrations = Cached(migrations, MIGRATIONS_SECONDS)
CHECKS: dict[str, Callable[[], str]] = {
    "database": database,
    "roles": cached_roles,
    "migrations": cached_migrations,
    "broker": broker,
}


def readiness() -> dict[str, str]:
    """The answer of each check: `ok`, or a code."""
    return {name: _answer(check) for name, check in CHECKS.items()}


def _answer(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseError, InterfaceError, PoolTimeout, redis.RedisError, OSError, ValueError):
        return UNREACHABLE
