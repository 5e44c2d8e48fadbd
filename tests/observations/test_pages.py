"""Staff pages of the journal: no text and no fingerprint but by a reason; who takes part; the kill switch."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.observations.models import Enrolment, ExportRecord, KillSwitch
from apps.observations.models.exports import Location
from apps.observations.services import exports
from tests.support import journal, traces
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


def test_deadlines_count_down_and_the_trace_is_a_link(
    on: World, observed: Any, owner_connection: Any
) -> None:
    with principal_session(on.principal):
        trace = traces.save([traces.ranked(traces.issue(1))]).id
    owner_connection.execute("ALTER TABLE observations_observation DISABLE TRIGGER USER")
    owner_connection.execute("UPDATE observations_observation SET trace_id = %s", [trace])
    owner_connection.execute("ALTER TABLE observations_observation ENABLE TRIGGER USER")
    viewer = client(on, "view_traces")
    listed, page = viewer.get(LIST), viewer.get(f"{LIST}{observed}/change/")
    assert re.search(r"UTC in 89 d 22 h", words(listed))
    assert len(re.findall(r"UTC in 89 d 22 h", words(page))) == 2
    assert f"/admin/traces/trace/{trace}/change/" in page.content.decode()


def test_lists_are_narrowed_by_corpus_text_and_day(on: World, observed: Any, owner_connection: Any) -> None:
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=3)
    first = record(owner_connection, on.principal, observed_at=day)
    private = record(
        owner_connection,
        on.principal,
        observed_at=day + timedelta(days=1, microseconds=-1),
        corpus="private",
        disposition="private",
    )
    record(owner_connection, on.principal, observed_at=day + timedelta(days=1))
    viewer = client(on, "view_traces")

    def found(query: str) -> set[str]:
        html = viewer.get(f"{LIST}?{query}").content.decode()
        return set(re.findall(r"staffobservation/([0-9a-f-]{36})/change", html))

    assert found(f"day={day:%Y-%m-%d}") == {str(first), str(private)}
    assert found(f"day={day:%Y-%m-%d}&corpus=private") == {str(private)}
    assert found("text=retained") == {str(observed)}
    assert len(found("")) == 4
    for nonsense in ("2026-13-01", "yesterday", "9999-12-31", "0001-01-01"):
        assert found(f"day={nonsense}") == set(), nonsense
    assert "Without day: yesterday" in words(viewer.get(f"{LIST}?day=yesterday"))


@pytest.mark.parametrize("path", ["staffobservation", "enrolment", "exportrecord"])
def test_the_kill_switch_stands_in_the_head_of_lists_and_pages(
    on: World, observed: Any, path: str, owner_connection: Any
) -> None:
    with principal_session(on.principal):
        exports.export(location=Location.API)
        exported = ExportRecord.objects.get().pk
    with staff_session(make_staff(on.workspace, "audit")):
        enrolment = Enrolment.objects.get().pk
    key = {"staffobservation": observed, "enrolment": enrolment, "exportrecord": exported}[path]
    urls = [f"{BASE}{path}/", f"{BASE}{path}/{key}/change/"]
    operator = client(on, "operate_collection", "view_traces")
    onlooker = client(on, "view_traces", "audit")
    for url in urls:
        assert "Kill switch: off Stop collection…" in words(operator.get(url))
        assert "Kill switch: off" in words(onlooker.get(url))
        assert "Stop collection…" not in words(onlooker.get(url))
    act(operator, f"{BASE}killswitch/throw/", workspace=str(on.workspace.pk))
    for url in urls:
        text = words(operator.get(url))
        assert f"collection is stopped {on.workspace.name}, since" in text
        assert "Release…" in text
        assert "Stop collection…" not in text
        assert "collection is stopped" in words(onlooker.get(url))
        assert "Release…" not in words(onlooker.get(url))


def test_who_sees_observations_alone_sees_that_collection_is_stopped_not_why(
    on: World, observed: Any
) -> None:
    act(client(on, "operate_collection"), f"{BASE}killswitch/throw/", workspace=str(on.workspace.pk))
    viewer = client(on, "view_traces")
    assert "collection is stopped" in words(viewer.get(LIST))
    assert "support case 41" not in words(viewer.get(LIST))
    assert "/killswitch/" not in viewer.get(LIST).content.decode()
    stranger = client(make_world(), "view_traces")
    assert "collection is stopped" not in words(stranger.get(LIST))


def test_the_setting_that_stops_the_installation_is_said(on: World, settings: Any) -> None:
    settings.OBSERVATION_KILL_SWITCH = True
    assert "by the setting OBSERVATION_KILL_SWITCH" in words(client(on, "view_traces").get(LIST))


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
