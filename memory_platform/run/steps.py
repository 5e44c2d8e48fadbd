"""What happens between the servers' start and the application's: roles, schema, first run."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_platform.embedded import StartFailed
from memory_platform.environment import BASE_DIR, Environment


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


def set_up(env: Environment, variables: Mapping[str, str], logs: Path) -> None:
    """Roles, schema, static files, and the first run's accounts.

    With servers of one's own, roles and schema are only touched when their logins are given.
    """
    embedded = env.database_url is None
    if embedded or env.database_admin_url:
        manage(["provision_roles", "--apply"], variables, logs)
    if embedded or env.database_owner_url:
        manage(["migrate", "--no-input"], variables, logs)
    manage(["collectstatic", "--no-input"], variables, logs)
    demo = ["--demo"] if env.demo else []
    manage(["first_run", *demo], variables, logs)
