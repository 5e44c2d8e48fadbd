"""Where a process finds its servers: the environment first, else what the embedded default wrote in var/."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
