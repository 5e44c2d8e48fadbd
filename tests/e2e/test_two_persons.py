"""A ranking goes live and back by two persons who have no mouse: proposed, approved, rolled back, each seen before."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.core.db.sessions import principal_session
from apps.learning.selectors.profiles import active_shown
from tests.e2e.conftest import Scene
from tests.support import factories
from tests.support.learning_scene import SECOND, learn
from tests.support.profiles import deactivate, make_profile

pytestmark = pytest.mark.django_db(transaction=True)


class Person:
    """Somebody at a keyboard, on the page of one profile."""

    def __init__(self, browser: Any, user: User, profile: Any) -> None:
        self.page = browser(user)
        self.url = f"/admin/learning/rankingprofile/{profile}/change/"
        self.look()

    def look(self) -> None:
        self.page.goto(self.url)
        # The slow parts have come, so that no key meets a page in change.
        self.page.locator(".lr-orders figure").first.wait_for()

    def open(self, name: str) -> Any:
        opener = self.page.get_by_role("link", name=name).first
        opener.focus()
        self.page.keyboard.press("Enter")
        dialog = self.page.locator("#gv-dialog")
        dialog.locator("textarea").wait_for()
        return dialog

    def give_reason(self, words: str) -> None:
        self.page.locator("#gv-dialog textarea").focus()
        self.page.keyboard.type(words)

    def confirm(self) -> None:
        """From the reason over Cancel to the act."""
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Tab")
        assert self.page.evaluate("document.activeElement.type") == "submit"
        self.page.keyboard.press("Enter")

    def hears(self, words: str) -> None:
        self.page.get_by_text(words).first.wait_for()


def _active(scene: Scene) -> str | None:
    with principal_session(scene.principal):
        found: str | None = active_shown(None)["active"]
        return found


def test_a_ranking_goes_live_and_back_without_a_mouse(browser: Any, scene: Scene, monkeypatch: Any) -> None:
    other = factories.make_staff(scene.workspace, "view_traces", "manage_profiles")
    learn(scene.principal, scene.everything, other, monkeypatch)
    before = _active(scene)
    assert before is not None
    profile = make_profile(scene.principal, SECOND, baseline=before)  # type: ignore[arg-type]
    ana, ben = (Person(browser, user, profile) for user in (scene.everything, other))

    assert "rows move" in ana.open("Propose activation…").inner_text()
    ana.give_reason("fresh pages rise")
    ana.confirm()
    ana.hears("Proposed. Another person approves it")
    closed = ana.page.get_by_role("button", name="Approve…").first
    assert "You proposed it" in (closed.get_attribute("title") or "")

    ben.look()
    shown = ben.open("Approve…").inner_text()
    assert "fresh pages rise" in shown
    ben.give_reason("looked at both")
    ben.confirm()
    ben.hears("is active, proposed by")
    assert _active(scene) == str(profile)

    ana.look()
    dialog = ana.open("Roll back to…")
    orders = dialog.locator(".lr-then .lr-orders")
    assert ana.page.evaluate("document.activeElement.name") == "to"
    first, base = (dialog.locator(f"input[value='{value}']") for value in (before, "base"))
    first.focus()
    ana.page.keyboard.press("Space")
    assert [orders.nth(at).is_visible() for at in range(orders.count())].count(True) == 1
    # Its neighbours are reached by the arrows; the order that is shown follows.
    while not base.is_checked():
        ana.page.keyboard.press("ArrowDown")
    assert base.locator("xpath=../following-sibling::*[1]").locator(".lr-orders").is_visible()
    ana.give_reason("reference pages fell too low")
    # Meanwhile somebody else moves the pointer: nothing is done, the reason stays, the new state is offered.
    deactivate(scene.principal, profile, expected=profile)
    ana.confirm()
    dialog.get_by_text("Since you opened this it has changed").wait_for()
    assert dialog.locator("textarea").input_value() == "reference pages fell too low"
    assert _active(scene) is None
    assert dialog.locator("input[value='base']").count() == 0
    dialog.locator(f"input[value='{before}']").focus()
    ana.page.keyboard.press("Space")
    ana.page.locator("#gv-dialog textarea").focus()
    ana.confirm()
    ana.hears("Rolled back to")
    assert _active(scene) == before
    assert not ana.page.problems
    assert not ben.page.problems
