"""Where a process finds its servers: the environment first, else what the embedded default wrote in var/."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from memory_platform.environment import Environment

CONNECTIONS_FILE = "connections.json"
NOWHERE = "postgresql://memory_app@/memory?host=/nonexistent"


@dataclass(frozen=True, slots=True)
class ConnectionUrls:
    """URLs of the logins (PostgreSQL) and of the broker. Empty where a process must not know one."""

    app: str
    owner: str
    admin: str
    probe: str
    broker: str


def connection_urls(env: "Environment") -> ConnectionUrls:
    """The environment's URLs; what is absent there comes from `var/connections.json` (mode 0600)."""
    path = env.memory_var / CONNECTIONS_FILE
    found: dict[str, str] = {}
    if env.database_url is None and path.exists():
        found = json.loads(path.read_text())
    app = env.database_url or found.get("app", NOWHERE)
    return ConnectionUrls(
        app=app,
        owner=env.database_owner_url or found.get("owner", NOWHERE),
        admin=env.database_admin_url or found.get("admin", ""),
        probe=env.monitor_database_url or found.get("probe", ""),
        broker=env.broker_url or found.get("broker", ""),
    )


def socket_broker_url(socket: Path, database: int = 0) -> str:
    """The URL by which Celery reaches a Valkey on a unix socket."""
    return f"redis+socket://{quote(str(socket))}?virtual_host={database}"


def celery_broker_url(url: str) -> str:
    """A broker URL in Celery's words; what it is not is left as it stands: `unix://` → `redis+socket://`."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return socket_broker_url(Path(unquote(parts.path)), int(database))


def redis_client_url(url: str) -> str:
    """A broker URL in the words of the client library `redis`: `redis+socket://` → `unix://`."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    database = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    return f"unix://{quote(unquote(parts.path))}?db={database}"
