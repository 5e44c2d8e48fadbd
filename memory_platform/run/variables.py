"""Who may know what: the environment of the application's processes, and of the commands that set up."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_platform.embedded import Installation
from memory_platform.environment import BASE_DIR, Environment
from memory_platform.run.ports import address, bracketed

# The application never holds a login that may change the schema, the roles or what monitors read.
WITHHELD = ("DATABASE_OWNER_URL", "DATABASE_ADMIN_URL", "MONITOR_DATABASE_URL", "MEMORY_DATABASE_LOGIN")
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


def command_variables(env: Environment, installation: Installation) -> dict[str, str]:
    """For `manage.py`: what was given, and the generated key. It finds the logins where they are kept."""
    variables = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
    variables["MEMORY_VAR"] = str(installation.var)
    variables["PYTHONUNBUFFERED"] = "1"
    variables.setdefault("PYTHONPATH", str(BASE_DIR))
    variables.setdefault("ERASURE_FILE", str(installation.erasure_file))
    if env.secret_key is None:
        variables["SECRET_KEY"] = installation.secret_key()
    return variables


def application_variables(
    commands: Mapping[str, str], env: Environment, connections: Mapping[str, str], port: int
) -> dict[str, str]:
    """For web, worker and beat: the login `memory_app` and the broker, and no other URL."""
    variables = {name: value for name, value in commands.items() if name not in WITHHELD}
    variables["DATABASE_URL"] = env.database_url or connections["app"]
    variables["BROKER_URL"] = env.broker_url or connections["broker"]
    variables["BIND"] = bracketed(env.bind)
    variables["PORT"] = str(port)
    variables.setdefault("PUBLIC_URL", address(env.bind, port))
    return variables
