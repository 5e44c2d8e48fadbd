"""The re-check of active profiles: what it ends, what it alarms of, and that it moves nothing by itself."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.learning import alerts, tasks
from apps.learning.models import Recheck, Transition
from apps.learning.selectors.attention import profiles_needing_a_human
from apps.learning.selectors.profiles import pointer_at
from apps.operations import samples
from apps.operations.models import Alarm
from tests.support import collection
from tests.support.clean import truncate_all
from tests.support.factories import make_staff, make_world
from tests.support.profiles import activate, deactivate, make_profile

pytestmark = pytest.mark.django_db

FRESH = (1.0, 0.25, 1.0, 4.0, 1.0, 1.0)
"""What the constructed collection rewards, and its opposite."""
WORDS = (1.0, 4.0, 1.0, 0.25, 1.0, 1.0)


@pytest.fixture(scope="module")
def judged(django_db_setup, django_db_blocker):
    """A constructed memory, searched, with labels on every answer; tests roll back what they do to it."""
    with django_db_blocker.unblock():
        world = make_world()
        made = collection.judged_collection(world.principal, training=2, validation=22, unseen=0)
        try:
            yield world, made
        finally:
            truncate_all()


@pytest.fixture
def me(judged):
    return judged[0].principal


@pytest.fixture
def recheck(django_capture_on_commit_callbacks):
    def run():
        with django_capture_on_commit_callbacks(execute=True):
            return tasks.recheck.function()

    return run


def activated(me, multipliers, *, before_labels=True, **more):
    """An active profile, made before the labels or after them."""
    since = clock.now() - timedelta(days=1) if before_labels else clock.now()
    evidence = {"evaluation": {"labels_until": clock.iso(since)}}
    profile = make_profile(me, multipliers, **({"evidence": evidence} | more))
    activate(me, profile)
    return profile


def alarms_of(profile):
    found = Alarm.objects.filter(source=alerts.source_of(profile), resolved_at=None)
    return {alarm.reason: alarm.details for alarm in found}


def newest(me):
    with principal_session(me):
        return Recheck.objects.order_by("-checked_at").first()


def active(me):
    with principal_session(me):
        return pointer_at("*").active


def test_a_profile_that_still_does_better_holds(me, recheck) -> None:
    profile = activated(me, FRESH)
    assert recheck() == {"holds": 1}
    found = newest(me)
    assert (found.verdict, found.groups) == ("holds", 24)
    assert found.interval_low > 0
    assert alarms_of(profile) == {}


@pytest.fixture
def regressed(me):
    """An active profile that does worse than its baseline on what was judged since."""
    base = make_profile(me, FRESH)
    activate(me, base)
    profile = make_profile(me, WORDS, baseline=base, created_at=clock.now() - timedelta(days=1))
    activate(me, profile, expected=base)
    return profile


def test_a_regression_is_an_alarm_and_switches_nothing(judged, me, regressed, recheck) -> None:
    assert recheck() == {"regressed": 1}
    details = alarms_of(regressed)["regressed"]
    assert details["groups"] == 24
    assert details["ndcg_gain"] < -0.01
    assert details["page"] == alerts.page_of(regressed)
    assert active(me) == regressed
    with staff_session(make_staff(judged[0].workspace, "view_traces")):
        (needing,) = profiles_needing_a_human()
        assert (needing.profile.pk, needing.reasons) == (regressed, ("regressed",))


def test_a_finding_is_written_once_and_its_alarm_ends_with_the_profile(
    me, regressed, recheck, django_capture_on_commit_callbacks
) -> None:
    assert recheck() == recheck() == {"regressed": 1}
    with principal_session(me):
        assert Recheck.objects.count() == 1
    with django_capture_on_commit_callbacks(execute=True):
        deactivate(me, regressed, expected=regressed)
    assert alarms_of(regressed) == {}
    assert recheck() == {}


def test_only_labels_admitted_since_count(me, recheck) -> None:
    activated(me, FRESH, before_labels=False)
    assert recheck() == {"insufficient_data": 1}
    assert newest(me).groups == 0


def test_what_does_not_apply_is_an_alarm_until_it_does(me, recheck, monkeypatch) -> None:
    profile = activated(me, FRESH)
    monkeypatch.setattr("apps.learning.selectors.active.SCORER_CONTRACT", "native-next")
    assert recheck() == {"inapplicable": 1}
    assert alarms_of(profile)["inapplicable"]["cause"] == "scorer_contract"
    assert active(me) == profile
    monkeypatch.undo()
    assert recheck() == {"holds": 1}
    assert alarms_of(profile) == {}


def test_the_count_of_active_profiles_goes_back_to_none(judged, me, recheck) -> None:
    def counted():
        mine = judged[0].workspace.pk
        return [s.value for s in samples.newest() if s.name == tasks.ACTIVE and s.workspace_id == mine]

    profile = activated(me, FRESH)
    recheck()
    assert counted() == [1]
    deactivate(me, profile, expected=profile)
    recheck()
    assert counted() == [0]


def test_one_that_cannot_be_looked_at_leaves_the_others_looked_at_and_fails_the_job(
    me, recheck, monkeypatch
) -> None:
    first, second = activated(me, FRESH), make_profile(me, FRESH, scopes=("docs",))
    activate(me, second)
    looked = tasks.recheck_profile
    seen = []

    def fails_for_the_first_one(*, profile_id):
        seen.append(profile_id)
        if len(seen) == 1:
            raise ZeroDivisionError
        return looked(profile_id=profile_id)

    monkeypatch.setattr(tasks, "recheck_profile", fails_for_the_first_one)
    with pytest.raises(ZeroDivisionError):
        recheck()
    assert set(seen) == {first, second}
    with principal_session(me):
        assert [found.profile_id for found in Recheck.objects.all()] == seen[1:]
    assert tasks.CHECKED not in {sample.name for sample in samples.newest()}
    monkeypatch.undo()
    assert sum(recheck().values()) == 2


def test_the_end_of_a_term_is_recorded(me, recheck) -> None:
    with clock.frozen(clock.now()) as at:
        profile = activated(me, FRESH, effective_until=clock.now() + timedelta(hours=1))
        at.advance(timedelta(hours=2))
        assert recheck() == {"expired": 1}
        assert recheck() == {}
    assert active(me) is None
    with principal_session(me):
        assert Transition.objects.latest("recorded_at").kind == "expire"
        assert Transition.objects.latest("recorded_at").profile_id == profile


def test_a_worker_with_a_new_contract_has_it_checked_at_once(me, recheck, monkeypatch) -> None:
    sent = []
    monkeypatch.setattr(tasks.recheck, "delay", lambda: sent.append(1))
    monkeypatch.setattr(tasks.connection, "close", lambda: None)
    tasks.recheck_after_bump()
    assert len(sent) == 1
    recheck()
    tasks.recheck_after_bump()
    assert len(sent) == 1
    monkeypatch.setattr("apps.learning.tasks.SCORER_CONTRACT", "native-next")
    tasks.recheck_after_bump()
    assert len(sent) == 2
    names = {sample.name for sample in samples.newest()}
    assert tasks.CHECKED in names
