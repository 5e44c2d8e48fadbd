"""`python -m memory_platform.run`: start all, say where it is, stop all on Ctrl-C."""

import fcntl
import http.client
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from memory_platform.embedded import EmbeddedError, Installation, StartFailed
from memory_platform.embedded.directories import socket_directory
from memory_platform.embedded.postgres import wait_for_login
from memory_platform.embedded.private_files import write_private
from memory_platform.embedded.system_user import this_user
from memory_platform.environment import BASE_DIR, Environment, environment
from memory_platform.run.announce import ADMIN_PASSWORD_FILE, Welcome
from memory_platform.run.ports import address, free_port, reachable
from memory_platform.run.procfile import SERVERS, WEB, read_procfile, supervisor_configuration
from memory_platform.run.steps import set_up
from memory_platform.run.supervision import Supervision
from memory_platform.run.variables import application_variables, command_variables

SOCKET_NAME = "supervisor.sock"
LONGEST_SOCKET_NAME = SOCKET_NAME + ".1234567890"  # supervisord binds beside and moves
DATABASE_SECONDS = 60.0
LIVE_SECONDS = 90.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Ctrl-C, or a request to end."""


class AlreadyRunning(EmbeddedError):
    """Another `make run` works in the same folder."""


def main() -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, _ask_to_stop)
    env = environment()
    installation = Installation(env.memory_var)
    try:
        installation.prepare()
        with _alone(installation.var):
            _run(env, installation)
    except StopAsked:
        return 0
    except EmbeddedError as error:
        print(error, file=sys.stderr)
    return 1


def _run(env: Environment, installation: Installation) -> None:
    port = free_port(env.bind, env.port)
    if port != env.port:
        say(f"Port {env.port} is taken: using {port}.")
    commands = command_variables(env, installation)
    supervision = _supervision(env, installation, commands, port)
    first = not (installation.var / ADMIN_PASSWORD_FILE).exists()
    try:
        say("Preparing the database …")
        _wait_for_database(env, installation)
        set_up(env, commands, installation)
        say("Starting web, worker and beat …")
        supervision.start_process(WEB)
        _wait_until_live(supervision, env.bind, port)  # first, because a person waits for it
        for name in _processes(env):
            if name not in (*SERVERS, WEB):
                supervision.start_process(name)
        say(Welcome(address(env.bind, port), installation.var, first).text())
        while not supervision.ended():
            time.sleep(1)
        raise StartFailed(f"supervisord ended: see {installation.logs}.")
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        say("\nStopping …")
        supervision.stop()
        say("Stopped.")


def _processes(env: Environment) -> dict[str, str]:
    """The Procfile without the servers that the operator brings."""
    processes = read_procfile(BASE_DIR / "Procfile")
    if env.database_url is not None:
        processes.pop("postgres", None)
    if env.broker_url is not None:
        processes.pop("valkey", None)
    return processes


def _supervision(
    env: Environment, installation: Installation, commands: dict[str, str], port: int
) -> Supervision:
    """Write all that the processes need, and start supervisord with the servers."""
    if env.database_url is None:
        say("Starting PostgreSQL and Valkey …")
        installation.postgres.prepare()
    connections = installation.write_connections()
    variables = application_variables(commands, env, connections, port)
    folder = socket_directory(installation.run / "supervisor", this_user(), LONGEST_SOCKET_NAME)
    variables["MEMORY_SUPERVISOR_SOCKET"] = str(folder / SOCKET_NAME)
    configuration = installation.run / "supervisord.conf"
    write_private(configuration, supervisor_configuration(_processes(env), variables))
    supervision = Supervision(configuration, folder / SOCKET_NAME, installation.logs)
    try:
        supervision.start(variables, BASE_DIR)
    except BaseException:
        supervision.stop()
        raise
    return supervision


def _wait_for_database(env: Environment, installation: Installation) -> None:
    if env.database_url is not None:
        wait_for_login(env.database_url, DATABASE_SECONDS)
        return
    wait_for_login(installation.postgres.url("admin", "postgres"), DATABASE_SECONDS)
    installation.postgres.ensure_database()


def _wait_until_live(supervision: Supervision, host: str, port: int) -> None:
    deadline = time.monotonic() + LIVE_SECONDS
    while not _is_live(host, port):
        if supervision.ended() or time.monotonic() > deadline:
            raise StartFailed(f"The web server does not answer.\n{supervision.log_tail('web')}")
        time.sleep(0.2)


def _is_live(host: str, port: int) -> bool:
    """Whether the web server answers as itself; anything but a server error will do."""
    connection = http.client.HTTPConnection(reachable(host), port, timeout=5)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def _alone(var: Path) -> Iterator[None]:
    """Hold the folder: two supervisors over one data folder would fight for it."""
    with (var / "run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"It runs already, with the data in {var}.") from None
        yield


def _ask_to_stop(number: int, frame: FrameType | None) -> NoReturn:
    raise StopAsked


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
