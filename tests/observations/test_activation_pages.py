"""Staff pages of activation: off and on by their buttons, four eyes, evidence in place, and nothing by looking."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.models import AuditEntry
from apps.observations import tasks
from apps.observations.models import ActivationRun, Evidence
from apps.operations.models import Delivery, Destination
from tests.observations.test_admission import QUERY, shared_of
from tests.observations.test_pages import act, words
from tests.support import journal
from tests.support.activation import RELEASE, Scene, mode, process
from tests.support.factories import make_staff, make_world
from tests.support.library import CHAIN, store

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/observations/activationrun/"


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


class Desk:
    """The run's page as two persons use it."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.url = scene, f"{LIST}{scene.run_id}/"
        self.operator, self.reviewer = signed_in(scene.operator), signed_in(scene.reviewer)

    def page(self, who: Client) -> str:
        answer = who.get(f"{self.url}change/")
        assert answer.status_code == 200
        return words(answer)

    def html(self, who: Client) -> str:
        return str(who.get(f"{self.url}change/").content.decode())

    def state(self) -> str:
        return str(self.scene.run().state)


@pytest.fixture
def desk(scene: Scene) -> Desk:
    return Desk(scene)


def pressed(answer: Any) -> None:
    assert answer.status_code == 302, words(answer)


def test_a_run_is_opened_where_the_person_operates(world: Any) -> None:
    operator = make_staff(world.workspace, "operate_collection")
    given = {"workspace": str(world.workspace.pk), "mode": "hash"}
    pressed(act(signed_in(operator), f"{LIST}open/", **given))
    with staff_session(operator):
        run = ActivationRun.objects.get()
    assert (run.state, run.mode) == ("draft", "hash")
    assert "draft" in words(signed_in(operator).get(LIST))
    again = act(signed_in(operator), f"{LIST}open/", **given)
    assert "has an activation run already" in words(again)
    elsewhere = make_staff(make_world().workspace, "operate_collection")
    assert "is not one of the available choices" in words(act(signed_in(elsewhere), f"{LIST}open/", **given))
    assert signed_in(make_staff(world.workspace, "audit")).get(f"{LIST}open/").status_code == 404


def test_it_is_told_from_what_a_principal_is_warm_on(desk: Desk, scene: Scene) -> None:
    """The other list is headed `Activation`; this one says of what in its heading, trail and navigation."""
    everywhere = signed_in(scene.operator).get(LIST).content.decode()
    assert re.search(r"<h1[^>]*>\s*Journal activation\s*</h1>", everywhere)
    assert re.search(
        rf'<a class="item" href="{LIST}"[^>]*>(?:<[^>]*>[^<]*</span>)?\s*<span[^>]*>Journal activation<',
        everywhere,
    )
    page = desk.html(desk.operator)
    assert re.search(rf'<a href="{LIST}"[^>]*>Journal activation</a>', page)
    assert f"Journal activation of {scene.world.workspace.name}" in page


def test_the_whole_way_from_off_to_a_pilot_and_back(desk: Desk, scene: Scene) -> None:
    journal.take_part(scene.world)
    store(shared_of(scene.world), *CHAIN)
    scene.give_all()
    assert "Take the run on…" in desk.page(desk.operator)
    pressed(act(desk.operator, f"{desk.url}advance/"))
    assert desk.state() == "ready"
    assert "Next: ask for the approval" in desk.page(desk.reviewer)
    pressed(act(desk.operator, f"{desk.url}request/"))
    shown = desk.page(desk.reviewer)
    assert f"waits for another person than {scene.operator.username}" in shown
    assert "voids it" in shown
    assert "You asked for it; another person approves." in desk.page(desk.operator)
    refused = act(desk.operator, f"{desk.url}approve/")
    assert (refused.status_code, desk.state()) == (409, "ready")
    evidence_first = desk.reviewer.get(f"{desk.url}approve/").content.decode()
    assert evidence_first.index("B11 H") < evidence_first.rindex('type="submit"')
    pressed(act(desk.reviewer, f"{desk.url}approve/"))
    assert mode(scene) == "off"
    pressed(act(desk.operator, f"{desk.url}enable/"))
    assert (desk.state(), mode(scene)) == ("enabled", "platform-text")
    assert 'class="gv-button danger" href' in desk.html(desk.operator)
    pressed(act(desk.operator, f"{desk.url}look/C2/", query=QUERY))
    for item in ("C3", "C4"):
        pressed(act(desk.operator, f"{desk.url}look/{item}/"))
    pressed(act(desk.reviewer, f"{desk.url}vouch/C2/", result="pass"))
    assert desk.state() == "pilot_verified"
    pressed(act(desk.operator, f"{desk.url}stop/"))
    assert (desk.state(), mode(scene)) == ("stopping", "off")
    process(seen=timedelta(seconds=10))
    pressed(act(desk.operator, f"{desk.url}look/all/"))
    pressed(act(desk.reviewer, f"{desk.url}vouch/D2/", result="pass"))
    assert desk.state() == "shutdown_verified"
    assert "held exclusively" in desk.page(desk.reviewer)
    with staff_session(make_staff(scene.world.workspace, "audit")):
        kept = set(AuditEntry.objects.filter(object_id=str(scene.run_id)).values_list("action", flat=True))
    acts = {"request_enabling", "approve", "enable", "stop", "advance"}
    assert {f"observations.activation_{name}" for name in acts} <= kept


