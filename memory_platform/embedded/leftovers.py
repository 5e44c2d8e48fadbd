"""What a crash leaves behind in a data folder, and when it is safe to take it away.

PostgreSQL clears a stale lock file itself, unless the process id in it has meanwhile gone to another process
of the same user, which happens after a restart of a container. A lock is only ever removed here when no
process works in the data folder: a server and every one of its children have it as current directory.
"""

import time
from pathlib import Path

import psutil

POLL_SECONDS = 0.1


def processes_in(folder: Path) -> list[psutil.Process]:
    """Processes whose current directory is the folder, as far as this user may see them."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def wait_until_unused(folder: Path, seconds: float) -> bool:
    """Give the children of a killed server, or a server that is stopping, time to go."""
    resolved = folder.resolve()
    deadline = time.monotonic() + seconds
    while processes_in(resolved):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def remove_reused_locks(data: Path, sockets: Path) -> None:
    """Remove lock files whose process id is now another program's. Nothing runs in `data`: see above."""
    for lock in [data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")]:
        try:
            owner = int(lock.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            continue  # an empty lock is PostgreSQL's own to judge
        if psutil.pid_exists(owner):
            lock.unlink()
