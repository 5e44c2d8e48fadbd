"""The embedded Valkey: the broker of background work and the counters of throttles, on a unix socket."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_platform.embedded.binaries import valkey_server
from memory_platform.embedded.directories import SHORT_PREFIX, socket_directory
from memory_platform.embedded.processes import RunningServer
from memory_platform.embedded.system_user import this_user
from memory_platform.embedded.urls import socket_broker_url

SOCKET_NAME = "valkey.sock"
START_SECONDS = 30.0


class EmbeddedValkey:
    """One Valkey server; with `tcp_port` it listens on 127.0.0.1, without a password, as well.

    It appends every write to its log before it answers, so what a killed server acknowledged is there again
    after the start; after a loss of power up to one second may be missing.
    """

    def __init__(
        self, data_dir: Path | str, run_dir: Path | str, tcp_port: int | None = None, *, durable: bool = True
    ) -> None:
        self.data = Path(data_dir).absolute()
        self.wished_run = Path(run_dir).absolute()
        self.tcp_port = tcp_port
        self.durable = durable
        self._server = RunningServer(self.data.with_name(f"{self.data.name}.log"), "SIGTERM")

    @property
    def socket(self) -> Path:
        return socket_directory(self.wished_run, this_user(), SOCKET_NAME) / SOCKET_NAME

    @property
    def url(self) -> str:
        """For Celery; `redis_client_url` turns it into the one for the client library."""
        return socket_broker_url(self.socket)

    def prepare(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        self.data.chmod(0o700)

    def command(self) -> list[str]:
        """The foreground process of the server; `prepare` came before."""
        options = {
            "port": str(self.tcp_port or 0),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.data),
            "save": "",
            "appendonly": "yes" if self.durable else "no",
            # With `everysec` a write waits up to two seconds for an fsync under way, while the client has its answer:
            # what is killed then loses what it acknowledged.
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "databases": "4",
            "daemonize": "no",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [str(valkey_server()), *arguments]

    def start(self) -> None:
        """Prepare, start and wait until the server answers. Raises StartFailed with the end of its log."""
        self.prepare()
        self._server.start(self.command())
        self._server.wait_for(self.answers, START_SECONDS)

    def stop(self) -> None:
        self._server.stop()

    def destroy(self) -> None:
        """Stop, and remove the data and the socket."""
        self.stop()
        shutil.rmtree(self.wished_run.resolve(), ignore_errors=True)
        if self.wished_run.is_symlink():
            self.wished_run.unlink()
        shutil.rmtree(self.data, ignore_errors=True)

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


@contextmanager
def temporary_valkey(*, durable: bool = False) -> Iterator[EmbeddedValkey]:
    """A running server in a folder of its own that is gone afterwards; for tests and benchmarks."""
    folder = Path(tempfile.mkdtemp(prefix=f"{SHORT_PREFIX}valkey-"))
    server = EmbeddedValkey(folder / "data", folder / "run", durable=durable)
    try:
        server.start()
        yield server
    finally:
        server.destroy()
        shutil.rmtree(folder, ignore_errors=True)
