"""Vectors follow the rows, in the background, and never outlive a text."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.graph import tasks
from apps.graph.embedders import EmbedderFailed
from apps.graph.embedders.active import active
from apps.graph.models import Passage, Vector
from apps.graph.services import PassageItem, embed_missing, vectors, write_passages
from apps.graph.tasks import embed, owners_to_embed
from tests.support.factories import make_principal, make_staff, make_world
from tests.support.memory import corpus, store

pytestmark = pytest.mark.django_db


class Fake:
    """An embedder that counts, and fails on demand."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failing = False
        self.dims = 0
        self.meanwhile = lambda: None

    def embed_passages(self, texts):
        if self.failing:
            raise EmbedderFailed("embedder_timeout")
        self.meanwhile()
        self.texts += texts
        rows = np.zeros((len(texts), self.dims or active().dims), np.float32)
        rows[:, 0] = 1
        return rows


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr("apps.graph.embedders.active.Registered.embedder", lambda self: made)
    return made


@pytest.fixture
def world():
    return make_world()


def states(principal):
    with principal_session(principal):
        return dict(Vector.objects.values_list("node_id", "state"))


def test_rows_get_vectors_once(world, fake) -> None:
    ids = store(world.principal, PassageItem(identity="a", title="A title", text="and text"), "?!", "more")
    first = embed_missing(principal=world.principal)
    assert (first.ready, first.empty, first.failed, first.more) == (2, 1, 0, False)
    assert states(world.principal) == dict(zip(ids, ["ready", "empty", "ready"], strict=True))
    assert fake.texts == ["A title\n\nand text", "more"]
    assert embed_missing(principal=world.principal).ready == 0
    assert len(fake.texts) == 2
    assert corpus(world.principal)["vectors"] == 2


def test_a_repaired_provenance_costs_no_embedding(world, fake) -> None:
    legacy = PassageItem(
        identity=7, type="issue", repo="acme/app", text="one", updated_at="2026-01-02T03:04:05Z"
    )
    (first,) = store(world.principal, legacy)
    embed_missing(principal=world.principal)
    (again,) = store(world.principal, replace(legacy, number=7, updated_at="2026-01-02T03:04:06Z"))
    run = embed_missing(principal=world.principal)
    assert (again, run.ready, run.more) == (first, 0, False)
    assert fake.texts == ["one"]
    with principal_session(world.principal):
        stored = Passage.objects.get()
        assert (stored.number, stored.version) == (7, "2026-01-02T03:04:06Z")


def test_a_batch_says_that_there_is_more(world, fake) -> None:
    store(world.principal, "one", "two", "three")
    assert embed_missing(principal=world.principal, batch=2).more
    assert not embed_missing(principal=world.principal, batch=2).more


def test_a_text_that_changed_meanwhile_gets_no_old_vector(world, fake) -> None:
    store(world.principal, PassageItem(identity="a", text="old"))

    def change():
        with principal_session(world.principal):
            write_passages(items=[PassageItem(identity="a", text="new")])

    fake.meanwhile = change
    embed_missing(principal=world.principal)
    assert states(world.principal) == {}
    assert corpus(world.principal)["vectors"] == 0
    fake.meanwhile = lambda: None
    assert embed_missing(principal=world.principal).ready == 1


def test_failures_are_tried_again_later_and_end_visibly(world, fake) -> None:
    (node_id,) = store(world.principal, "one")
    fake.failing = True
    with clock.frozen(clock.now()) as at:
        for tries, wait in enumerate(vectors.RETRY_AFTER_S, 1):
            run = embed_missing(principal=world.principal)
            assert (run.failed, run.error, run.more) == (1, "embedder_timeout", False)
            assert embed_missing(principal=world.principal).failed == 0, "not before its time"
            with principal_session(world.principal):
                assert Vector.objects.get().tries == tries
            at.advance(timedelta(seconds=wait))
        assert embed_missing(principal=world.principal).failed == 1
        at.advance(timedelta(days=1))
        assert embed_missing(principal=world.principal).failed == 0
        assert states(world.principal) == {node_id: "failed"}
        with principal_session(world.principal):
            assert Vector.objects.get().error == "embedder_timeout"


