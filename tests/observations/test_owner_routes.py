"""The owner's own records and enrolment over the API."""

import pytest

from tests.support import journal
from tests.support.api import Api, code_of
from tests.support.factories import World, make_principal
from tests.support.journal import HOUR, feedback, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(on: World) -> Api:
    return Api(on.principal, superuser=on.superuser)


def test_records_are_listed_newest_first_in_pages(on: World, api: Api, owner_connection) -> None:
    keys = [str(record(owner_connection, on.principal, ago=n * HOUR, text=f"q{n}")) for n in range(1, 6)]
    record(owner_connection, make_principal(on.workspace))
    found, cursor = [], None
    while True:
        page = api.get("/v1/observations", limit=2, **({"cursor": cursor} if cursor else {})).json()
        found += page["observations"]
        cursor = page["next_cursor"]
        if not page["observations"] or cursor is None:
            break
    assert [each["id"] for each in found] == keys
    assert found[0]["query_text"] == "q1"
    assert found[0]["fingerprint_linkable"] is True
    assert not any("fingerprint" in name and name != "fingerprint_linkable" for name in found[0])
    refused = api.get("/v1/observations", cursor="invented")
    assert (refused.status_code, code_of(refused)) == (400, "unknown_cursor")


def test_a_record_is_shown_with_feedback_and_its_key_that_is_gone(
    on: World, api: Api, owner_connection
) -> None:
    key = record(owner_connection, on.principal, key_id="key-0")
    feedback(owner_connection, on.principal, key)
    shown = api.get(f"/v1/observations/{key}").json()
    assert [each["hit_id"] for each in shown["feedback"]] == [str(journal.HIT)]
    assert shown["fingerprint_linkable"] is False
    assert shown["text_disposition"] == "disabled"


def test_withdrawing_ends_taking_part_for_good(on: World, api: Api, owner_connection) -> None:
    shown = api.get("/v1/observations/enrolment").json()
    assert (shown["enrolled"], shown["purpose"]) == (True, journal.PURPOSE)
    assert api.delete("/v1/observations/enrolment").json()["enrolled"] is False
    again = api.delete("/v1/observations/enrolment")
    assert (again.status_code, again.json()["enrolled"]) == (200, False)
    stranger = Api(make_principal(on.workspace), superuser=on.superuser)
    assert stranger.get("/v1/observations/enrolment").json()["enrolled"] is False
    actions = owner_connection.execute(
        "SELECT action, count(*) FROM core_auditentry WHERE action LIKE 'observations.%' GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert actions == [("observations.enrol", 1), ("observations.withdraw", 1)]


@pytest.mark.parametrize("path", ["", "/export", "/01900000-0000-7000-8000-000000000001"])
def test_a_closed_journal_is_read_by_nobody(on: World, owner_connection, path) -> None:
    api = Api(on.principal, "feedback", "export", superuser=on.superuser)
    owner_connection.execute("UPDATE observations_maintenance_state SET database_oid = database_oid + 1")
    try:
        answer = api.get(f"/v1/observations{path}")
        assert (answer.status_code, code_of(answer)) == (503, "journal_closed")
    finally:
        owner_connection.execute("UPDATE observations_maintenance_state SET database_oid = database_oid - 1")
