"""A real broker beside a journal that works: what it holds, and what it counts."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis

from apps.accounts import throttles
from apps.core import clock
from apps.operations.models import JobRun
from memory_platform.embedded import EmbeddedValkey, redis_client_url, temporary_valkey
from tests.observations.test_admission import shared_of
from tests.operations.test_workers import use_broker
from tests.support import journal
from tests.support.api import Api, code_of
from tests.support.factories import World, make_principal
from tests.support.library import CHAIN, store

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = "billing rollback of the amber quarter"


@pytest.fixture(autouse=True)
def _alone(settings: Any, tmp_path: Path) -> Iterator[None]:
    """As in the other tests of the journal, but that tasks are sent to a broker."""
    settings.ERASURE_FILE = tmp_path / "erasures.jsonl"
    journal.forget()
    yield
    journal.forget()


@pytest.fixture
def valkey(settings: Any) -> Iterator[EmbeddedValkey]:
    from memory_platform.celery import app

    with temporary_valkey(durable=True) as server:
        before = app.conf.broker_url
        use_broker(server.url)
        settings.THROTTLE_URL = redis_client_url(server.url)
        throttles.counters.forget()
        try:
            yield server
        finally:
            throttles.counters.forget()
            use_broker(before)


def held_by(server: EmbeddedValkey) -> bytes:
    """All that the server holds: its dump and its log of writes as they lie on the disk, messages decoded."""
    with redis.Redis.from_url(redis_client_url(server.url)) as client:
        client.config_set("rdbcompression", "no")
        client.save()
        messages = client.lrange("memory", 0, -1)
    files = [path.read_bytes() for path in server.data.rglob("*") if path.is_file()]
    assert any(b"REDIS" in content[:5] or b"VALKEY" in content[:6] for content in files)
    bodies = [base64.b64decode(json.loads(message)["body"]) for message in messages]
    assert bodies
    return b"\n".join([*files, *messages, *bodies])


def test_neither_the_broker_nor_its_dump_nor_a_run_holds_a_query_a_fingerprint_or_a_hash(
    on: World, valkey: EmbeddedValkey, owner_connection
) -> None:
    """The journal's whole life: a search that is observed, feedback, an export, erasures."""
    api = Api(on.principal, "search", "feedback", "export", superuser=on.superuser)
    store(shared_of(on), *CHAIN)
    answers = [
        api.post("/v1/search", {"query": QUERY, "corpus": "shared"}, **{"Idempotency-Key": f"k{n}"}).json()
        for n in range(2)
    ]
    keys = [answer["_meta"]["retrieval/observation_id"] for answer in answers]
    given = {
        "observation_id": keys[0],
        "hit_id": answers[0]["results"][0]["node_id"],
        "helpful": True,
    }
    assert api.post("/v1/observation-feedback", given).json() == {"recorded": True}
    assert QUERY in api.get("/v1/observations/export").content.decode()
    (fingerprint, snapshot), *_ = owner_connection.execute(
        "SELECT query_fingerprint, snapshot FROM observations_observation"
    ).fetchall()
    assert api.delete(f"/v1/observations/{keys[0]}").status_code == 202
    assert api.post("/v1/observations/erasure", {"confirm": "erase"}).status_code == 202
    hashes = {value for hit in snapshot["hits"] for name, value in hit.items() if "Hash" in name and value}
    hashes |= {hit["sourceRef"] for hit in snapshot["hits"]}
    assert len(hashes) >= 2
    secrets = [QUERY, "amber quarter", fingerprint, journal.KEY, *hashes, *keys]
    secrets += [UUID(key).hex for key in keys]
    held = held_by(valkey)
    assert b"observations.erase" in held
    told = held + repr(list(JobRun.objects.values_list("name", "arguments", "counts"))).encode()
    assert [secret for secret in secrets if secret.encode() in told] == []


def test_sixty_calls_of_a_principal_are_taken_in_a_minute(
    on: World, valkey: EmbeddedValkey, owner_connection, settings
) -> None:
    settings.THROTTLE_TOKEN_PER_MINUTE = settings.THROTTLE_ADDRESS_PER_MINUTE = 0
    other = make_principal(on.workspace)
    journal.take_part(on, other)
    mine, second, theirs = (
        Api(principal, "feedback", superuser=on.superuser)
        for principal in (on.principal, on.principal, other)
    )
    key = journal.record(owner_connection, on.principal)
    body = {"observation_id": str(key), "hit_id": str(journal.HIT), "helpful": True}
    with clock.frozen(clock.now()) as now:
        taken = [mine.post("/v1/observation-feedback", body).status_code for _ in range(60)]
        assert taken == [200] * 60
        refused = mine.post("/v1/observation-feedback", body)
        assert (refused.status_code, code_of(refused)) == (429, "rate_limited")
        assert 1 <= int(refused["Retry-After"]) <= 60
        # Another token of the same principal counts with it, another principal apart.
        assert second.post("/v1/observation-feedback", body).status_code == 429
        assert theirs.post("/v1/observation-feedback", body).status_code == 200
        now.advance(timedelta(minutes=1))
        assert mine.post("/v1/observation-feedback", body).status_code == 200
