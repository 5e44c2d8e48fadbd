"""Commands on the pointer to the active profile, in the database and over the API."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.problems import Problem
from apps.learning.exceptions import NeverActive, NotPromotable, StaleState, WrongBaseline
from apps.learning.models import Transition
from apps.learning.profile_documents import TransitionsQuery
from apps.learning.selectors.profiles import active_shown, pointer_at, transitions_page
from apps.learning.services.pointers import expire_profile
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_world
from tests.support.profiles import RECENT, activate, deactivate, make_profile, roll_back

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def active(principal, scopes=None):
    with principal_session(principal):
        return active_shown(scopes)["active"]


def kinds(principal):
    with principal_session(principal):
        page = transitions_page(TransitionsQuery(limit=50))
        return [(row["kind"], row["changed"]) for row in page["transitions"]]


def test_a_profile_is_activated_deactivated_and_all_of_it_is_kept(me) -> None:
    profile = make_profile(me)
    done = activate(me, profile, key="change-1")
    assert (done["active"], done["expected_active"], done["changed"]) == (str(profile), None, True)
    assert (done["change_id"], done["actor"]) == ("change-1", "principal")
    assert active(me) == str(profile)
    assert deactivate(me, profile, expected=profile)["active"] is None
    assert active(me) is None
    assert kinds(me) == [("deactivate", True), ("activate", True)]


def test_a_stale_expectation_is_refused_and_leaves_nothing(me) -> None:
    first, second = make_profile(me), make_profile(me, RECENT)
    activate(me, first)
    for refused in (
        lambda: activate(me, second),
        lambda: roll_back(me, first, to=None, expected=None),
        lambda: deactivate(me, second, expected=second),
    ):
        with pytest.raises(StaleState):
            refused()
    assert active(me) == str(first)
    assert kinds(me) == [("activate", True)]


def test_only_the_baseline_that_was_measured_against_may_be_active(me) -> None:
    first = make_profile(me)
    on_first, on_base = make_profile(me, RECENT, baseline=first), make_profile(me, RECENT)
    with pytest.raises(WrongBaseline):
        activate(me, on_first)
    activate(me, first)
    with pytest.raises(WrongBaseline):
        activate(me, on_base, expected=first)
    assert activate(me, on_first, expected=first)["active"] == str(on_first)


def test_a_no_op_is_recorded_so_that_its_late_retry_does_nothing(me) -> None:
    profile = make_profile(me)
    nothing = deactivate(me, profile, expected=None, key="late")
    assert nothing["changed"] is False
    activate(me, profile)
    assert deactivate(me, profile, expected=None, key="late") == nothing
    assert active(me) == str(profile)
    assert kinds(me) == [("activate", True), ("deactivate", False)]


def test_a_key_counts_once_and_for_one_command(me) -> None:
    profile = make_profile(me)
    assert activate(me, profile, key="k") == activate(me, profile, key="k")
    with pytest.raises(Problem) as refused:
        deactivate(me, profile, expected=profile, key="k")
    assert refused.value.shown_code == "idempotency_conflict"
    assert len(kinds(me)) == 1


def test_a_refused_command_does_not_burn_its_key(me) -> None:
    profile = make_profile(me)
    with pytest.raises(StaleState):
        activate(me, profile, expected=profile, key="k")
    assert activate(me, profile, key="k")["changed"]


def test_one_goes_back_only_to_what_was_active_here_and_always_to_base(me) -> None:
    first = make_profile(me)
    second, never = make_profile(me, RECENT, baseline=first), make_profile(me, RECENT)
    elsewhere = make_profile(me, scopes=("docs",))
    activate(me, first)
    activate(me, second, expected=first)
    activate(me, elsewhere)
    for to in (never, elsewhere, uuid4()):
        with pytest.raises(NeverActive):
            roll_back(me, second, to=to, expected=second)
    assert roll_back(me, second, to=first, expected=second)["active"] == str(first)
    assert roll_back(me, first, to=None, expected=first)["active"] is None
    assert roll_back(me, first, to=second, expected=None)["active"] == str(second)
    assert active(me, ("docs",)) == str(elsewhere)


def test_a_clock_that_goes_back_keeps_the_order(me) -> None:
    profile = make_profile(me)
    with clock.frozen(clock.now()) as at:
        activate(me, profile)
        at.advance(-timedelta(hours=1))
        deactivate(me, profile, expected=profile)
        activate(me, profile)
        assert kinds(me) == [("activate", True), ("deactivate", True), ("activate", True)]
    with principal_session(me):
        times = list(Transition.objects.order_by("recorded_at").values_list("recorded_at", flat=True))
        assert times == sorted(set(times))
    assert active(me) == str(profile)


def test_what_no_longer_applies_is_neither_activated_nor_gone_back_to(me) -> None:
    old_contract = make_profile(me, contract="native-0")
    other_policy = make_profile(me, policy_sha256="0" * 64)
    ended = make_profile(me, effective_until=clock.now() - timedelta(hours=1))
    for profile, cause in (
        (old_contract, "scorer_contract"),
        (other_policy, "scoring_policy"),
        (ended, "expired"),
    ):
        with pytest.raises(NotPromotable) as refused:
            activate(me, profile)
        assert refused.value.more["reason"] == cause
    assert kinds(me) == []


def test_the_end_of_a_term_is_a_transition_of_the_platform(me) -> None:
    with clock.frozen(clock.now()) as at:
        profile = make_profile(me, effective_until=clock.now() + timedelta(days=1))
        activate(me, profile)
        with principal_session(me):
            assert not expire_profile(profile_id=profile)
        at.advance(timedelta(days=2))
        with principal_session(me):
            assert expire_profile(profile_id=profile)
            assert not expire_profile(profile_id=profile)
            newest = Transition.objects.latest("recorded_at")
            assert (newest.kind, newest.actor, newest.change_id) == ("expire", "platform", None)
            assert pointer_at("*").active is None


def test_pointers_of_others_and_of_other_scope_sets_stay_where_they_are(world, me) -> None:
    stranger = make_principal(world.workspace)
    mine = make_profile(me, scopes=("a",))
    activate(me, mine)
    assert active(me, ("a",)) == str(mine)
    assert [active(me, scopes) for scopes in (None, ("b",), ("a", "b"))] == [None] * 3
    assert active(stranger, ("a",)) is None
    for command in (
        lambda: activate(stranger, mine),
        lambda: deactivate(stranger, mine, expected=None),
        lambda: roll_back(stranger, mine, to=None, expected=None),
    ):
        with pytest.raises(Problem) as refused:
            command()
        assert refused.value.shown_code == "unknown_profile"


def test_a_text_that_may_not_be_kept_is_left_out_of_a_principals_reason(me) -> None:
    api = Api(me, "learning")
    profile = make_profile(me)
    body = {"change_id": "k", "expected_active": None, "reason": "password=hunter2hunter2"}
    answer = api.post(f"/v1/learning/profiles/{profile}/activate", body)
    assert answer.status_code == 200
    assert answer.json()["reason"] is None


def test_the_routes_move_a_pointer_and_list_what_was_done(me) -> None:
    api = Api(me, "learning")
    profile = make_profile(me, scopes=("a", "b"))
    at = f"/v1/learning/profiles/{profile}"
    assert api.get(at).json()["active"] is False
    moved = api.post(f"{at}/activate", {"change_id": "1", "expected_active": None, "reason": "better"})
    assert moved.status_code == 200, moved.content
    shown = api.get("/v1/learning/active", scopes="b,a").json()
    assert (shown["active"], shown["status"], shown["reason"]) == (str(profile), "applied", None)
    assert shown["transition"] == moved.json()
    assert shown["multipliers"]["lexical"] == 4.0
    assert api.get("/v1/learning/active").json()["status"] == "none"
    assert api.get(at).json()["active"] is True
    stale = api.post(f"{at}/deactivate", {"change_id": "2", "expected_active": None})
    assert (stale.status_code, code_of(stale), stale.json()["active"]) == (409, "stale_state", str(profile))
    back = api.post(f"{at}/rollback", {"change_id": "3", "expected_active": str(profile), "to": None})
    assert back.json()["active"] is None
    listed = api.get("/v1/learning/transitions", limit=1).json()
    assert [row["kind"] for row in listed["transitions"]] == ["rollback"]
    rest = api.get("/v1/learning/transitions", cursor=listed["next_cursor"]).json()
    assert [row["kind"] for row in rest["transitions"]] == ["activate"]
    assert api.get("/v1/learning/transitions", scopes="*").json()["transitions"] == []
    assert len(api.get("/v1/learning/profiles").json()["profiles"]) == 1


def test_refusals_by_state_have_codes_of_their_own(me) -> None:
    api = Api(me, "learning")
    base, other = make_profile(me), make_profile(me, RECENT)
    following = make_profile(me, RECENT, baseline=base)

    def refused(profile, verb, expected=None, **more):
        body = {"change_id": str(uuid4()), "expected_active": expected} | more
        answer = api.post(f"/v1/learning/profiles/{profile}/{verb}", body)
        return answer.status_code, code_of(answer)

    assert refused(following, "activate") == (409, "wrong_baseline")
    assert refused(base, "rollback", to=str(other)) == (409, "never_active")
    assert refused(base, "activate", str(other)) == (409, "stale_state")
    expired = make_profile(me, effective_until=clock.now() - timedelta(days=1))
    assert refused(expired, "activate") == (409, "not_promotable")
    assert kinds(me) == []


def test_malformed_calls_name_the_field(me) -> None:
    api = Api(me, "learning")
    at = f"/v1/learning/profiles/{make_profile(me)}"
    for body, pointer in (
        ({"change_id": "k"}, "/expected_active"),
        ({"expected_active": None}, "/change_id"),
        ({"change_id": "", "expected_active": None}, "/change_id"),
        ({"change_id": "k", "expected_active": "x"}, "/expected_active"),
        ({"change_id": "k", "expected_active": None, "decision": "improved"}, "/decision"),
        ({"change_id": "k", "expected_active": None, "reason": "a\0"}, "/reason"),
    ):
        refused = api.post(f"{at}/activate", body)
        assert (refused.status_code, refused.json()["pointer"]) == (400, pointer)
    assert api.post(f"{at}/rollback", {"change_id": "k", "expected_active": None}).json()["pointer"] == "/to"
    other = api.post(f"{at}/deactivate", {"change_id": "k", "expected_active": str(uuid4())})
    assert (other.status_code, other.json()["pointer"]) == (400, "/expected_active")
    for scopes in ("A", "a,,b", "*,a", ""):
        assert api.get("/v1/learning/active", scopes=scopes).status_code == 400, scopes


@pytest.mark.django_db(transaction=True)
def test_of_eight_at_once_one_succeeds_and_its_retry_returns_its_state() -> None:
    me = make_world().principal
    profiles = [make_profile(me) for _ in range(8)]
    barrier = Barrier(len(profiles))

    def run(number):
        try:
            barrier.wait(30)
            return activate(me, profiles[number], key=f"change-{number}")
        except StaleState as refused:
            return refused.more["active"]
        finally:
            connection.close()

    with ThreadPoolExecutor(len(profiles)) as pool:
        answers = list(pool.map(run, range(len(profiles))))
    (winner,) = (number for number, answer in enumerate(answers) if isinstance(answer, dict))
    assert [answer for answer in answers if answer != answers[winner]] == [str(profiles[winner])] * 7
    assert activate(me, profiles[winner], key=f"change-{winner}") == answers[winner]
    assert UUID(active(me)) == profiles[winner]
    assert kinds(me) == [("activate", True)]
