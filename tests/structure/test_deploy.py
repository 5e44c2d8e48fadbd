"""The files of a deployment: the processes of the Procfile, each with the login it may have."""

import configparser
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory_platform.environment import Environment
from memory_platform.run.procfile import read_procfile
from tests.support import ROOT

RUNNING = ("web", "worker", "beat")
OF_OPERATORS = {"DATABASE_OWNER_URL", "DATABASE_ADMIN_URL", "MONITOR_DATABASE_URL", "MEMORY_DATABASE_LOGIN"}
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    return dict(document["services"])


def program(command: list[str]) -> list[str]:
    """The program of a command and, for celery, its subcommand."""
    name = Path(command[0]).name
    return [name, *[word for word in command if word in ("worker", "beat")]]


@pytest.mark.parametrize("name", RUNNING)
def test_compose_gives_running_processes_no_login_of_operators(services: dict[str, Any], name: str) -> None:
    given = services[name]["environment"]
    assert not OF_OPERATORS & set(given)
    assert "memory_app:" in given["DATABASE_URL"]
    assert "memory_owner" not in str(services[name])


def test_compose_names_settings_that_exist(services: dict[str, Any]) -> None:
    known = {name.upper() for name in Environment.model_fields}
    for name in (*RUNNING, "prepare"):
        assert set(services[name]["environment"]) <= known


def test_units_are_those_of_the_procfile() -> None:
    processes = read_procfile(ROOT / "Procfile")
    assert [unit.stem for unit in UNITS] == sorted(f"memory-{name}" for name in RUNNING)
    for unit in UNITS:
        parsed = configparser.ConfigParser(interpolation=None, strict=False)
        parsed.optionxform = str  # type: ignore[assignment, method-assign]
        parsed.read(unit)
        started = shlex.split(parsed["Service"]["ExecStart"])
        assert program(started) == program(shlex.split(processes[unit.stem.removeprefix("memory-")]))
        assert parsed["Service"]["Restart"] == "always"
        assert "OWNER_URL" not in parsed["Service"].get("Environment", "")
