"""Database logins. Web, worker and beat hold `memory_app` alone; owner commands ask for theirs by name."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict

from memory_platform.embedded import connection_urls
from memory_platform.environment import environment

env = environment()

PREPARE_AFTER = 5
"""Runs of a statement on a connection after which it is prepared there."""


def login(url: str, *, pooled: bool) -> dict[str, Any]:
    """Django's settings of one connection URL."""
    parts = conninfo_to_dict(url)
    options: dict[str, Any] = {
        key: value
        for key, value in parts.items()
        if key not in {"user", "password", "host", "port", "dbname"}
    }
    options["prepare_threshold"] = PREPARE_AFTER if env.database_prepared_statements else None
    if pooled:
        options["pool"] = {
            "min_size": env.database_pool_min,
            "max_size": env.database_pool_max,
            "timeout": 10,
        }
    return {
        "ENGINE": "apps.core.db.postgresql",
        "NAME": parts.get("dbname", "memory"),
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
        "ATOMIC_REQUESTS": True,
        "CONN_MAX_AGE": 0,
        "OPTIONS": options,
        "TEST": {"MIRROR": None},
    }


_urls = connection_urls(env)
_owner = env.memory_database_login == "owner"
DATABASES = {"default": login(_urls.owner if _owner else _urls.app, pooled=not _owner)}