def test_looking_at_a_failing_c_says_that_it_is_off_now(desk: Desk, enabled: Scene) -> None:
    answer = act(desk.operator, f"{desk.url}look/C2/", query="nothing is kept here", follow=True)
    pressed(answer)
    shown = desk.page(desk.operator)
    assert "Failed: C2. Collection is switched off." in shown
    assert (desk.state(), mode(enabled)) == ("stopping", "off")


def test_a_failed_pilot_says_the_way_to_another_run(desk: Desk, enabled: Scene) -> None:
    act(desk.operator, f"{desk.url}look/C2/", query="nothing is kept here")
    shown = desk.page(desk.operator)
    assert "The pilot failed at C2, and collection is off. This run does not go on." in shown
    assert "D1 and D2. To collect again, mend what the evidence of C2 shows, then open another run" in shown
    assert "Open a run…" not in shown
    given = {"workspace": str(enabled.world.workspace.pk), "mode": "hash"}
    assert "D1 and D2 have to prove that it is off" in words(act(desk.operator, f"{LIST}open/", **given))

    process(seen=timedelta(seconds=10))
    act(desk.operator, f"{desk.url}look/all/")
    act(desk.reviewer, f"{desk.url}vouch/D2/", result="pass")
    assert desk.state() == "shutdown_verified"
    shown = desk.page(desk.operator)
    assert "Off is proven. To collect again, mend what the evidence of C2 shows" in shown
    assert f'href="{LIST}open/"' in desk.html(desk.operator)
    assert "Open a run…" not in desk.page(desk.reviewer)
    pressed(act(desk.operator, f"{LIST}open/", **given))


def test_an_unproven_pilot_is_told_from_one_that_a_person_ended(
    desk: Desk, enabled: Scene, owner_connection
) -> None:
    moved = "UPDATE observations_activation_run SET enabled_at = now() - interval '25 hours' WHERE id = %s"
    owner_connection.execute(moved, [enabled.run_id])
    assert tasks.stop_unsafe.function() == {"stopped": 1}
    assert "did not pass C2 and C3 within 24 hours" in desk.page(desk.operator)


def test_a_pilot_that_a_person_ended_is_no_failure(desk: Desk, enabled: Scene) -> None:
    pressed(act(desk.operator, f"{desk.url}stop/"))
    shown = desk.page(desk.operator)
    assert "Collection is off. This run does not go on. Prove that off is off with D1 and D2." in shown
    assert "The pilot" not in shown


def test_nothing_changes_on_get(desk: Desk, enabled: Scene, owner_connection) -> None:
    tables = ("observations_activation_run", "observations_evidence", "core_auditentry", "core_storedpolicy")

    def held() -> list[Any]:
        sql = "SELECT md5(coalesce(string_agg(t::text, '' ORDER BY t::text), '')) FROM {} t"
        return [owner_connection.execute(sql.format(table)).fetchone() for table in tables]

    before = held()
    acts = ("change", "stop", "advance", "request", "approve", "enable", "look/all", "look/C2", "vouch/B10")
    for path in (*acts, "vouch/B7"):
        assert desk.operator.get(f"{desk.url}{path}/").status_code == 200, path
    assert desk.operator.get(LIST).status_code == 200
    assert held() == before


