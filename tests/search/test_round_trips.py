"""How often a search waits for the database: what does not need another's answer is sent with it."""

import pytest

from apps.search import services
from tests.support.factories import make_world
from tests.support.library import ask, store, wiki
from tests.support.statements import trips

pytestmark = pytest.mark.django_db(transaction=True)

READING = ["pipeline", "graph_term", "pipeline", "graph_passage", "graph_passage", "commit"]
"""Identity, policy, profile and statistics; terms; channels; attributes; texts."""
WRITING = ["pipeline", "pipeline", "commit"]
"""Identity, lock, policy and key; trace and receipt."""


def test_a_recorded_search_waits_nine_times(monkeypatch) -> None:
    monkeypatch.setattr(
        services, "ticket_for", lambda *_, **__: None
    )  # the journal's cache lives for seconds
    me = make_world().principal
    store(me, *(wiki(f"page-{number}", f"Billing rollback {number}") for number in range(4)))
    ask(me, "billing rollback")  # policies and stems are read once a process
    with trips() as waited:
        answer = ask(me, "billing rollback")
    assert answer["retrieval_receipt_id"]
    assert len(answer["results"]) == 4
    expected = READING + WRITING
    assert len(waited) == len(expected), waited
    for one, named in zip(waited, expected, strict=True):
        assert named in one
