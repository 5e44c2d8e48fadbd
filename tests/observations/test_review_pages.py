"""Staff pages of retention reviews: held by one, a shortening approved by another."""

import re

import pytest
from django.test import Client

from apps.core.db.sessions import staff_session
from apps.observations.admin.words import AGES, REVIEWED
from apps.operations import reviews, tasks
from apps.operations.admin.reviews import bands_of, inputs_of
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
    assert "cases curated a week not measured" in shown
    assert "a text lives 30 days" in shown
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
    told = {group: set(values) for group, values in row.inputs.items()}
    said = {group: set(words) for group, words in REVIEWED.items()}
    said["journal"] |= AGES.keys()
    assert told == said
    page = words(client(on, "audit").get(f"{LIST}{row.pk}/change/"))
    assert [text for given in REVIEWED.values() for text in given.values() if text not in page] == []
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


def test_the_page_speaks_in_words_and_names_the_decisions_before(on: World) -> None:
    reviewer = client(on, "review_retention")
    act(reviewer, f"{LIST}decide/", **asked(on))
    first = held(on)
    act(reviewer, f"{LIST}decide/", **asked(on, decision="extend_needs_schema_change"))
    with staff_session(make_staff(on.workspace, "audit")):
        second = RetentionReview.objects.latest("made_at")
    assert second.pk != first.pk
    shown = " ".join(words(reviewer.get(f"{LIST}{second.pk}/change/")).split())
    assert "Retention review of observations: extend, which changes nothing" in shown
    assert "Approve" not in shown
    assert "Useful cases by their age Not measured in any of them." in shown
    assert f"{LIST}{first.pk}/change/" in reviewer.get(f"{LIST}{second.pk}/change/").content.decode()
    assert "first review of these records" in words(reviewer.get(f"{LIST}{first.pk}/change/"))
    # Whatever is gathered has words of its own; what has none is led by its group.
    assert not [group for group in second.inputs if f" {group}: " in shown]


def test_an_age_that_nobody_measured_is_a_gap_and_not_a_zero() -> None:
    journal = {"useful_0_7": 3, "useful_8_30": 0, "useful_31_90": None, "of_tomorrow": 4}
    row = RetentionReview(subject="observations", inputs={"journal": journal})
    (section,) = bands_of(row)
    told = str(section.content)
    assert [re.sub("<[^>]*>", "", each) for each in re.findall("<tr><th.*?</tr>", told)][1:] == [
        "0–7 days3",
        "8–30 days0",
        "31–90 daysnot measured",
    ]
    assert 'aria-label="Useful cases by their age: 0–7 days 3, 8–30 days 0, 31–90 days not measured;' in told
    table = str(inputs_of(row))
    assert "journal: of tomorrow" in table
    assert "useful" not in table
