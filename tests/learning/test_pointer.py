"""What each command makes of a pointer, without a database."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.learning.exceptions import NeverActive, StaleState, WrongBaseline
from apps.learning.pointer import Pointer, activate, deactivate, expire, roll_back, scope_key_of

FIRST, SECOND = UUID(int=1), UUID(int=2)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BASE, ON_FIRST = Pointer(), Pointer(FIRST, NOW)


def test_a_profile_becomes_active_from_the_baseline_that_it_was_measured_against() -> None:
    assert activate(BASE, profile=FIRST, baseline=None, expected=None).resulting == FIRST
    assert activate(ON_FIRST, profile=SECOND, baseline=FIRST, expected=FIRST).resulting == SECOND
    for pointer, baseline in ((ON_FIRST, None), (BASE, FIRST)):
        with pytest.raises(WrongBaseline):
            activate(pointer, profile=SECOND, baseline=baseline, expected=pointer.active)


def test_a_stale_expectation_is_refused_by_every_command_and_told_what_is_active() -> None:
    for command in (
        lambda: activate(ON_FIRST, profile=SECOND, baseline=FIRST, expected=None),
        lambda: deactivate(ON_FIRST, expected=SECOND),
        lambda: roll_back(ON_FIRST, to=None, has_been_active=True, expected=None),
    ):
        with pytest.raises(StaleState) as refused:
            command()
        assert refused.value.document()["active"] == str(FIRST)
    with pytest.raises(StaleState) as refused:
        deactivate(BASE, expected=FIRST)
    assert refused.value.document()["active"] is None


def test_what_changes_nothing_is_a_step_all_the_same() -> None:
    assert not activate(ON_FIRST, profile=FIRST, baseline=None, expected=FIRST).moves
    assert not deactivate(BASE, expected=None).moves
    assert not roll_back(BASE, to=None, has_been_active=False, expected=None).moves
    assert deactivate(ON_FIRST, expected=FIRST).moves


def test_one_goes_back_to_where_the_pointer_has_been_and_always_to_base() -> None:
    back = roll_back(Pointer(SECOND, NOW), to=FIRST, has_been_active=True, expected=SECOND)
    assert (back.expected, back.resulting) == (SECOND, FIRST)
    with pytest.raises(NeverActive):
        roll_back(ON_FIRST, to=SECOND, has_been_active=False, expected=FIRST)
    assert roll_back(ON_FIRST, to=None, has_been_active=False, expected=FIRST).resulting is None


def test_only_what_is_active_expires() -> None:
    ended = expire(ON_FIRST, profile=FIRST)
    assert ended is not None
    assert (ended.expected, ended.resulting) == (FIRST, None)
    assert expire(BASE, profile=FIRST) is None
    assert expire(ON_FIRST, profile=SECOND) is None


@given(st.timedeltas(min_value=timedelta(days=-2), max_value=timedelta(days=2)))
def test_a_transition_is_younger_than_the_one_before_whatever_the_clock_says(moved: timedelta) -> None:
    moment = ON_FIRST.moment(NOW + moved)
    assert moment > NOW
    assert moment >= NOW + moved
    assert BASE.moment(NOW) == NOW


slugs = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,6}", fullmatch=True)
scope_sets = st.none() | st.lists(slugs, min_size=1, max_size=4).map(tuple)


@given(scope_sets, scope_sets)
def test_two_scope_sets_share_a_pointer_only_when_they_are_equal(one, other) -> None:
    def normal(scopes):
        return None if scopes is None else frozenset(scopes)

    assert (scope_key_of(one) == scope_key_of(other)) == (normal(one) == normal(other))
