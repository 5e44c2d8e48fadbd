"""The active profile in a search: what applies, to whom, and what is said of it."""

import math
from datetime import timedelta
from types import SimpleNamespace
from unittest import mock
from uuid import UUID

import pytest
from django.db import DatabaseError

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.learning import alerts
from apps.operations.models import Alarm
from apps.retrieval.selectors import stored_receipt
from apps.search.metrics import PROFILES
from apps.traces.models import Trace
from tests.support.factories import make_principal, make_world
from tests.support.library import ask, store, thread
from tests.support.memory import give_vectors
from tests.support.profiles import LEXICAL, activate, deactivate, make_profile, roll_back
from tests.support.statements import sent

pytestmark = pytest.mark.django_db

NONE = {"id": None, "status": "none", "reason": None}
OVERRIDE = {"id": None, "status": "request_override", "reason": None}


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return fill(world.principal)


def fill(principal):
    """A memory in which the best by words and the best by meaning are different rows."""
    nodes = store(
        principal,
        thread(1, "billing rollback steps for billing"),
        thread(2, "rollback", at=clock.now() - timedelta(days=30)),
        thread(3, "billing and much else that has nothing to do with it"),
    )
    give_vectors(principal, {UUID(node): [1.0, float(number)] for number, node in enumerate(nodes)})
    return principal


def scores(answer):
    return [(row["node_id"], row["score"]) for row in answer["results"]]


def receipt_of(principal, answer):
    with principal_session(principal):
        return stored_receipt(UUID(answer["retrieval_receipt_id"])).receipt


def applied(profile):
    return {"id": str(profile), "status": "applied", "reason": None}


def test_an_active_profile_is_applied_and_said_in_answer_receipt_and_trace(me) -> None:
    at = clock.now()
    before = ask(me, "billing rollback", reference_time=at)
    assert before["profile"] == NONE
    profile = make_profile(me)
    activate(me, profile)
    after = ask(me, "billing rollback", reference_time=at)
    assert after["profile"] == applied(profile)
    assert scores(after) != scores(before)
    receipt = receipt_of(me, after)
    assert (receipt.profile.id, receipt.profile.status) == (str(profile), "applied")
    assert list(receipt.weights[0].multipliers) == list(LEXICAL)
    assert receipt.weights[0].base == receipt_of(me, before).weights[0].base
    with principal_session(me):
        assert Trace.objects.get(pk=UUID(after["trace_id"])).settings["profile"] == applied(profile)
    same = {"semantic": 0.25, "lexical": 4.0}
    explicit = ask(me, "billing rollback", reference_time=at, ranking_multipliers=same)
    assert scores(explicit) == scores(after)


def test_going_back_gives_the_first_answer_bit_for_bit(me) -> None:
    at = clock.now()
    first = ask(me, "billing rollback", reference_time=at)
    profile = make_profile(me)
    activate(me, profile)
    assert scores(ask(me, "billing rollback", reference_time=at)) != scores(first)
    roll_back(me, profile, to=None, expected=profile)
    assert scores(ask(me, "billing rollback", reference_time=at)) == scores(first)
    assert ask(me, "billing rollback")["profile"] == NONE


def test_explicit_multipliers_win_even_when_they_are_unity(me) -> None:
    at = clock.now()
    base = ask(me, "billing rollback", reference_time=at)
    activate(me, make_profile(me))
    unity = ask(me, "billing rollback", reference_time=at, ranking_multipliers={"lexical": 1.0})
    assert unity["profile"] == OVERRIDE
    assert receipt_of(me, unity).profile.status == "request_override"
    assert scores(unity) == scores(base)


def test_a_profile_touches_its_exact_scope_set_alone(me) -> None:
    at = clock.now()
    asked = [("default",), ("default", "other"), None]
    before = [scores(ask(me, "billing rollback", scopes=s and list(s), reference_time=at)) for s in asked]
    profile = make_profile(me, scopes=("default",))
    activate(me, profile)
    answers = [ask(me, "billing rollback", scopes=s and list(s), reference_time=at) for s in asked]
    assert [answer["profile"]["status"] for answer in answers] == ["applied", "none", "none"]
    assert scores(answers[0]) != before[0]
    assert [scores(answer) for answer in answers[1:]] == before[1:]
    both = make_profile(me, scopes=("default", "other"))
    activate(me, both)
    turned = ask(me, "billing rollback", scopes=["other", "default", "other"])
    assert turned["profile"] == applied(both)


