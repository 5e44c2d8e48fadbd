"""Pages of ranking profiles: who sees what, that an act does what it showed, and that an old page does nothing."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.learning import alerts
from apps.learning.admin.rollback_actions import MOST_ORDERS
from apps.learning.models import ActivationProposal, RollbackDrill, Transition
from apps.learning.selectors.profiles import active_shown
from apps.operations.models import Alarm
from tests.learning.test_proposals import gate
from tests.search.test_profiles import fill
from tests.support.factories import make_staff, make_world
from tests.support.learning_pages import EVIDENCE, Dialog, text_of
from tests.support.library import ask
from tests.support.profiles import LEXICAL, RECENT, activate, deactivate, make_profile
from tests.support.statements import sent

pytestmark = pytest.mark.django_db

WHY = "better on unseen queries"


class Scene:
    def __init__(self) -> None:
        self.world = make_world()
        self.me = fill(self.world.principal)
        self.users: dict[Client, Any] = {}
        self.profile = make_profile(self.me, LEXICAL, evidence=EVIDENCE)
        self.ana, self.ben = self.manager(), self.manager()

    def client(self, *grants: str) -> Client:
        client, user = Client(), make_staff(self.world.workspace, *grants)
        client.force_login(user)
        self.users[client] = user
        return client

    def manager(self) -> Client:
        return self.client("view_traces", "manage_profiles", "audit")

    def url(self, act: str = "change", profile: UUID | None = None) -> str:
        return f"/admin/learning/rankingprofile/{profile or self.profile}/{act}/"

    def page(self, client: Client | None = None, profile: UUID | None = None) -> str:
        return text_of((client or self.ana).get(self.url(profile=profile)))

    def active(self) -> str | None:
        with principal_session(self.me):
            found: str | None = active_shown(None)["active"]
            return found

    def proposal(self) -> UUID:
        with principal_session(self.me):
            return ActivationProposal.objects.latest("proposed_at").pk


@pytest.fixture
def scene() -> Scene:
    return Scene()


def fragment(client: Client, url: str) -> Any:
    return client.get(url, headers={"X-Gov-Dialog": "1"})


# Who sees what.


def test_the_list_and_the_page_answer_by_grant(scene: Scene) -> None:
    viewer, nobody = scene.client("view_traces"), scene.client("operate_collection")
    stranger = Client()
    stranger.force_login(make_staff(make_world().workspace, "view_traces", "manage_profiles"))
    assert "+.018 [.004, .033] n 64" in text_of(viewer.get("/admin/learning/rankingprofile/"))
    assert str(scene.profile)[-7:] not in text_of(stranger.get("/admin/learning/rankingprofile/"))
    assert viewer.get(scene.url()).status_code == 200
    assert [client.get(scene.url()).status_code for client in (stranger, nobody)] == [404, 404]
    for act in ("propose", "activate", "deactivate", "rollback", "drill"):
        assert [c.get(scene.url(act)).status_code for c in (viewer, stranger, nobody)] == [404] * 3
    for name in ("preview", "standing", "reproduces"):
        assert fragment(viewer, scene.url(name)).status_code == 200
        assert fragment(stranger, scene.url(name)).status_code == 404
        assert viewer.post(scene.url(name)).status_code in (403, 404, 405)


def test_the_verdict_comes_first_and_the_evidence_stands_side_by_side(scene: Scene) -> None:
    text = scene.page()
    order = [
        text.index(words) for words in ("proposal", "Evidence", "Multipliers", "What would change", "Pointer")
    ]
    assert order == sorted(order)
    assert "+.031 [.012, .050] n 64, minimum .010" in text
    assert "+.018 [.004, .033] n 64, minimum .010" in text
    assert "× 4.00" in text
    assert "Now: base scoring" in text
    assert "never active" in text
    assert "+.009, not lower" in text
    assert "6 of 64 groups, limit 10.0 %" in text


def test_evidence_is_held_against_the_gate_of_now(scene: Scene) -> None:
    gate(scene.world, scene.users[scene.ana], holdout={"max_regression_fraction": 0.05})
    assert "✕ 6 of 64 groups, limit 5.0 %" in scene.page()
    assert "passed v1; another rules now, v1" in scene.page()


# Four eyes.


def test_one_proposes_another_approves_and_the_page_says_so_at_each_step(scene: Scene) -> None:
    dialog = Dialog(scene.ana, scene.url("propose"))
    assert "Proposes to activate" in dialog.text
    assert "receipts a day" in dialog.text
    assert dialog.send().status_code == 302
    assert scene.active() is None
    proposer, approver = scene.page(scene.ana), scene.page(scene.ben)
    assert "waits for a second person" in proposer
    assert "You proposed it; another person approves." in proposer
    assert "You proposed it; another" not in approver
    approve = scene.url(f"approve/{scene.proposal()}")
    assert Dialog(scene.ana, approve).send().status_code == 409
    assert scene.active() is None
    dialog = Dialog(scene.ben, approve)
    assert WHY in dialog.text
    assert dialog.send().status_code == 302
    assert scene.active() == str(scene.profile)
    text = scene.page(scene.ben)
    names = [scene.users[client].username for client in (scene.ana, scene.ben)]
    assert f"{names[0]}, approved by {names[1]}" in text
    with staff_session(scene.users[scene.ana]):
        entries = AuditEntry.objects.filter(object_id=str(scene.profile)).order_by("sequence")
        assert list(entries.values_list("action", flat=True)) == [
            "learning.propose_activation",
            "learning.activate_profile",
        ]


def test_a_proposal_can_be_withdrawn_and_one_is_enough(scene: Scene) -> None:
    Dialog(scene.ana, scene.url("propose")).send()
    assert "proposed it already" in text_of(scene.ben.get(scene.url("propose")))
    assert Dialog(scene.ben, scene.url("propose")).send().status_code == 409
    assert Dialog(scene.ben, scene.url(f"withdraw/{scene.proposal()}")).send().status_code == 302
    assert "waits for a second person" not in scene.page()
    assert scene.client("view_traces").get(scene.url(f"approve/{scene.proposal()}")).status_code == 404
    assert Dialog(scene.ben, scene.url(f"approve/{scene.proposal()}")).send().status_code == 409


def test_without_four_eyes_one_person_activates(scene: Scene) -> None:
    assert Dialog(scene.ana, scene.url("activate")).send().status_code == 409
    gate(scene.world, scene.users[scene.ana], four_eyes_in_admin=False)
    text = scene.page()
    assert "Activate…" in text
    assert "Propose activation…" not in text
    assert Dialog(scene.ana, scene.url("activate")).send().status_code == 302
    assert scene.active() == str(scene.profile)


# Preview and effect.


def test_the_preview_orders_answers_as_the_activated_profile_does(scene: Scene) -> None:
    answer = ask(scene.me, "billing rollback")
    profile = make_profile(scene.me, (0.25, 0.25, 1.0, 4.0, 1.0, 1.0), evidence=EVIDENCE)
    preview = scene.url("preview", profile)
    shown = text_of(fragment(scene.ana, preview))
    assert ".1 receipts a day of this scope set, over 7 days" in shown
    html = fragment(scene.ana, preview).content.decode()
    before = [row["node_id"] for row in answer["results"]]
    activate(scene.me, profile)
    after = [row["node_id"] for row in ask(scene.me, "billing rollback")["results"]]
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    assert moved
    assert f"{moved} of {len(before)} rows move" in shown
    assert html.count('class="up"') + html.count('class="down"') == moved
    assert "billing" not in shown
    assert "nothing moves" in text_of(fragment(scene.ana, preview))


def test_deactivation_shows_base_scoring_and_returns_to_it(scene: Scene) -> None:
    activate(scene.me, scene.profile)
    dialog = Dialog(scene.ana, scene.url("deactivate"))
    assert f"ranked with now …{str(scene.profile)[-7:]} after base scoring" in dialog.text
    assert dialog.send().status_code == 302
    assert scene.active() is None


def test_a_roll_back_offers_what_was_active_and_base_and_nothing_else(scene: Scene) -> None:
    second = make_profile(scene.me, RECENT, baseline=scene.profile, evidence=EVIDENCE)
    never = make_profile(scene.me, (1.0, 1.0, 2.0, 1.0, 1.0, 1.0), evidence=EVIDENCE)
    activate(scene.me, scene.profile)
    activate(scene.me, second, expected=scene.profile)
    dialog = Dialog(scene.ana, scene.url("rollback", second))
    html = dialog.answer.content.decode()
    assert f'value="{scene.profile}"' in html
    assert 'value="base"' in html
    assert str(never) not in html
    refused = dialog.send(to=str(never))
    assert refused.status_code == 422
    assert scene.active() == str(second)
    assert dialog.send(to=str(scene.profile)).status_code == 302
    assert scene.active() == str(scene.profile)
    assert Dialog(scene.ana, scene.url("rollback", second)).send(to="base").status_code == 302
    assert scene.active() is None
    assert "rolled back" in scene.page()


def test_each_state_to_go_back_to_shows_the_order_that_going_there_gives(scene: Scene) -> None:
    fresh = (0.25, 0.25, 1.0, 4.0, 1.0, 1.0)
    second = make_profile(scene.me, fresh, baseline=scene.profile, evidence=EVIDENCE)
    activate(scene.me, scene.profile)
    activate(scene.me, second, expected=scene.profile)
    began = [row["node_id"] for row in ask(scene.me, "billing rollback")["results"]]
    dialog = Dialog(scene.ana, scene.url("rollback", second))
    # A part a choice: how many rows move, and the rows that do.
    choices = re.split(r'<label class="gv-choice">', dialog.answer.content.decode())[1:]
    assert len(choices) == 2
    for choice, to in zip(choices, (str(scene.profile), "base"), strict=True):
        assert f'value="{to}"' in choice
        assert Dialog(scene.ana, scene.url("rollback", second)).send(to=to).status_code == 302
        ended = [row["node_id"] for row in ask(scene.me, "billing rollback")["results"]]
        moved = sum(a != b for a, b in zip(began, ended, strict=True))
        assert moved
        assert f"{moved} of {len(began)} rows move in 1 recent query" in choice
        assert choice.count('class="up"') + choice.count('class="down"') == moved
        if to == "base":
            break
        activate(scene.me, second, expected=scene.profile)
    assert "billing" not in dialog.text
    assert re.search(r"active from \d{4}-\d\d-\d\d [\d:]+ UTC to", dialog.text)


def test_older_states_are_offered_and_shown_on_a_page_of_their_own(scene: Scene) -> None:
    before = None
    for number in range(MOST_ORDERS + 2):
        profile = make_profile(scene.me, (1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + number / 10), baseline=before)
        activate(scene.me, profile, expected=before)
        before = profile
    text = scene.ana.get(scene.url("rollback", before)).content.decode()
    assert text.count('type="radio"') == MOST_ORDERS + 2
    assert text.count("Show what would change") == 1


# An old page.


def test_a_stale_dialog_is_refused_keeps_the_reason_and_says_what_changed(scene: Scene) -> None:
    activate(scene.me, scene.profile)
    dialog = Dialog(scene.ana, scene.url("deactivate"))
    deactivate(scene.me, scene.profile, expected=scene.profile)
    answer = dialog.send(reason="for the third time")
    assert answer.status_code == 412
    text = text_of(answer)
    assert "Since you opened this it has changed" in text
    assert "for the third time" in text
    assert str(scene.profile) in text
    assert "base scoring" in text
    with principal_session(scene.me):
        assert Transition.objects.count() == 2


def test_a_form_sent_twice_counts_once(scene: Scene) -> None:
    gate(scene.world, scene.users[scene.ana], four_eyes_in_admin=False)
    dialog = Dialog(scene.ana, scene.url("activate"))
    assert dialog.send().status_code == 302
    assert dialog.send().status_code == 412
    with principal_session(scene.me):
        assert Transition.objects.count() == 1


def test_an_approval_of_a_state_that_has_moved_is_refused(scene: Scene) -> None:
    other = make_profile(scene.me, RECENT, evidence=EVIDENCE)
    Dialog(scene.ana, scene.url("propose")).send()
    dialog = Dialog(scene.ben, scene.url(f"approve/{scene.proposal()}"))
    activate(scene.me, other)
    assert dialog.send().status_code == 412
    assert "the proposal is void" in text_of(scene.ben.get(scene.url(f"approve/{scene.proposal()}")))
    assert scene.active() == str(other)
    assert "It improves upon base scoring" in scene.page()


def test_an_open_page_learns_that_it_is_old(scene: Scene) -> None:
    html = scene.ana.get(scene.url()).content.decode()
    poll = html.split('data-poll="')[1].split('"')[0]
    assert "data-stale" not in fragment(scene.ana, poll).content.decode()
    Dialog(scene.ben, scene.url("propose")).send()
    name = scene.users[scene.ben].username
    assert f"Since you opened this page {name} proposed to activate" in text_of(fragment(scene.ana, poll))
    activate(scene.me, scene.profile)
    answer = fragment(scene.ana, poll)
    assert "Since you opened this page its owner activated" in text_of(answer)
    assert "data-stale" in answer.content.decode()
    assert "data-poll" not in answer.content.decode()


# What does not apply, the drill, the cost.


def test_a_profile_that_does_not_apply_says_why_and_cannot_be_proposed(scene: Scene) -> None:
    old = make_profile(scene.me, contract="native-0", evidence=EVIDENCE)
    assert "does not apply: a release scores differently" in scene.page(profile=old)
    assert Dialog(scene.ana, scene.url("propose", old)).send().status_code == 409
    ended = make_profile(
        scene.me, RECENT, effective_until=clock.now() + timedelta(hours=1), evidence=EVIDENCE
    )
    activate(scene.me, ended)
    with clock.frozen(clock.now() + timedelta(hours=2)):
        assert "It is active and not applied: its term is over." in scene.page(profile=ended)


def test_the_drill_leaves_its_evidence_on_the_page_and_the_pointer_alone(scene: Scene) -> None:
    assert "Never rehearsed." in scene.page()
    assert Dialog(scene.ana, scene.url("drill")).send().status_code == 302
    text = scene.page()
    assert "passed" in text
    assert "goes active" in text
    assert "the real pointer where it was" in text
    assert scene.active() is None
    with principal_session(scene.me):
        assert RollbackDrill.objects.get().passed


def test_lists_and_pages_ask_no_more_for_more_rows(scene: Scene) -> None:
    listing = "/admin/learning/rankingprofile/"
    with sent() as few:
        scene.ana.get(listing)
    for number in range(6):
        activate(scene.me, scene.profile, expected=scene.profile if number else None)
        make_profile(scene.me, (1.0, 1.0 + number / 10, 1.0, 1.0, 1.0, 1.0), evidence=EVIDENCE)
    with sent() as many:
        scene.ana.get(listing)
    assert len(many) <= len(few)
    with sent() as page:
        scene.ana.get(scene.url())
    assert len(page) <= 40


@pytest.mark.parametrize("state", ["active", "proposed", "not_active"])
def test_the_list_can_be_narrowed_by_state(scene: Scene, state: str) -> None:
    waiting = make_profile(scene.me, RECENT, scopes=("docs",), evidence=EVIDENCE)
    Dialog(scene.ana, scene.url("propose", waiting)).send()
    activate(scene.me, scene.profile)
    text = text_of(scene.ana.get(f"/admin/learning/rankingprofile/?state={state}"))
    seen = {name for name, pk in (("a", scene.profile), ("w", waiting)) if str(pk)[-7:] in text}
    assert seen == {"active": {"a"}, "proposed": {"w"}, "not_active": {"w"}}[state]


# Other pages.


def test_the_start_page_says_what_waits_and_how_many_are_active(scene: Scene) -> None:
    ask(scene.me, "billing rollback", scopes=["default"])
    Dialog(scene.ana, scene.url("propose")).send()
    words = f"Activation of profile …{str(scene.profile)[-7:]}"
    assert f"{words} waits for a second person" in text_of(scene.ben.get("/admin/"))
    assert f"{words}, which you proposed, waits" in text_of(scene.ana.get("/admin/"))
    viewer = scene.client("view_traces")
    text = text_of(viewer.get("/admin/"))
    assert words not in text
    assert "active profiles 0 of 1 scope sets" in text
    activate(scene.me, scene.profile)
    assert "active profiles 1 of 2 scope sets" in text_of(viewer.get("/admin/"))
    assert words not in text_of(scene.ben.get("/admin/"))


def test_the_page_of_a_principal_names_its_active_profiles(scene: Scene) -> None:
    url = f"/admin/accounts/principal/{scene.me.principal_id}/change/"
    assert "active profiles" not in text_of(scene.ana.get(url))
    activate(scene.me, scene.profile)
    assert f"active profiles all scopes {str(scene.profile)[:4]}…{str(scene.profile)[-7:]}" in text_of(
        scene.ana.get(url)
    )
    assert "Evaluate labels…" in text_of(scene.ana.get(url))
    assert "Evaluate labels…" not in text_of(scene.client("view_traces").get(url))


def test_an_alarm_of_a_profile_is_a_sentence_and_leads_to_it(scene: Scene) -> None:
    alerts.settle(
        scene.me.workspace_id, scene.profile, {alerts.REGRESSED: {"groups": 24, "ndcg_gain": -0.03}}
    )
    operator = scene.client("operate_collection", "view_traces")
    alarm = Alarm.objects.get(source=alerts.source_of(scene.profile))
    answer = operator.get(f"/admin/operations/alarm/{alarm.pk}/change/")
    assert "does worse than its baseline on what was judged since" in text_of(answer)
    assert f'href="{scene.url()}"' in answer.content.decode()


def test_the_palette_finds_what_was_learned_by_its_id(scene: Scene) -> None:
    answer = scene.ana.get("/admin/search/", {"s": str(scene.profile)})
    assert scene.url() in answer.content.decode()
    stranger = Client()
    stranger.force_login(make_staff(make_world().workspace, "view_traces"))
    assert "Nothing found." in text_of(stranger.get("/admin/search/", {"s": str(scene.profile)}))
    html = scene.ana.get("/admin/").content.decode()
    for key, kind in (("p", "rankingprofile"), ("e", "evaluation")):
        assert re.search(rf'href="/admin/learning/{kind}/"[^>]* data-go="{key}"', html)
