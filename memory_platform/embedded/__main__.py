"""`python -m memory_platform.embedded postgres|valkey`: become that server, in the foreground."""

import os
import signal
import sys

from memory_platform.embedded.exceptions import EmbeddedError
from memory_platform.embedded.installation import Installation
from memory_platform.embedded.processes import end_with_parent
from memory_platform.environment import environment


def main(arguments: list[str]) -> str | int:
    if arguments not in (["postgres"], ["valkey"]):
        return "usage: python -m memory_platform.embedded postgres|valkey"
    installation = Installation(environment().memory_var)
    try:
        installation.prepare()
        if arguments == ["postgres"]:
            _become_postgres(installation)
        _become_valkey(installation)
    except EmbeddedError as error:
        return str(error)
    return 0


def _become_postgres(installation: Installation) -> None:
    server = installation.postgres
    server.prepare()
    command, variables = server.command(), server.environment()
    os.chdir("/")
    server.user.become()
    end_with_parent(signal.SIGINT)
    os.execve(command[0], command, variables)  # noqa: S606 - our own server


def _become_valkey(installation: Installation) -> None:
    server = installation.valkey
    server.prepare()
    command = server.command()
    end_with_parent(signal.SIGTERM)
    os.execve(command[0], command, {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"})  # noqa: S606


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