def test_a_change_since_the_preview_does_nothing_and_keeps_the_reason(desk: Desk, ready: Scene) -> None:
    ready.request()
    html = desk.reviewer.get(f"{desk.url}approve/").content.decode()
    seen = html.split('name="version" value="')[1].split('"')[0]
    ready.give("B11")
    answer = desk.reviewer.post(f"{desk.url}approve/", {"version": seen, "reason": "I have seen it"})
    assert (answer.status_code, desk.state()) == (412, "ready")
    assert "I have seen it" in words(answer)
    assert "The approval is void" in desk.page(desk.reviewer)
    assert act(desk.reviewer, f"{desk.url}approve/").status_code == 409
    assert "Ask for approval…" in desk.page(desk.operator)


def test_evidence_stands_in_place_with_its_age_and_who_is_next(desk: Desk, scene: Scene) -> None:
    assert "next: CI or a rehearsal posts it" in desk.page(desk.operator)
    scene.give("B5", observed_at=clock.now() - timedelta(minutes=4), measured={"expired_records": 0})
    shown = desk.page(desk.operator)
    assert "4 min old, stale in 25 min" in shown or "4 min old, stale in 26 min" in shown
    assert "expired records 0" in shown
    scene.give("B5", observed_at=clock.now() - timedelta(minutes=31))
    assert "31 min old, stale" in desk.page(desk.operator)
    scene.examine("A3")
    shown = desk.page(desk.reviewer)
    assert f"other than {scene.operator.username}" in shown
    assert "You let the machine look; another person attests." in desk.page(desk.operator)
    assert act(desk.operator, f"{desk.url}vouch/A3/", result="pass").status_code == 409
    pressed(act(desk.reviewer, f"{desk.url}vouch/A3/", result="pass", reason="window known"))
    assert "window known" in desk.page(desk.operator)


def test_a_person_says_which_alarm_arrived(desk: Desk, scene: Scene) -> None:
    scene.give("B7")
    with staff_session(scene.operator):
        where = Destination.objects.get()
        sent = Delivery.objects.create(
            workspace=scene.world.workspace, destination=where, notice="test", body={}, created_at=clock.now()
        )
    assert act(desk.reviewer, f"{desk.url}vouch/B7/", result="pass", alarm=sent.pk.hex).status_code == 422
    Delivery.objects.filter(pk=sent.pk).update(delivered_at=clock.now())
    pressed(act(desk.reviewer, f"{desk.url}vouch/B7/", result="pass", alarm=sent.pk.hex))
    with staff_session(scene.operator):
        row = Evidence.objects.get(item="B7", part="human", superseded_by=None)
    assert (row.object_type, row.object_id) == ("alarm", sent.pk.hex)


@pytest.mark.parametrize("note", ["see postgresql://u:p@db/x", "ask someone@example.org", "a" * 501])
def test_no_note_holds_what_should_not_be_kept(desk: Desk, scene: Scene, note: str) -> None:
    act(desk.reviewer, f"{desk.url}vouch/B10/", result="pass", reason=note)
    with staff_session(scene.operator):
        assert not Evidence.objects.exists()


def test_others_see_what_their_grant_says(desk: Desk, scene: Scene) -> None:
    auditor = signed_in(make_staff(scene.world.workspace, "audit"))
    shown = auditor.get(f"{desk.url}change/")
    assert shown.status_code == 200
    assert "Look…" not in words(shown)
    for path in ("stop", "approve", "look/A2", "vouch/B10"):
        assert auditor.get(f"{desk.url}{path}/").status_code == 404, path
    assert desk.reviewer.get(f"{desk.url}stop/").status_code == 404
    assert desk.reviewer.get(f"{desk.url}look/A2/").status_code == 404
    stranger = signed_in(make_staff(make_world().workspace, "operate_collection", "review_retention"))
    for path in ("change", "stop", "look/A2", "vouch/B10", "look/nothing"):
        assert stranger.get(f"{desk.url}{path}/").status_code == 404, path
    assert desk.operator.get(f"{desk.url}look/Z9/").status_code == 404
    assert Client().get(f"{desk.url}look/A2/").status_code == 302
    assert RELEASE not in words(stranger.get(LIST))


def test_probes_run_from_the_page(desk: Desk, scene: Scene) -> None:
    pressed(act(desk.operator, f"{desk.url}look/all/"))
    with staff_session(scene.operator):
        found = set(Evidence.objects.values_list("item", flat=True))
    assert found == {"A2", "A3", "A4", "B1", "B4", "B5", "B6"}
    blocked = act(desk.operator, f"{desk.url}look/C3/")
    assert "cannot look at this now" in words(blocked)
