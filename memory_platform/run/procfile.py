"""The Procfile, and the supervisor configuration that is written from it."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^(?P<name>[A-Za-z][A-Za-z0-9_-]*):\s*(?P<command>\S.*)$")
_RETRIES = 1_000_000  # never give up: a promise kept by beat must not end with a bad minute


@dataclass(frozen=True, slots=True)
class Conduct:
    """How supervisor starts and stops a process. Those of higher priority stop first."""

    priority: int = 30
    starts_alone: bool = False
    stop_signal: str = "TERM"
    stop_seconds: int = 20


SERVERS = ("postgres", "valkey")
WEB = "web"
# The application starts when its database is ready, and ends before the servers do.
CONDUCT = {
    "postgres": Conduct(priority=10, starts_alone=True, stop_signal="INT", stop_seconds=30),
    "valkey": Conduct(priority=10, starts_alone=True),
    WEB: Conduct(priority=30),
    "worker": Conduct(priority=30),
    "beat": Conduct(priority=30, stop_seconds=10),
}


def read_procfile(path: Path) -> dict[str, str]:
    """Process names and their commands, in the file's order. Blank lines and comments are passed over."""
    processes: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise ValueError(f"{path.name}, line {number}: not of the form name: command")
        processes[match["name"]] = match["command"].strip()
    return processes


def supervisor_configuration(processes: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """The configuration of a supervisord that runs in the foreground.

    `variables` fill `$NAME` in the commands. Paths come from the environment (`MEMORY_VAR`,
    `MEMORY_SUPERVISOR_SOCKET`), because a path may hold what this format takes for a comment.
    """
    sections = [_HEAD]
    for name, command in processes.items():
        filled = string.Template(command).substitute(variables).replace("%", "%%")
        sections.append(_program(name, filled, CONDUCT.get(name, Conduct())))
    return "\n".join(sections)


def _program(name: str, command: str, conduct: Conduct) -> str:
    leash = "" if name in SERVERS else "python -m memory_platform.run.leash "
    return f"""[program:{name}]
command={leash}{command}
priority={conduct.priority}
autostart={str(conduct.starts_alone).lower()}
autorestart=true
startsecs=1
startretries={_RETRIES}
stopsignal={conduct.stop_signal}
stopwaitsecs={conduct.stop_seconds}
killasgroup=true
redirect_stderr=true
stdout_logfile=%(ENV_MEMORY_VAR)s/log/{name}.log
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=3
"""


_HEAD = """; Written from the Procfile at each start.
[supervisord]
nodaemon=true
silent=true
logfile=%(ENV_MEMORY_VAR)s/log/supervisord.log
logfile_maxbytes=5MB
logfile_backups=2
pidfile=%(ENV_MEMORY_VAR)s/run/supervisord.pid
childlogdir=%(ENV_MEMORY_VAR)s/log
umask=077

[unix_http_server]
file=%(ENV_MEMORY_SUPERVISOR_SOCKET)s
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""
