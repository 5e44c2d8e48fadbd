"""The labelling desk in a real browser: ten labels by keys alone, in the strict policy, on a phone, without script."""

import re
from typing import Any

import pytest

from apps.core.db.sessions import principal_session
from apps.feedback.models import Judgment
from tests.e2e.conftest import SECRET_QUERY, Scene
from tests.e2e.test_staff_pages import _axe
from tests.support import library, memory


def _queue(scene: Scene) -> str:
    """The desk for a search as an application made it."""
    # The query's vector is not what this is about.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("apps.search.found.embed_query", lambda text: memory.NO_VECTOR)
        receipt = library.ask(scene.principal, SECRET_QUERY, limit=20)["retrieval_receipt_id"]
    return f"/admin/desk/labels/?receipt={receipt}"


def _open(page: Any, scene: Scene) -> None:
    page.goto(_queue(scene))
    page.get_by_label(re.compile("^Reason")).fill("pooled labels")
    page.get_by_role("button", name="Open the desk").click()
    page.wait_for_url("**/desk/labels/item/")


def _records(scene: Scene) -> list[tuple[str, list[bool], list[int]]]:
    with principal_session(scene.principal):
        mine = Judgment.objects.filter(annotator=scene.everything.username).order_by("admitted_at")
        return [(each.kind, list(each.relevant), list(each.grades)) for each in mine]


def test_ten_labels_without_a_mouse(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto(_queue(scene))
    assert SECRET_QUERY not in page.content()
    page.get_by_label(re.compile("^Reason")).focus()
    page.keyboard.type("pooled labels")
    page.get_by_role("button", name="Open the desk").press("Enter")
    page.wait_for_url("**/desk/labels/item/")
    assert SECRET_QUERY in page.content()
    assert _axe(page) == []
    for number in range(1, 11):
        page.wait_for_selector(f'#desk[data-number="{number}"]')
        if number == 3:
            page.keyboard.press("n")
            page.keyboard.type("names both keys")
            page.keyboard.press("Escape")
        if number % 4:
            page.keyboard.press("1" if number % 2 else "2")
        else:
            page.keyboard.press("3")
            page.keyboard.press("2")
    page.wait_for_selector('#desk[data-number="11"]')
    page.keyboard.press("u")
    page.wait_for_selector('#desk[data-number="10"]')
    assert "saved" in page.locator("[data-saved]").inner_text()
    records = _records(scene)
    assert [kind for kind, *_ in records] == ["labels"] * 10 + ["withdrawal"]
    assert records[0][1:] == ([True], [-1])
    assert records[3][1:] == ([True], [2])
    assert page.problems == []
    assert page.evaluate("window.reports") == []


@pytest.mark.parametrize("again", ["by hand", "by itself"])
def test_what_the_server_did_not_take_stays_and_is_sent_again(browser: Any, scene: Scene, again: str) -> None:
    page = browser(scene.everything)
    _open(page, scene)
    named = page.locator("[name=feedback_id]").input_value()
    page.route("**/desk/labels/judge/", lambda route: route.abort())
    page.keyboard.press("1")
    page.get_by_text("Not saved").wait_for()
    assert page.get_by_role("button", name="relevant").first.get_attribute("aria-disabled") is None
    assert _records(scene) == []
    page.unroute("**/desk/labels/judge/")
    if again == "by hand":
        page.get_by_role("button", name="Retry now").press("Enter")
    page.wait_for_selector('#desk[data-number="2"]')
    assert [kind for kind, *_ in _records(scene)] == ["labels"]
    with principal_session(scene.principal):
        assert str(Judgment.objects.get().feedback_id) == named


def test_an_answer_that_arrived_and_was_not_heard_of_counts_once(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    _open(page, scene)

    def taken(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/desk/labels/judge/", taken)
    page.keyboard.press("1")
    page.get_by_text("Not saved").wait_for()
    page.unroute("**/desk/labels/judge/")
    page.get_by_role("button", name="Retry now").press("Enter")
    page.wait_for_selector('#desk[data-number="2"]')
    assert len(_records(scene)) == 1


def test_it_is_narrow_dark_and_works_without_script(browser: Any, scene: Scene) -> None:
    for options in ({"width": 320}, {"width": 360, "dark": True}):
        page = browser(scene.everything, **options)
        _open(page, scene)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert _axe(page) == []
    plain = browser(scene.everything, script=False)
    _open(plain, scene)
    plain.get_by_role("button", name="not relevant").first.click()
    assert "1 judged by you" in plain.content()
