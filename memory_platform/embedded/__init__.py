"""The embedded PostgreSQL and Valkey: the default when no server is named in the environment."""

from memory_platform.embedded.urls import ConnectionUrls, connection_urls

__all__ = ["ConnectionUrls", "connection_urls"]
