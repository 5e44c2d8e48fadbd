"""A workspace from off to a pilot and back, as its operators do it: on the pages of a running installation.

Two persons, an alarm that is rehearsed in a disposable database and received, a pilot's own searches, and proof at
the end that off is off.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core import clock
from tests.support.mail import MailServer, mail_server
from tests.support.stack import Stack, running_stack, wait
from tests.support.staff_desk import StaffDesk, signed_in

pytestmark = [pytest.mark.installation, pytest.mark.timeout(900)]

RELEASE = "0123abcd"
RUNS = "/admin/observations/activationrun/"
REHEARSAL = "rehearsal"
QUESTION = "how do signing keys rotate"
TEXTS = {
    "rotate": "Signing keys rotate every quarter; the old key stays until its last record is gone.",
    "restore": "A restore begins with closing the gate and ends with two persons opening it.",
    "alarms": "Alarms go to the on-call person, and are repeated every four hours.",
}


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture(scope="module")
def stack(mail: MailServer) -> Iterator[Stack]:
    """An installation that may collect hashes, of a release that it knows."""
    keys = {"key-1": "a-key-of-this-test-alone-" * 2}
    with running_stack(
        port=18300,
        MEMORY_RELEASE=RELEASE,
        OBSERVATION_MODE_CEILING="hash",
        OBSERVATION_HMAC_KEYS=json.dumps(keys),
        OBSERVATION_HMAC_ACTIVE_KEY="key-1",
        OBSERVATION_BACKUP_DAYS="30",
        EMAIL_HOST="127.0.0.1",
        EMAIL_PORT=str(mail.port),
        EMAIL_TLS="false",
    ) as stack:
        yield stack


@pytest.fixture(scope="module")
def people(stack: Stack) -> Iterator[tuple[StaffDesk, StaffDesk]]:
    """Ana operates, Ben reviews; both were made by the administrator."""
    with signed_in(stack, "admin", stack.password) as admin:
        groups = re.findall(r'value="([0-9a-f-]{36}:[^"]+)"', admin.html("/admin/auth/user/create/"))
        made = {
            name: admin.act_html(
                "/admin/auth/user/create/",
                username=name,
                groups=[group for group in groups if group.endswith(f":{title}")],
            )
            for name, title in (("ana", "Operator"), ("ben", "Retention reviewer"))
        }
    secrets = {name: re.search(r"<output[^>]*>([^<]+)</output>", html) for name, html in made.items()}
    with (
        signed_in(stack, "ana", secrets["ana"][1]) as ana,  # type: ignore[index]
        signed_in(stack, "ben", secrets["ben"][1]) as ben,  # type: ignore[index]
    ):
        yield ana, ben


@pytest.fixture(scope="module")
def pilot(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The token of the one who will take part, in a workspace with something to find."""
    folder: Path = tmp_path_factory.mktemp("handbook")
    lines = [json.dumps({"_id": name, "title": name, "text": text}) for name, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = ("--workspace", "demo", "--principal", "shared", "--collection", "handbook")
    stack.manage("import_beir", str(folder), *given)
    wanted = ("--workspace", "demo", "--principal", "pilot", "--scopes", "search", "feedback")
    return stack.manage("create_token", *wanted).strip()


def searched(stack: Stack, token: str) -> dict[str, Any]:
    with stack.client_of(token) as http:
        answer = http.post("/v1/search", json={"query": QUESTION, "corpus": "shared"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def rehearsed(stack: Stack, run: str) -> list[dict[str, Any]]:
    """B7, B8 and B9 in a database that is made for it and marked as disposable."""
    urls = json.loads((stack.var / "connections.json").read_text())
    named = {"app": "DATABASE_URL", "owner": "DATABASE_OWNER_URL", "admin": "DATABASE_ADMIN_URL"}
    elsewhere = {
        variable: urls[login].replace("/memory?", f"/{REHEARSAL}?", 1) for login, variable in named.items()
    } | {"BROKER_URL": urls["broker"]}
    elsewhere["DATABASE_ADMIN_URL"] = urls["admin"]
    stack.manage("prepare_database", **elsewhere)
    for step in ("alarms", "restore"):
        refused = stack.try_manage("journal_rehearsal", step, "--run", run, **elsewhere)
        assert "not marked as disposable" in refused
    assert "Type the name" in stack.try_manage("journal_rehearsal", "flag", "--name", "memory", **elsewhere)
    stack.manage("journal_rehearsal", "flag", "--name", REHEARSAL, **elsewhere)
    erased = (stack.var / "erasures.jsonl").read_bytes()
    printed = "".join(
        stack.manage("journal_rehearsal", step, "--run", run, **elsewhere) for step in ("alarms", "restore")
    )
    assert (stack.var / "erasures.jsonl").read_bytes() == erased
    return [json.loads(line) for line in printed.splitlines()]


def measured_by_ci(run: str) -> list[dict[str, Any]]:
    shown = {
        "A1": {"clean_tree": True, "equals_main": True, "suites_green": True, "run": 4711},
        "A5": {"disposable": True, "run": 4712},
    }
    common = {"run_id": run, "result": "pass", "release": RELEASE, "method": "ci.1"}
    return [
        common | {"item": item, "measured": measured, "observed_at": clock.iso(clock.now())}
        for item, measured in shown.items()
    ]


def post_all(http: httpx.Client, bodies: list[dict[str, Any]]) -> None:
    for body in bodies:
        answer = http.post("/v1/observations/evidence", json=body)
        assert answer.status_code == 201, answer.text


def connected(ana: StaffDesk, mail: MailServer) -> None:
    """A live destination of alarms that a person has confirmed after a letter arrived."""
    made = "/admin/operations/destination/"
    workspace = re.search(r'<option value="([0-9a-f-]{36})"', ana.html(f"{made}create/"))
    assert workspace
    given = {"name": "on-call", "kind": "email", "address": "on-call@example.org", "use": "live"}
    shown = ana.act_html(f"{made}create/", workspace=workspace[1], **given)
    key = re.search(rf"{made}([0-9a-f-]{{36}})/", shown)
    assert key
    ana.act(f"{made}{key[1]}/test/")
    wait(lambda: mail.letters, "the letter")
    ana.act(f"{made}{key[1]}/confirm/")


def test_from_off_to_a_pilot_and_back(
    stack: Stack, people: tuple[StaffDesk, StaffDesk], pilot: str, mail: MailServer
) -> None:
    ana, ben = people
    workspace = re.search(r'<option value="([0-9a-f-]{36})"', ana.html(f"{RUNS}open/"))
    assert workspace
    opened = ana.act_html(f"{RUNS}open/", workspace=workspace[1], mode="hash")
    found = re.search(rf"{RUNS}([0-9a-f-]{{36}})/", opened)
    assert found
    run, page = found[1], f"{RUNS}{found[1]}/"
    assert "mode off" in ana.page(f"{page}change/")
    assert "_meta" not in searched(stack, pilot)

    # A and B: what CI and the rehearsal measured, what the machine sees here, what a second person vouches for.
    connected(ana, mail)
    rehearsal = rehearsed(stack, run)
    assert [line["result"] for line in rehearsal] == ["pass", "pass", "pass"], rehearsal
    assert rehearsal[0]["measured"]["seconds_since_success"] >= 1860
    with stack.client() as ci:
        post_all(ci, [*measured_by_ci(run), *rehearsal])
    stack.manage("shell", "-c", "from apps.observations.tasks import expire; expire.delay()")
    wait(lambda: "Failed" not in ana.act(f"{page}look/all/"), "the machine's half")
    for item in ("A3", "A4", "B9", "B10", "B11"):
        ben.act(f"{page}vouch/{item}/", result="pass")
    for item in ("B7", "B8"):
        alarm = re.search(r'<option value="([0-9a-f]{32})"', ben.html(f"{page}vouch/{item}/"))
        assert alarm
        ben.act(f"{page}vouch/{item}/", result="pass", alarm=alarm[1])
    assert "Next: ask for the approval" in ana.page(f"{page}change/"), ana.page(f"{page}change/")

    # Two persons.
    ana.act(f"{page}request/")
    assert "You asked for it; another person approves." in ana.page(f"{page}change/")
    assert "Approved." in ben.act(f"{page}approve/")
    assert "0 take part" in ana.page(f"{page}change/")
    with stack.client_of(pilot) as http:
        principal = http.get("/v1/me").json()["principal_id"]
    terms = {"purpose": "retrieval-quality", "consent_version": "2026-01"}
    ana.act("/admin/observations/enrolment/enrol/", principal=principal, **terms)
    assert "Enabled" in ana.act(f"{page}enable/")

    # C: through the front door, and as the pilot itself sees it.
    assert "Passed: C2" in ana.act(f"{page}look/C2/", query=QUESTION)
    for item in ("C3", "C4"):
        assert f"Passed: {item}" in ana.act(f"{page}look/{item}/")
    ben.act(f"{page}vouch/C2/", result="pass")
    assert "The pilot is verified" in ana.page(f"{page}change/")
    assert (
        wait(lambda: searched(stack, pilot).get("_meta"), "the journal")["retrieval/persistence"] == "durable"
    )

    # And back.
    assert "Off, as generation" in ana.act(f"{page}stop/")
    assert "_meta" not in searched(stack, pilot)
    wait(lambda: "Passed: D1" in ana.act(f"{page}look/D1/"), "every process")
    assert "Passed: D2" in ana.act(f"{page}look/D2/")
    ben.act(f"{page}vouch/D2/", result="pass")
    shown = ana.page(f"{page}change/")
    assert "shutdown verified" in shown
    assert "held exclusively" in shown
    assert "Failed: D4" in ana.act(f"{page}look/D4/")  # the records keep their deadlines
    refused = stack.try_manage("migrate", "observations", "zero")
    assert "still has records" in refused
