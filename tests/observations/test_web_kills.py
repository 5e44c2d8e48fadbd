"""A web process that is killed leaves a record without an answer, never an answer without its record."""

import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.observations.test_admission import BODY, shared_of
from tests.support import journal
from tests.support.factories import World, make_token
from tests.support.library import CHAIN, store
from tests.support.web import SECONDS, Web, running_web

pytestmark = pytest.mark.django_db(transaction=True)

VARIABLES = {
    "OBSERVATION_MODE_CEILING": "platform-text",
    "OBSERVATION_HMAC_KEYS": json.dumps({journal.KEY_ID: journal.KEY}),
    "OBSERVATION_HMAC_ACTIVE_KEY": journal.KEY_ID,
}


@pytest.fixture
def library(on: World) -> World:
    store(shared_of(on), *CHAIN)
    return on


@pytest.fixture
def headers(library: World) -> dict[str, str]:
    token = make_token(library.principal, "search", superuser=library.superuser)
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def search(web: Web, headers: dict[str, str]) -> dict[str, Any] | None:
    """The answer, or None where the server hung up before it was whole."""
    try:
        status, body = web.call("POST", "/v1/search", json.dumps(BODY), headers)
        return dict(json.loads(body)) if status == 200 else None
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return None


def wait_for(condition: Callable[[], object], web: Web) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, web.log.read_text()
        time.sleep(0.02)


def test_a_kill_between_commit_and_answer_leaves_the_record_alone(
    library: World, headers, owner_connection, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.mkdir()
    answers: list[Any] = []
    with running_web(
        tmp_path, "tests.support.held_web:application", MEMORY_TEST_HOLD=str(hold), **VARIABLES
    ) as web:
        asking = threading.Thread(target=lambda: answers.append(search(web, headers)))
        asking.start()
        wait_for(lambda: any(hold.iterdir()), web)
        (held,) = hold.iterdir()
        os.kill(int(held.name), signal.SIGKILL)
        asking.join()
        assert answers == [None]
        assert journal.count(owner_connection, "observation") == 1
        shutil.rmtree(hold)
        wait_for(lambda: len(web.workers()) == 2, web)
        answer = search(web, headers)
    assert answer is not None
    key = answer["_meta"]["retrieval/observation_id"]
    found = owner_connection.execute("SELECT 1 FROM observations_observation WHERE id = %s", [key])
    assert found.fetchone() == (1,)


def test_no_kill_at_whatever_moment_leaves_an_answer_without_its_record(
    library: World, headers, owner_connection, tmp_path: Path
) -> None:
    told: list[str] = []
    stop = threading.Event()

    def ask_on() -> None:
        while not stop.is_set():
            answer = search(web, headers)
            if answer is not None and "_meta" in answer:
                told.append(answer["_meta"]["retrieval/observation_id"])

    with running_web(tmp_path, **VARIABLES) as web:
        asking = [threading.Thread(target=ask_on) for _ in range(3)]
        for each in asking:
            each.start()
        try:
            for _ in range(4):
                before = len(told)
                wait_for(lambda before=before: len(told) >= before + 4, web)
                victim = web.workers()[0]
                os.kill(victim, signal.SIGKILL)
                wait_for(lambda gone=victim: gone not in web.workers(), web)
        finally:
            stop.set()
            for each in asking:
                each.join()
    rows = {str(key) for (key,) in owner_connection.execute("SELECT id FROM observations_observation")}
    assert len(told) >= 16
    assert set(told) <= rows
