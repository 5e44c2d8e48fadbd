"""What happens between the servers' start and the application's: roles, schema, first run."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_platform.embedded import Installation, StartFailed
from memory_platform.environment import BASE_DIR, Environment
from memory_platform.run.announce import TOKEN_FILE


def manage(arguments: list[str], variables: Mapping[str, str], logs: Path) -> None:
    """Run a command of `manage.py`. Raises StartFailed with what it said."""
    with (logs / "setup.log").open("ab") as log:
        log.write(f"$ manage.py {' '.join(arguments)}\n".encode())
        log.flush()
        start = log.tell()
        ran = subprocess.run(
            [sys.executable, str(BASE_DIR / "manage.py"), *arguments],
            cwd=BASE_DIR,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    if ran.returncode != 0:
        said = (logs / "setup.log").read_bytes()[start:].decode(errors="replace").strip()
        raise StartFailed(f"manage.py {arguments[0]} failed:\n{said[-4000:]}")


def set_up(env: Environment, variables: Mapping[str, str], installation: Installation) -> None:
    """Roles, schema, static files, and the first run's accounts.

    With servers of one's own, roles and schema are only touched when their logins are given.
    """
    logs = installation.logs
    manage(["prepare_database"], variables, logs)
    _collect_static_files(variables, installation)
    if not (installation.var / TOKEN_FILE).exists():
        manage(["first_run", *(["--demo"] if env.demo else [])], variables, logs)


def _collect_static_files(variables: Mapping[str, str], installation: Installation) -> None:
    """Collect again only when a file of ours or a library has changed."""
    digest = hashlib.sha256()
    for stamp in sorted(Path(sys.prefix).glob("installed-*")):
        digest.update(stamp.read_bytes())
    for path in sorted(BASE_DIR.glob("apps/*/static/**/*")):
        status = path.stat()
        digest.update(f"{path.relative_to(BASE_DIR)} {status.st_size} {status.st_mtime_ns}\n".encode())
    collected = installation.var / "static.collected"
    if not collected.exists() or collected.read_text() != digest.hexdigest():
        manage(["collectstatic", "--no-input"], variables, installation.logs)
        collected.write_text(digest.hexdigest())
