"""The parts of `make run` that need no server: Procfile, ports, who knows what, what is printed."""

import configparser
import socket
from pathlib import Path

import pytest

from memory_platform.embedded import Installation
from memory_platform.environment import BASE_DIR, Environment
from memory_platform.run.announce import Welcome, curl_lines
from memory_platform.run.ports import address, free_port
from memory_platform.run.procfile import read_procfile, supervisor_configuration
from memory_platform.run.variables import application_variables, command_variables

CONNECTIONS = {"app": "postgresql://memory_app@/memory", "broker": "redis+socket:///run/valkey.sock"}


def configuration() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"))
    processes = read_procfile(BASE_DIR / "Procfile")
    parser.read_string(supervisor_configuration(processes, {"BIND": "127.0.0.1", "PORT": "8001"}))
    return parser


def test_every_process_is_started_again_for_ever() -> None:
    parser = configuration()
    programs = [section for section in parser.sections() if section.startswith("program:")]
    assert programs == ["program:postgres", "program:valkey", "program:web", "program:worker", "program:beat"]
    for program in programs:
        assert parser[program]["autorestart"] == "true"
        assert int(parser[program]["startretries"]) >= 1_000_000


def test_application_stops_before_its_servers() -> None:
    parser = configuration()
    servers = max(int(parser[f"program:{name}"]["priority"]) for name in ("postgres", "valkey"))
    application = min(int(parser[f"program:{name}"]["priority"]) for name in ("web", "worker", "beat"))
    assert application > servers


def test_port_reaches_the_web_server_and_no_path_reaches_the_configuration() -> None:
    parser = configuration()
    assert "--bind 127.0.0.1:8001" in parser["program:web"]["command"]
    assert parser["program:web"]["stdout_logfile"] == "%(ENV_MEMORY_VAR)s/log/web.log"
    assert str(BASE_DIR) not in "".join(
        value for name in parser.sections() for value in parser[name].values()
    )


def test_line_of_no_known_form_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "Procfile"
    path.write_text("# servers\n\nweb: run me\nnonsense\n")
    with pytest.raises(ValueError, match="line 4"):
        read_procfile(path)


def test_taken_port_gives_way_to_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port("127.0.0.1", port) > port


def test_free_port_is_kept() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert free_port("127.0.0.1", port) == port


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8001"),
        ("0.0.0.0", "http://127.0.0.1:8001"),
        ("::", "http://[::1]:8001"),
        ("memory.example", "http://memory.example:8001"),
    ],
)
def test_printed_address_can_be_opened_on_this_machine(host: str, expected: str) -> None:
    assert address(host, 8001) == expected


def test_application_is_given_no_login_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", "postgresql://memory_owner@/memory")
    monkeypatch.setenv("DATABASE_ADMIN_URL", "postgresql://memory_admin@/memory")
    monkeypatch.setenv("MONITOR_DATABASE_URL", "postgresql://memory_probe@/memory")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    env = Environment()
    variables = application_variables(command_variables(env, Installation(tmp_path)), env, CONNECTIONS, 8001)
    assert variables["DATABASE_URL"] == CONNECTIONS["app"]
    for login in ("memory_owner", "memory_admin", "memory_probe"):
        assert not [name for name, value in variables.items() if login in value]


def test_operators_servers_and_key_are_left_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://memory_app@db/memory")
    monkeypatch.setenv("BROKER_URL", "redis://broker/0")
    monkeypatch.setenv("SECRET_KEY", "k" * 50)
    env = Environment()
    variables = application_variables(command_variables(env, Installation(tmp_path)), env, CONNECTIONS, 8001)
    assert variables["DATABASE_URL"] == "postgresql://memory_app@db/memory"
    assert variables["BROKER_URL"] == "redis://broker/0"
    assert variables["SECRET_KEY"] == "k" * 50


def test_secrets_are_printed_the_first_time_only(tmp_path: Path) -> None:
    (tmp_path / "admin_password").write_text("hunted\n")
    (tmp_path / "api_token").write_text("mp_gathered\n")
    first = Welcome("http://127.0.0.1:8000", tmp_path, first=True).text()
    later = Welcome("http://127.0.0.1:8000", tmp_path, first=False).text()
    assert "hunted" in first
    assert "mp_gathered" in first
    assert "hunted" not in later
    assert "mp_gathered" not in later
    assert str(tmp_path / "admin_password") in later


def test_curl_lines_carry_no_secret_and_quote_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    token = folder / "api_token"
    token.write_text("mp_gathered\n")
    lines = curl_lines("http://127.0.0.1:8000", token)
    assert len(lines) == 3
    assert not [line for line in lines if "mp_gathered" in line]
