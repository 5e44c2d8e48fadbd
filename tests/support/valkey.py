"""A Valkey of a test's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_platform.embedded import redis_client_url
from memory_platform.embedded.valkey import EmbeddedValkey


@contextmanager
def running_valkey(folder: Path) -> Iterator[str]:
    """The address of a running server, in the words of the client library."""
    server = EmbeddedValkey(folder / "valkey", folder / "run", durable=False)
    server.start()
    try:
        yield redis_client_url(server.url)
    finally:
        server.stop()