def test_other_principals_and_the_default_policy_are_bit_equal_before_and_after(world, me) -> None:
    from apps.retrieval.policy import in_force

    stranger = fill(make_principal(world.workspace))
    at = clock.now()
    with principal_session(me):
        policy = in_force(me.workspace_id)
    before = scores(ask(stranger, "billing rollback", reference_time=at))
    activate(me, make_profile(me))
    answer = ask(stranger, "billing rollback", reference_time=at)
    assert answer["profile"] == NONE
    assert scores(answer) == before
    with principal_session(me):
        assert in_force(me.workspace_id) == policy


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ({"contract": "native-0"}, "scorer_contract"),
        ({"policy_sha256": "0" * 64}, "scoring_policy"),
        ({"effective_until": True}, "expired"),
    ],
)
def test_one_that_does_not_apply_leaves_the_base_and_says_so_everywhere(
    me, columns, cause, django_capture_on_commit_callbacks, monkeypatch
) -> None:
    at = clock.now()
    base = ask(me, "billing rollback", reference_time=at)
    profile = stale_profile(me, columns)
    counter = PROFILES.labels("inapplicable", cause)
    counted = counter._value.get()
    monkeypatch.setattr(alerts, "TOLD_AGAIN_AFTER", math.inf)
    answers = [ask(me, "billing rollback", reference_time=at) for _ in range(2)]
    shown = {"id": str(profile), "status": "inapplicable", "reason": cause}
    assert [answer["profile"] for answer in answers] == [shown] * 2
    assert scores(answers[0]) == scores(base)
    record = receipt_of(me, answers[0]).profile
    assert (record.id, record.status, record.reason) == (str(profile), "inapplicable", cause)
    with principal_session(me):
        trace = Trace.objects.get(pk=UUID(answers[0]["trace_id"]))
        assert trace.settings["profile"] == shown
    assert counter._value.get() == counted + 2
    alarm = Alarm.objects.get(source=alerts.source_of(profile))
    assert (alarm.workspace_id, alarm.reason, alarm.times_seen) == (me.workspace_id, "inapplicable", 1)
    assert alarm.details == {"cause": cause, "page": alerts.page_of(profile)}
    assert ask(me, "billing rollback", ranking_multipliers={"lexical": 2.0})["profile"] == OVERRIDE
    with django_capture_on_commit_callbacks(execute=True):
        deactivate(me, profile, expected=profile)
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None


def test_a_process_tells_once_a_period_and_again_what_it_could_not_tell(monkeypatch) -> None:
    told, seconds = [], iter([0.0, 1.0, 2.0, 3.0, 599.0, 600.0])
    fails = iter([True])

    def raise_alarm(**alarm):
        if next(fails, False):
            raise DatabaseError
        told.append(alarm["details"]["cause"])

    monkeypatch.setattr(alerts.alarms, "raise_alarm", raise_alarm)
    monkeypatch.setattr(alerts, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    workspace, profile = uuid7(), uuid7()
    with pytest.raises(DatabaseError):
        alerts.tell_inapplicable(workspace, profile, "formula")
    for cause in ("formula", "formula", "expired", "formula", "formula"):
        alerts.tell_inapplicable(workspace, profile, cause)
    assert told == ["formula", "expired", "formula"]


def test_what_a_process_remembers_of_told_profiles_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(alerts.alarms, "raise_alarm", lambda **alarm: None)
    most = alerts._tell.cache_info().maxsize
    for _ in range(most + 5):
        alerts.tell_inapplicable(uuid7(), uuid7(), "formula")
    assert alerts._tell.cache_info().currsize == most


def stale_profile(me, columns):
    """A profile that was active before what it was measured under changed."""
    if "effective_until" in columns:
        with clock.frozen(clock.now() - timedelta(days=2)):
            profile = make_profile(me, effective_until=clock.now() + timedelta(days=1))
            activate(me, profile)
        return profile
    profile = make_profile(me, **columns)
    with mock.patch("apps.learning.services.pointers.cause_against", return_value=None):
        activate(me, profile)
    return profile


def test_only_rankings_speak_of_a_profile(me) -> None:
    activate(me, make_profile(me))
    scanned = ask(me)
    assert "profile" not in scanned
    assert "profile" not in ask(me, node_ids=[UUID(scanned["results"][0]["node_id"])])


def statements(call):
    """The statements that go to the server while `call` runs."""
    with sent() as seen:
        call()
    return [sql for sql, _ in seen]


def test_resolving_costs_a_search_one_statement_whoever_has_a_profile(me) -> None:
    ask(me, "billing rollback")
    without = statements(lambda: ask(me, "billing rollback"))
    overridden = statements(lambda: ask(me, "billing rollback", ranking_multipliers={"lexical": 1.0}))
    activate(me, make_profile(me))
    having = statements(lambda: ask(me, "billing rollback"))
    resolving = [statement for statement in having if "learning_transition" in statement]
    assert len(resolving) == 1
    assert len(having) == len(without) == len(overridden) + 1
    policies = [statement for statement in having if "core_storedpolicy" in statement]
    assert len(policies) == 2  # scoring, and memory of the trace


def test_the_pointer_is_found_by_one_step_in_an_index_among_many(me, admin_connection) -> None:
    from django.db import connection

    from apps.learning.selectors.active import NEWEST

    profile = make_profile(me)
    with principal_session(me), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO learning_transition (id, workspace_id, principal_id, scope_key, recorded_at, kind, "
            "profile_id, resulting_profile_id, actor, reason, evidence) "
            "SELECT gen_random_uuid(), %(w)s, %(p)s, 'scope-' || n %% 500, now() + n * interval '1 second', "
            "'activate', %(profile)s, %(profile)s, 'principal', '', '{}' FROM generate_series(1, 5000) n",
            {"w": me.workspace_id, "p": me.principal_id, "profile": profile},
        )
        cursor.execute("EXPLAIN " + NEWEST, {"owner": me.principal_id, "key": "scope-7"})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "learning_transition_order" in plan, plan
    assert "Seq Scan on learning_transition" not in plan, plan
