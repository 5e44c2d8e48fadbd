"""Four eyes: what a proposal is good for, and what it is not. And the drill and the preview beside it."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.core.models import AuditEntry
from apps.core.policies import current_policy, followed, publish_policy
from apps.core.problems import Forbidden, InvalidRequest
from apps.learning.exceptions import ApprovalRequired, StaleState, UnknownProfile, UnknownProposal
from apps.learning.models import ActivationProposal, ProposalStatus, RollbackDrill, Transition
from apps.learning.profile_documents import TransitionsQuery
from apps.learning.selectors.profiles import active_shown, transitions_page
from apps.learning.services.pointers import Command
from apps.learning.services.proposals import (
    activate_for,
    approve_activation,
    deactivate_for,
    drill_for,
    preview_for,
    propose_activation,
    roll_back_for,
    withdraw_proposal,
)
from tests.search.test_profiles import fill
from tests.support.api import Api, code_of
from tests.support.factories import make_staff, make_world
from tests.support.library import ask
from tests.support.profiles import RECENT, activate, deactivate, make_profile
from tests.support.statements import sent

pytestmark = pytest.mark.django_db

WHY = "better on unseen queries"


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def anna(world):
    return make_staff(world.workspace, "view_traces", "manage_profiles")


@pytest.fixture
def bert(world):
    return make_staff(world.workspace, "view_traces", "manage_profiles")


def propose(user, profile, expected=None):
    with staff_session(user):
        return propose_activation(profile_id=profile, expected_active=expected, reason=WHY)


def approve(user, proposal, *, version=None, key="approve"):
    with staff_session(user):
        return approve_activation(
            proposal_id=proposal.pk, version=version or proposal.version, change_id=key, reason=WHY
        )


def status_of(me, proposal):
    with principal_session(me):
        return ActivationProposal.objects.get(pk=proposal.pk).status


def active(me):
    with principal_session(me):
        return active_shown(None)["active"]


def refusal(call):
    with pytest.raises(ApprovalRequired) as refused:
        call()
    return refused.value.more["reason"]


def test_one_proposes_and_another_approves(world, me, anna, bert) -> None:
    profile = make_profile(me)
    proposal = propose(anna, profile)
    done = approve(bert, proposal)
    assert (done["active"], done["actor"], done["proposal_id"]) == (str(profile), "staff", str(proposal.pk))
    assert approve(bert, proposal) == done
    assert status_of(me, proposal) == ProposalStatus.APPROVED
    with principal_session(me):
        assert Transition.objects.get().actor_user_id == bert.pk
    with staff_session(make_staff(world.workspace, "audit")):
        entries = AuditEntry.objects.filter(object_id=str(profile)).order_by("sequence")
        assert [(entry.action, entry.actor_user_id) for entry in entries] == [
            ("learning.propose_activation", anna.pk),
            ("learning.activate_profile", bert.pk),
        ]


def test_the_proposer_is_no_approver(me, anna) -> None:
    proposal = propose(anna, make_profile(me))
    assert refusal(lambda: approve(anna, proposal)) == "same_person"
    assert active(me) is None
    assert status_of(me, proposal) == ProposalStatus.OPEN


def test_an_approval_of_another_version_is_none(me, anna, bert) -> None:
    first, second = make_profile(me), make_profile(me, RECENT)
    proposal, other = propose(anna, first), propose(anna, second)
    assert proposal.version != other.version
    assert refusal(lambda: approve(bert, proposal, version=other.version)) == "other_version"
    assert active(me) is None
    assert approve(bert, proposal)["active"] == str(first)


def test_a_move_of_the_pointer_voids_what_was_proposed_for_where_it_stood(me, anna, bert) -> None:
    first, second = make_profile(me), make_profile(me, RECENT)
    kept, voided = propose(anna, first), propose(anna, second)
    elsewhere = propose(anna, make_profile(me, scopes=("docs",)))
    deactivate(me, first, expected=None)  # changes nothing
    assert status_of(me, voided) == ProposalStatus.OPEN
    approve(bert, kept)
    assert [status_of(me, one) for one in (kept, voided, elsewhere)] == ["approved", "voided", "open"]
    deactivate(me, first, expected=first)
    # Base again, as when it was proposed: still void.
    assert refusal(lambda: approve(bert, voided, key="again")) == "voided"


def test_a_proposal_counts_once_and_for_three_days(me, anna, bert) -> None:
    profile = make_profile(me)
    with clock.frozen(clock.now()) as at:
        proposal = propose(anna, profile)
        at.advance(timedelta(days=3))
        assert refusal(lambda: approve(bert, proposal)) == "lapsed"
        proposal = propose(anna, profile)
        approve(bert, proposal)
        deactivate(me, profile, expected=profile)
        assert refusal(lambda: approve(bert, proposal, key="again")) == "approved"
        with staff_session(anna):
            withdrawn = propose_activation(profile_id=profile, expected_active=None, reason=WHY)
            withdraw_proposal(proposal_id=withdrawn.pk, reason=WHY)
        assert refusal(lambda: approve(bert, withdrawn, key="third")) == "withdrawn"


def test_staff_need_an_approval_and_principals_do_not_unless_the_gate_says_so(world, me, anna) -> None:
    profile = make_profile(me)
    with staff_session(anna):
        assert (
            refusal(lambda: activate_for(profile_id=profile, command=Command("k", None, WHY)))
            == "no_proposal"
        )
    gate(world, anna, four_eyes_in_admin=False, four_eyes_in_api=True)
    refused = Api(me, "learning").post(
        f"/v1/learning/profiles/{profile}/activate", {"change_id": "p", "expected_active": None}
    )
    assert (refused.status_code, code_of(refused)) == (409, "approval_required")
    with staff_session(anna):
        assert activate_for(profile_id=profile, command=Command("k", None, WHY))["actor"] == "staff"


def gate(world, user, **changes):
    with staff_session(user):
        before = followed(world.workspace.pk, "gate")
        document = current_policy(world.workspace.pk, "gate").document | changes
        publish_policy(
            workspace_id=world.workspace.pk,
            kind="gate",
            document=document,
            if_match=before.hash,
            reason="test",
        )


def test_going_back_needs_one_person_with_the_grant_and_a_reason(world, me, anna) -> None:
    profile = make_profile(me)
    activate(me, profile)
    with staff_session(anna):
        with pytest.raises(StaleState):
            deactivate_for(profile_id=profile, command=Command("a", None, WHY))
        with pytest.raises(InvalidRequest):
            deactivate_for(profile_id=profile, command=Command("b", profile, ""))
        back = roll_back_for(profile_id=profile, to=None, command=Command("c", profile, WHY))
        assert (back["active"], back["reason"]) == (None, WHY)
    seeing = make_staff(world.workspace, "view_traces")
    with staff_session(seeing), pytest.raises(Forbidden):
        deactivate_for(profile_id=profile, command=Command("d", None, WHY))


def test_staff_of_another_workspace_see_neither_profile_nor_proposal(me, anna) -> None:
    proposal = propose(anna, make_profile(me))
    stranger = make_staff(make_world().workspace, "view_traces", "manage_profiles")
    with pytest.raises(UnknownProposal):
        approve(stranger, proposal)
    with pytest.raises(UnknownProfile):
        propose(stranger, proposal.profile_id)


def test_a_proposal_expects_what_is_there(me, anna) -> None:
    with pytest.raises(StaleState):
        propose(anna, make_profile(me), expected=uuid7())


# The drill.


def drill(user, profile):
    with staff_session(user):
        return drill_for(profile_id=profile, reason="before we rely on it")


def test_a_drill_activates_sees_and_goes_back_beside_the_real_pointer(me, anna) -> None:
    base = make_profile(me, RECENT)
    profile = make_profile(me, baseline=base)
    activate(me, base)
    done = drill(anna, profile)
    assert done.passed
    steps = done.evidence["steps"]
    assert [step["step"] for step in steps] == ["activate", "activate", "rollback", "rollback"]
    seen = [step["seen"]["active"] for step in steps]
    assert seen == [str(base), str(profile), str(base), None]
    assert done.evidence["real_pointer_untouched"]
    assert active(me) == str(base)
    with principal_session(me):
        listed = transitions_page(TransitionsQuery(limit=50))["transitions"]
        assert [row["kind"] for row in listed] == ["activate"]
        assert Transition.objects.filter(drill_id=done.pk).count() == 4


def test_a_drill_of_what_does_not_apply_is_kept_as_failed(me, anna) -> None:
    done = drill(anna, make_profile(me, contract="native-0"))
    assert not done.passed
    assert done.evidence["refused"] == {"code": "not_promotable", "reason": "scorer_contract"}
    with principal_session(me):
        assert RollbackDrill.objects.get().pk == done.pk


# The preview.


def test_a_preview_counts_the_scope_sets_receipts_and_reorders_recent_ones(me, anna) -> None:
    fill(me)
    answers = [ask(me, f"billing rollback {word}") for word in ("a", "b", "c", "d", "e", "f")]
    ask(me, "billing rollback", scopes=["default"])
    profile = make_profile(me, (0.25, 0.25, 1.0, 4.0, 1.0, 1.0))
    with staff_session(anna):
        shown = preview_for(profile_id=profile).shown()
    assert (shown["days"], shown["receipts"], shown["receipts_a_day"]) == (7, 6, 0.9)
    newest = [answer["retrieval_receipt_id"] for answer in reversed(answers)][:5]
    assert [order["receipt_id"] for order in shown["orders"]] == newest
    order = shown["orders"][0]
    assert order["now"] == [row["node_id"] for row in answers[-1]["results"]]
    activate(me, profile)
    after = [row["node_id"] for row in ask(me, "billing rollback f")["results"]]
    assert order["then"] == after
    assert order["moved"] == sum(a != b for a, b in zip(order["now"], after, strict=True)) > 0
    assert "billing" not in str(shown)
    api = Api(me, "learning")
    again = api.get(f"/v1/learning/profiles/{profile}/preview").json()
    assert [order["moved"] for order in again["orders"]] == [0] * len(newest)  # it is active now
    assert api.get(f"/v1/learning/profiles/{uuid4()}/preview").status_code == 404
    assert UUID(again["profile_id"]) == profile


def test_a_preview_shows_five_queries_not_one_asked_over_and_over(me, anna) -> None:
    fill(me)
    profile = make_profile(me, RECENT)

    def statements() -> tuple[list[str], int]:
        with staff_session(anna), sent() as told:
            orders = preview_for(profile_id=profile).shown()["orders"]
        return [order["receipt_id"] for order in orders], len(told)

    first = {word: ask(me, f"billing {word}")["retrieval_receipt_id"] for word in ("a", "b")}
    few = statements()
    assert few[0] == [first["b"], first["a"]]
    rest = {word: ask(me, f"billing {word}")["retrieval_receipt_id"] for word in ("c", "d", "e", "f")}
    # The same query for its identity, whatever its case and spaces; the newest of its receipts is shown.
    again = [ask(me, text)["retrieval_receipt_id"] for text in ("billing B", *["Billing  b "] * 6)]
    many = statements()
    assert many[0] == [again[-1], *(rest[word] for word in ("f", "e", "d", "c"))]
    assert few[1] == many[1]
