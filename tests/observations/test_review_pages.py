"""Staff pages of retention reviews: held by one, a shortening approved by another."""

import pytest
from django.test import Client

from apps.core.db.sessions import staff_session
from apps.observations.admin.words import REVIEW
from apps.operations import reviews, tasks
from apps.operations.models import RetentionReview
from tests.observations.test_pages import act, words
from tests.support.factories import World, make_staff

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/operations/retentionreview/"


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.carry_out_reviews, "delay", lambda: None)


def client(world: World, *grants: str) -> Client:
    signed_in = Client()
    signed_in.force_login(make_staff(world.workspace, *grants))
    return signed_in


def held(world: World) -> RetentionReview:
    with staff_session(make_staff(world.workspace, "audit")):
        return RetentionReview.objects.get()


def asked(world: World, **more: str) -> dict[str, str]:
    given = {"workspace": str(world.workspace.pk), "subject": "observations", "days_ahead": "92"}
    return {**given, "decision": "keep", "text_days": "", "record_hours": ""} | more


def test_a_shortening_waits_for_another_person(on: World) -> None:
    reviewer, other = client(on, "review_retention"), client(on, "review_retention")
    act(reviewer, f"{LIST}decide/", **asked(on, decision="shorten", text_days="30"))
    row = held(on)
    page = f"{LIST}{row.pk}/change/"
    assert "waits for a second person" in words(reviewer.get(page))
    shown = " ".join(words(reviewer.get(page)).split())
    assert "cases promoted a week not measured" in shown
    assert "distinct queries of the last 7 days 0" in shown
    assert "days that a text is kept 30" in shown
    act(reviewer, f"{LIST}{row.pk}/approve/")
    assert held(on).approved_at is None
    act(other, f"{LIST}{row.pk}/approve/")
    assert held(on).approved_at is not None
    assert "job under way" in words(other.get(LIST))
    assert reviews.carry_out() == 1
    assert "carried out" in words(other.get(page))


def test_every_input_and_limit_of_the_journal_has_words_and_stays_a_code_where_it_is_kept(on: World) -> None:
    act(client(on, "review_retention"), f"{LIST}decide/", **asked(on, decision="extend_needs_schema_change"))
    row = held(on)
    told = {f"{group}.{name}" for group, values in row.inputs.items() for name in values}
    assert told | {"text_days", "record_hours"} == REVIEW.keys()
    page = words(client(on, "audit").get(f"{LIST}{row.pk}/change/"))
    assert [text for text in REVIEW.values() if text not in page and "is kept" not in text] == []
    assert "extend, which changes nothing" in page
    assert "schema_change" not in page


@pytest.mark.parametrize("days", ["91", "180"])
def test_the_form_refuses_what_is_not_shorter(on: World, days: str) -> None:
    act(client(on, "review_retention"), f"{LIST}decide/", **asked(on, decision="shorten", text_days=days))
    with staff_session(make_staff(on.workspace, "audit")):
        assert not RetentionReview.objects.exists()


def test_keeping_is_recorded_and_others_have_no_form(on: World) -> None:
    act(client(on, "review_retention"), f"{LIST}decide/", **asked(on))
    assert held(on).decision == "keep"
    assert client(on, "audit").get(f"{LIST}decide/").status_code == 404