def test_a_later_success_mends_a_failure(world, fake) -> None:
    store(world.principal, "one")
    with clock.frozen(clock.now()) as at:
        fake.failing = True
        embed_missing(principal=world.principal)
        fake.failing = False
        at.advance(timedelta(seconds=15))
        assert embed_missing(principal=world.principal).ready == 1
    assert corpus(world.principal)["vectors"] == 1


@pytest.mark.django_db(transaction=True)
def test_the_task_finds_every_owner_that_waits(fake) -> None:
    world = make_world()
    other = make_principal(world.workspace)
    store(world.principal, "one", "two")
    store(other, "three")
    waiting = set(owners_to_embed(active().id))
    assert {world.principal.principal_id, other.principal_id} <= waiting
    assert embed.function()["ready"] == 3
    assert owners_to_embed(active().id) == []


@pytest.mark.django_db(transaction=True)
def test_writes_ask_for_vectors_once_and_a_broker_that_is_away_refuses_no_write(world, monkeypatch) -> None:
    sent: list[float] = []

    def send(*, countdown, retry):
        sent.append(countdown)
        raise ConnectionError

    monkeypatch.setattr(embed, "apply_async", send)
    monkeypatch.setattr(tasks, "_asked", tasks._Asked())
    store(world.principal, "one")
    store(world.principal, "one", "two")
    store(world.principal, "one", "two")
    assert sent == [tasks.SOON_S]


def test_asked_runs_are_apart_and_the_last_write_is_seen_by_one() -> None:
    asked = tasks._Asked()
    assert asked.wait(100.0) == tasks.SOON_S
    assert asked.wait(100.5) is None
    assert asked.wait(103.0) == pytest.approx(8.0)
    assert asked.wait(110.0) is None
    assert asked.wait(500.0) == tasks.SOON_S


@pytest.mark.django_db(transaction=True)
def test_a_space_is_filled_beside_the_active_one_and_swapped_when_complete(fake, owner_connection) -> None:
    """Old answers until full coverage, then the new ones; the two are never mixed."""
    from apps.graph import spaces
    from apps.graph.embedders.active import forget_active, registered
    from apps.graph.models import Embedder
    from tests.support.owner import as_owner

    world = make_world()
    ids = store(world.principal, "one", "two", "?!")
    embed.function()
    before = active()
    with as_owner():
        other = Embedder.objects.exclude(state="active").order_by("id").first()
        with pytest.raises(spaces.SpaceRefused, match="3 of 3"):
            spaces.activate(other)
        spaces.fill(other)
    assert active() == before
    space = registered(state="filling")
    fake.dims = space.dims
    assert embed.function() == {"ready": 2, "empty": 1, "failed": 0}
    assert corpus(world.principal)["vectors"] == 2
    try:
        with as_owner():
            assert spaces.activate(Embedder.objects.get(pk=space.id)).complete
        assert active().id == space.id
        assert corpus(world.principal)["vectors"] == 2
        with as_owner():
            assert spaces.empty(Embedder.objects.get(pk=before.id)) == 3
        with principal_session(world.principal):
            assert set(Vector.objects.values_list("node_id", "embedder_id")) == {(i, space.id) for i in ids}
    finally:
        owner_connection.execute("UPDATE graph_embedder SET state = 'registered'")
        owner_connection.execute("UPDATE graph_embedder SET state = 'active' WHERE id = %s", [before.id])
        forget_active()


def test_the_page_of_a_principal_says_how_far_vectors_have_come(world, fake) -> None:
    store(world.principal, "one", "two", "three")
    store(make_principal(world.workspace), "another's")
    embed_missing(principal=world.principal, batch=2)
    page = f"/admin/accounts/principal/{world.principal.principal_id}/change/"
    watcher, operator = Client(), Client()
    watcher.force_login(make_staff(world.workspace, "view_traces"))
    operator.force_login(make_staff(world.workspace, "operate_collection"))
    assert "2 of 3 rows" in watcher.get(page).content.decode()
    embed_missing(principal=world.principal)
    assert "3 of 3 rows" in watcher.get(page).content.decode()
    assert "of 3 rows" not in operator.get(page).content.decode()
