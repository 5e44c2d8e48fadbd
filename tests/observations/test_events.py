"""What an event holds: fingerprints, snapshots, and what becomes of a text."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from apps.core.ids import uuid7
from apps.observations import events, fingerprints, policy
from apps.observations.admission import Ticket
from apps.observations.events import (
    Answered,
    RankedHit,
    content_hash,
    event_of,
    snapshot_of,
    source_reference,
)
from apps.observations.exceptions import SnapshotMismatch
from apps.observations.fingerprints import Key, fingerprint
from apps.observations.models.observations import Corpus
from apps.observations.standing import Enrolled, Journal
from memory_platform.settings import observations as given
from tests.support import journal

KEY = Key("key-1", journal.KEY)
QUERY = "Что такое роль?"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _configured(settings) -> None:
    journal.configure(settings)


# Fingerprints.


def test_fingerprints_are_those_of_the_reference() -> None:
    assert (
        fingerprint(KEY, "account-a", QUERY)
        == "002b3af158cc4f8a59ad2341c3f7f2f43bed844fe9e2aac6d3487cf04d891843"
    )
    assert (
        fingerprint(KEY, "account-b", QUERY)
        == "4a867278959ec34cd5808d87bd09c929f841666c6bef28370de11c29f6255d36"
    )


@pytest.mark.parametrize("padding", [" ", "\ufeff", "\u3000", "\u2028", "\u180e"[:0] + "\t"])
def test_padding_changes_no_fingerprint(padding) -> None:
    assert fingerprint(KEY, "a", padding + QUERY + padding) == fingerprint(KEY, "a", QUERY)


@pytest.mark.parametrize("padding", ["\u0085", "\x1c", "\x1f"])
def test_what_python_takes_for_space_and_the_rule_does_not_counts(padding) -> None:
    assert fingerprint(KEY, "a", QUERY + padding) != fingerprint(KEY, "a", QUERY)


def test_case_counts_and_composition_does_not() -> None:
    assert fingerprint(KEY, "a", QUERY.upper()) != fingerprint(KEY, "a", QUERY)
    assert fingerprint(KEY, "a", "e\u0301") == fingerprint(KEY, "a", "\u00e9")


def test_a_fingerprint_under_a_key_that_is_gone_is_not_linkable(settings) -> None:
    assert fingerprints.is_linkable("key-1")
    assert not fingerprints.is_linkable("key-0")
    assert journal.KEY not in repr(fingerprints.active_key())


def test_source_references_are_those_of_the_reference() -> None:
    assert (
        source_reference("fixture", "one.md")
        == "69b4abb2bd3ac8d3984e9f674f42112fae4272f52ef05b0cc72bc97eafbed6cf"
    )
    assert source_reference(None, None) == "95cb9b4f84ceff132cc7a875d8c192bf4997016a939ee64141c1fd628c0e8738"


# Settings and stored values that are not clear keep less.


@pytest.mark.parametrize("days", ["0", "-1", "91", "180", "181", "NaN", "0.5", "abc", "", " 30", "٣٠"])
def test_unclear_text_days_of_the_setting_keep_no_text(days, settings) -> None:
    assert given._text_days(days) is None
    assert journal_of(settings, days=given._text_days(days)).text_days is None


def test_clear_text_days_of_the_setting() -> None:
    assert given._text_days(None) == 90
    assert given._text_days("30") == 30
    assert given._text_days("90") == 90


@pytest.mark.parametrize("days", [0, -1, 91, 180, 181, float("nan"), 0.5, "abc", "30", True, [30]])
def test_unclear_text_days_of_a_stored_policy_keep_no_text(days) -> None:
    assert policy.text_days_of(days) is None


def test_clear_text_days_of_a_stored_policy() -> None:
    assert policy.text_days_of(None) == 90
    assert policy.text_days_of(30) == 30


def test_the_smaller_of_setting_and_policy_rules_and_hash_mode_keeps_none(settings) -> None:
    assert journal_of(settings).text_days == 90
    assert journal_of(settings, days=30).text_days == 30
    assert journal_of(settings, text_days=7).text_days == 7
    assert journal_of(settings, mode="hash").text_days is None
    settings.OBSERVATION_MODE_CEILING = "hash"
    assert journal_of(settings).text_days is None
    assert journal_of(settings).mode == "hash"


@pytest.mark.parametrize("mode", ["OFF", "on", "Hash", "platform_text", "", None, 1, True])
def test_unknown_modes_are_off(mode) -> None:
    assert policy.mode_of(mode) == "off"


@pytest.mark.parametrize("hours", [0, 23, 2161, "2160", 2160.0, True])
def test_unclear_record_hours_of_a_stored_policy_are_off(hours) -> None:
    assert policy.collecting({"mode": "hash", "record_hours": hours}).mode == "off"


def test_unclear_kill_switches_stop(settings) -> None:
    keys = given._keys('{"key-1": "' + "k" * 32 + '", "BAD": "' + "k" * 32 + '", "n": 1}')
    assert list(keys) == ["key-1"]
    assert given._keys("nonsense") == given._keys("[]") == {}


def journal_of(settings, days: int | None = 90, **document) -> Journal:
    settings.OBSERVATION_TEXT_DAYS = days
    return Journal(None, 1, policy.collecting(journal.DEFAULT | document), False, True)


# Events.


def ticket(**more) -> Ticket:
    fields = {
        "id": uuid7(),
        "workspace_id": uuid7(),
        "principal_id": uuid7(),
        "policy_id": None,
        "generation": 1,
        "corpus": Corpus.SHARED,
        "observed_at": AT,
        "text_days": 90,
        "record_hours": 2160,
        "enrolled": Enrolled(uuid7(), "p", "c"),
    } | more
    return Ticket(**fields)


def hit(number: int, content: str = "text", **more) -> RankedHit:
    fields = {
        "id": UUID(int=number),
        "source": "fixture",
        "filename": f"secret-{number}.md",
        "content": content,
        "indexed_hash": content_hash(content),
    } | more
    return RankedHit(**fields)


def answered(ranked: list[RankedHit], *, query: str = QUERY, returned=None, **more) -> Answered:
    rows = returned if returned is not None else [(each.id, each.content) for each in ranked]
    body = json.dumps({"results": [{"node_id": str(key), "content": content} for key, content in rows]})
    fields = {"available": len(ranked), "trace_id": None} | more
    return Answered(query=query, ranked=ranked, body=body.encode(), **fields)


def test_a_retained_text_lives_ninety_days_of_absolute_time() -> None:
    event = event_of(ticket(), answered([hit(1)]))
    assert event.text_disposition == "retained"
    assert event.query_text == QUERY
    assert event.text_expires_at is not None
    assert event.text_expires_at - AT == timedelta(milliseconds=90 * 86_400_000)
    assert event.record_expires_at - AT == timedelta(hours=2160)


def test_a_text_never_outlives_its_record() -> None:
    event = event_of(ticket(record_hours=24), answered([hit(1)]))
    assert event.text_expires_at == event.record_expires_at == AT + timedelta(hours=24)


def test_the_first_reason_to_keep_no_text_is_the_one_that_is_told() -> None:
    secret = "password: hunter2hunter2"
    for more, query, wanted in (
        ({"corpus": Corpus.PRIVATE, "text_days": None}, secret, "private"),
        ({"text_days": None}, secret, "disabled"),
        ({}, secret, "filtered"),
        ({}, QUERY, "retained"),
    ):
        event = event_of(ticket(**more), answered([hit(1)], query=query))
        assert event.text_disposition == wanted
        assert (event.query_text is None) == (event.text_expires_at is None) == (wanted != "retained")


def test_four_thousand_units_are_kept_and_one_more_is_not() -> None:
    assert events.may_be_kept("я" * 4000)
    assert not events.may_be_kept("я" * 4001)
    assert events.may_be_kept("\U0001f600" * 2000)
    assert not events.may_be_kept("\U0001f600" * 2000 + "a")
    assert not events.may_be_kept("")


def test_unknown_release_stays_unknown(settings) -> None:
    settings.RELEASE = ""
    assert event_of(ticket(), answered([hit(1)])).release is None
    settings.RELEASE = "abc123"
    assert event_of(ticket(), answered([hit(1)])).release == "abc123"


def test_a_cut_answer_says_what_was_left_out_and_what_was_shortened() -> None:
    ranked = [hit(number, "long text " * 10) for number in range(1, 22)]
    returned = [(each.id, each.content[:20]) for each in ranked[:20]]
    snapshot = snapshot_of(answered(ranked, returned=returned))
    assert set(snapshot) == {"version", "availableCount", "returnedCount", "omittedHits", "hits"}
    assert (snapshot["availableCount"], snapshot["returnedCount"], snapshot["omittedHits"]) == (21, 20, True)
    assert [each["id"] for each in snapshot["hits"]] == [str(key) for key, _ in returned]
    assert [each["rank"] for each in snapshot["hits"]] == list(range(1, 21))
    for each in snapshot["hits"]:
        assert each["excerpted"] is True
        assert each["retrievedContentHash"] != each["returnedContentHash"]
    assert "secret" not in json.dumps(snapshot)


def test_the_hash_of_what_is_indexed_is_kept_though_less_was_read() -> None:
    whole = content_hash("the whole text")
    (found,) = snapshot_of(answered([hit(1, "the whole", indexed_hash=whole)]))["hits"]
    assert found["indexedContentHash"] == whole
    assert found["retrievedContentHash"] == found["returnedContentHash"] == content_hash("the whole")
    assert found["excerpted"] is True
    (unread,) = snapshot_of(answered([hit(1, indexed_hash=None)]))["hits"]
    assert unread["indexedContentHash"] is None
    assert unread["excerpted"] is False


def test_the_same_id_with_new_content_has_a_new_hash() -> None:
    (before,), (after,) = (snapshot_of(answered([hit(1, text)]))["hits"] for text in ("old", "new"))
    assert before["id"] == after["id"]
    assert before["returnedContentHash"] != after["returnedContentHash"]


def test_an_id_that_was_not_ranked_makes_no_event() -> None:
    with pytest.raises(SnapshotMismatch):
        event_of(ticket(), answered([hit(1)], returned=[(UUID(int=2), "text")]))


def test_events_and_answers_show_themselves_nowhere() -> None:
    asked = answered([hit(1)])
    assert QUERY not in repr(asked)
    assert QUERY not in repr(event_of(ticket(), asked))
    assert replace(asked, query="x").query == "x"
