"""Feedback on hits: one answer for all that is not there, nothing asked of malformed calls, no clock restarted."""

import itertools
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

from apps.core.ids import uuid7
from apps.observations.services import feedback as service
from tests.support import journal
from tests.support.api import Api
from tests.support.factories import World, make_principal
from tests.support.journal import HIT, HOUR, record

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "/v1/observation-feedback"
NOT_THERE = {"recorded": False, "reason": "observation_or_hit_unavailable_retry"}
UNAVAILABLE = {"recorded": False, "reason": "observation_unavailable"}


@pytest.fixture
def api(on: World, settings) -> Api:
    settings.THROTTLE_URL = "redis://127.0.0.1:1"
    return Api(on.principal, superuser=on.superuser)


def give(api: Api, observation: UUID, hit: UUID = HIT, **more: Any) -> Any:
    body = {"observation_id": str(observation), "hit_id": str(hit), "helpful": True} | more
    return api.post(ADDRESS, body)


def stored(owner: Any) -> list[tuple[Any, ...]]:
    return owner.execute(  # type: ignore[no-any-return]
        "SELECT helpful, cited, withdrawn_at IS NOT NULL FROM observations_observation_feedback"
    ).fetchall()


def test_the_last_word_wins_a_known_citation_stays_and_no_deadline_moves(
    on: World, api: Api, owner_connection
) -> None:
    key = record(owner_connection, on.principal, text="t")
    sql = (
        "SELECT o.observed_at, o.record_expires_at, t.text_expires_at FROM observations_observation o "
        "JOIN observations_observation_text t ON t.observation_id = o.id"
    )
    deadlines = owner_connection.execute(sql).fetchall()
    answer = give(api, key)
    assert (answer.status_code, answer.json()) == (200, {"recorded": True})
    assert stored(owner_connection) == [(True, None, False)]
    assert give(api, key, helpful=False, cited=True).json() == {"recorded": True}
    assert stored(owner_connection) == [(False, True, False)]
    give(api, key, helpful=True, cited=None)
    assert stored(owner_connection) == [(True, True, False)]
    give(api, key, withdrawn=True)
    assert stored(owner_connection) == [(True, True, True)]
    assert api.get(f"/v1/observations/{key}").json()["feedback"] == []
    give(api, key, cited=False)
    assert stored(owner_connection) == [(True, False, False)]
    moved = owner_connection.execute(
        "SELECT updated_at > created_at FROM observations_observation_feedback"
    ).fetchone()
    assert moved == (True,)
    assert owner_connection.execute(sql).fetchall() == deadlines


def test_whatever_is_not_there_has_one_answer(on: World, api: Api, owner_connection) -> None:
    theirs = record(owner_connection, make_principal(on.workspace))
    expired = record(owner_connection, on.principal, ago=2 * HOUR, hours=1)
    mine = record(owner_connection, on.principal)
    answers = [
        give(api, uuid7()),
        give(api, theirs),
        give(api, expired),
        give(api, mine, hit=uuid7()),
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json() == NOT_THERE
    assert stored(owner_connection) == []


MALFORMED = [
    {},
    {"observation_id": "no-id"},
    {"hit_id": "1234"},
    {"helpful": "true"},
    {"helpful": 1},
    {"helpful": None},
    {"cited": "yes"},
    {"cited": 0},
    {"withdrawn": None},
    {"score": 1},
]


@pytest.mark.parametrize("more", MALFORMED, ids=str)
def test_malformed_calls_are_decided_before_any_statement_on_the_journal(api: Api, more) -> None:
    whole = {"observation_id": str(uuid7()), "hit_id": str(HIT), "helpful": True}
    with journal.statements() as asked:
        answer = api.post(ADDRESS, whole | more if more else {})
    assert answer.status_code == 400
    problem = answer.json()
    assert (problem["code"], problem["recorded"]) == ("invalid_observation_feedback", False)
    assert problem["reason"]
    assert not any("observations_" in statement for statement in asked)


def test_stored_feedback_is_one_statement(on: World, api: Api, owner_connection) -> None:
    key = record(owner_connection, on.principal)
    give(api, key)
    with journal.statements() as asked:
        give(api, key)
    assert sum("observations_" in statement for statement in asked) == 1


def test_without_admission_now_there_is_no_feedback(on: World, api: Api, owner_connection, settings) -> None:
    key = record(owner_connection, on.principal)
    journal.set_policy(owner_connection, on.workspace.pk, mode="off")
    assert give(api, key).json() == UNAVAILABLE
    journal.set_policy(owner_connection, on.workspace.pk)
    assert give(api, key).json() == {"recorded": True}
    settings.OBSERVATION_KILL_SWITCH = True
    assert give(api, key).json() == UNAVAILABLE
    settings.OBSERVATION_KILL_SWITCH = False
    owner_connection.execute("UPDATE observations_enrolment SET withdrawn_at = now()")
    journal.forget()
    assert give(api, key).json() == UNAVAILABLE


def test_storage_errors_are_told_as_unavailable(on: World, api: Api, owner_connection, monkeypatch) -> None:
    key = record(owner_connection, on.principal)

    def fail(*args: Any, **more: Any) -> Any:
        raise OperationalError

    monkeypatch.setattr(service, "_record", fail)
    answer = give(api, key)
    assert (answer.status_code, answer.json()) == (200, UNAVAILABLE)


def test_sixty_calls_a_minute_are_taken(on: World, api: Api, owner_connection, monkeypatch) -> None:
    from apps.accounts import throttles

    calls = itertools.count(60)
    monkeypatch.setattr(
        throttles.counters, "add", lambda *keys, amounts: [next(calls) if len(keys) == 1 else 0] * len(keys)
    )
    monkeypatch.setattr("django.conf.settings.THROTTLE_TOKEN_PER_MINUTE", 0)
    key = record(owner_connection, on.principal)
    assert give(api, key).status_code == 200
    assert give(api, key).status_code == 429
