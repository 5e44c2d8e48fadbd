"""Staff pages of the journal: no text and no fingerprint but by a reason; who takes part; the kill switch."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.core.db.sessions import staff_session
from apps.core.models import AuditEntry
from apps.observations.models import Enrolment, KillSwitch
from tests.support import journal
from tests.support.factories import World, make_principal, make_staff, make_superuser, make_world
from tests.support.journal import feedback, record

pytestmark = pytest.mark.django_db(transaction=True)

BASE = "/admin/observations/"
LIST = f"{BASE}staffobservation/"
QUERY = "how do keys rotate"


def client(world: World, *grants: str) -> Client:
    signed_in = Client()
    signed_in.force_login(make_staff(world.workspace, *grants))
    return signed_in


def words(response: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.content.decode())))


def act(signed_in: Client, url: str, **data: Any) -> Any:
    html = signed_in.get(url).content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html))
    return signed_in.post(
        url, {**{k: unescape(v) for k, v in hidden.items()}, "reason": "support case 41", **data}
    )


@pytest.fixture
def observed(on: World, owner_connection: Any) -> Any:
    key = record(owner_connection, on.principal, text=QUERY)
    feedback(owner_connection, on.principal, key)
    return key


def test_list_and_page_show_deadlines_hits_and_feedback_but_no_text(on: World, observed: Any) -> None:
    viewer = client(on, "view_traces")
    listed = viewer.get(LIST)
    assert listed.status_code == 200
    assert "retained" in words(listed)
    page = viewer.get(f"{LIST}{observed}/change/")
    assert "helpful" in words(page)
    assert "record lives until" in words(page)
    for answer in (listed, page):
        assert QUERY not in answer.content.decode()
        assert "0" * 64 not in answer.content.decode()
    assert viewer.get(f"{LIST}{observed}/reveal/").status_code == 404
    for path in ("add/", f"{observed}/delete/"):
        assert viewer.get(f"{LIST}{path}").status_code in (302, 403, 404)


def test_rows_of_another_workspace_are_not_there(on: World, observed: Any) -> None:
    stranger = client(make_world(), "view_traces", "reveal_text")
    assert str(observed)[-7:] not in words(stranger.get(LIST))
    assert stranger.get(f"{LIST}{observed}/reveal/").status_code in (403, 404)


def test_revealing_the_text_takes_a_reason_and_is_written_down(on: World, observed: Any) -> None:
    revealer = client(on, "view_traces", "reveal_text")
    answer = act(revealer, f"{LIST}{observed}/reveal/")
    assert QUERY in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    with staff_session(make_staff(on.workspace, "audit")):
        entry = AuditEntry.objects.get(action="observations.reveal_text")
    assert (entry.object_id, entry.reason) == (str(observed), "support case 41")


def test_pages_of_a_closed_journal_answer_503(on: World, observed: Any, owner_connection: Any) -> None:
    table = "observations_maintenance_state"
    owner_connection.execute(f"UPDATE {table} SET database_oid = database_oid + 1")
    try:
        reader = client(on, "view_traces", "reveal_text")
        answers = [reader.get(LIST), reader.get(f"{LIST}{observed}/change/")]
        assert reader.get(f"{LIST}{observed}/reveal/").status_code == 404
    finally:
        owner_connection.execute(f"UPDATE {table} SET database_oid = database_oid - 1")
    assert [answer.status_code for answer in answers] == [503, 503]


def test_staff_enrol_and_withdraw(world: World) -> None:
    operator = client(world, "operate_collection")
    someone = make_principal(world.workspace)
    url = f"{BASE}enrolment/"
    act(
        operator,
        f"{url}enrol/",
        principal=str(someone.principal_id),
        purpose=journal.PURPOSE,
        consent_version=journal.CONSENT,
    )
    with staff_session(make_staff(world.workspace, "audit")):
        row = Enrolment.objects.get(principal_id=someone.principal_id)
    assert "active" in words(operator.get(url))
    act(operator, f"{url}{row.pk}/withdraw/")
    assert "withdrawn" in words(operator.get(f"{url}{row.pk}/change/"))
    assert client(world, "audit").get(f"{url}enrol/").status_code == 404


def test_the_kill_switch_stops_and_is_released(world: World) -> None:
    operator = client(world, "operate_collection")
    url = f"{BASE}killswitch/"
    act(operator, f"{url}throw/", workspace=str(world.workspace.pk))
    with staff_session(make_staff(world.workspace, "audit")):
        row = KillSwitch.objects.get(released_at=None)
    assert row.workspace_id == world.workspace.pk
    assert "collection is stopped" in words(operator.get(url))
    act(operator, f"{url}{row.pk}/release/")
    assert "released" in words(operator.get(f"{url}{row.pk}/change/"))


def test_only_a_superuser_stops_the_installation(world: World) -> None:
    url = f"{BASE}killswitch/throw/"
    act(client(world, "operate_collection"), url, workspace="")
    chief = Client()
    chief.force_login(make_superuser())
    try:
        act(chief, url, workspace="")
        with staff_session(make_staff(world.workspace, "audit")):
            assert KillSwitch.objects.filter(workspace=None, released_at=None).count() == 1
    finally:
        with staff_session(make_superuser()):
            KillSwitch.objects.filter(workspace=None).update(released_at="2026-01-01T00:00:00Z")
