"""`python -m memory_platform.run.leash COMMAND…`: become the command, and end when the parent does."""

import os
import signal
import sys

from memory_platform.embedded.processes import end_with_parent


def main(command: list[str]) -> None:
    end_with_parent(signal.SIGTERM)
    os.execvp(command[0], command)  # noqa: S606 - a fixed command of the Procfile


if __name__ == "__main__":
    main(sys.argv[1:])
