"""The page of an activation run in a real browser: two persons, off in one dialog, on a phone, in the dark, by hand."""

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from apps.core import clock
from apps.operations.models import Process
from tests.e2e.test_pictures import FOLDER, MOST_BYTES, VARIANTS
from tests.e2e.test_staff_pages import WIDE, _axe
from tests.support import activation, journal
from tests.support.factories import make_world

SHOWN = 1300
"""Height of a picture: A, and B as far as the receipt that is missing."""
MEASURED = {
    "A1": {"clean_tree": True, "equals_main": True, "suites_green": True, "run": 4711},
    "B4": {"age_seconds": 241.0, "moved": True},
    "B5": {"expired_records": 0, "expired_texts": 0, "oldest_overdue_seconds": 0.0},
    "B7": {"disposable": True, "seconds_since_success": 1861},
}


@pytest.fixture
def run(transactional_db: None, settings: Any) -> Iterator[activation.Scene]:
    """Ready but for the alarm that nobody has received: Ana operates, Ben reviews."""
    journal.configure(settings)
    settings.RELEASE, settings.ERASURE_BACKUP_DAYS = activation.RELEASE, 30
    Process.objects.all().delete()
    made = activation.make_scene(make_world())
    for user, name, full in ((made.operator, "ana", "Ana"), (made.reviewer, "ben", "Ben")):
        user.username, user.first_name = name, full
        user.save()
    for item in activation.items():
        made.give(item.code, measured=MEASURED.get(item.code, {"found": 1}))
    journal.take_part(made.world)
    for kind in ("web", "worker", "beat"):
        activation.process(kind)
    yield made
    Process.objects.all().delete()


def address(run: activation.Scene) -> str:
    return f"/admin/observations/activationrun/{run.run_id}/change/"


def press(page: Any, label: str, confirm: str) -> None:
    """Open a dialog, give a reason, confirm, and wait for the page after it."""
    page.get_by_role("link", name=label).first.click()
    page.get_by_label("Reason").fill("pilot of the journal")
    with page.expect_navigation():
        page.get_by_role("button", name=confirm).click()


def test_two_persons_click_from_ready_to_on_and_one_person_off(browser: Any, run: activation.Scene) -> None:
    ana, ben = browser(run.operator), browser(run.reviewer)
    ana.goto(address(run))
    press(ana, "Take the run on…", "Take 1 run on")
    press(ana, "Ask for approval…", "Ask to enable platform-text")
    closed = ana.get_by_role("button", name="Approve…").first
    assert closed.get_attribute("aria-disabled") == "true"
    assert closed.get_attribute("title") == "You asked for it; another person approves."
    ben.goto(address(run))
    ben.get_by_role("link", name="Approve…").first.click()
    dialog = ben.locator("dialog[open]")
    dialog.get_by_text("B11 H").wait_for()
    assert "good until" in dialog.inner_text()
    assert not _axe(ben)
    ben.keyboard.press("Escape")
    press(ben, "Approve…", "Approve platform-text")
    assert activation.mode(run) == "off"
    ana.reload()
    press(ana, "Enable…", "Enable platform-text")
    assert activation.mode(run) == "platform-text"
    press(ana, "Switch off…", "Switch off 1 workspace")
    assert (run.run().state, activation.mode(run)) == ("stopping", "off")
    assert not [*ana.problems, *ben.problems]


def test_an_approval_works_without_script(browser: Any, run: activation.Scene) -> None:
    run.request()
    page = browser(run.reviewer, script=False)
    page.goto(address(run))
    page.locator("details").first.locator("summary").click()
    assert page.get_by_text("clean tree").is_visible()
    page.get_by_role("link", name="Approve…").first.click()
    page.get_by_label("Reason").fill("seen")
    page.get_by_role("button", name="Approve platform-text").click()
    assert run.run().state == "approved"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_pages_are_accessible_and_fit_a_phone(browser: Any, run: activation.Scene, dark: bool) -> None:
    run.give("B5", observed_at=clock.now() - timedelta(minutes=31))
    run.give("A4", "fail", measured={"differences": 3, "a" * 60: "b" * 64})
    acts = ("change", "stop", "request", "approve", "enable", "advance", "look/all", "vouch/B7", "vouch/B10")
    page = browser(run.operator, dark=dark, width=360)
    for act in (*acts, ""):
        page.goto(address(run).replace("change", act) if act else "/admin/observations/activationrun/")
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), page.evaluate(WIDE)
        assert not [*_axe(page), *page.problems], act


@pytest.mark.skipif(
    os.environ.get("MEMORY_PICTURES") != "1", reason="pictures are made with MEMORY_PICTURES=1"
)
def test_pictures(browser: Any, run: activation.Scene, owner_connection: Any) -> None:
    """Of the checklist while one receipt is missing, and of the approval."""
    now = clock.now()
    for item in ("B4", "B5", "B6"):
        run.give(item, observed_at=now - timedelta(minutes=4), measured=MEASURED.get(item, {"found": 1}))
    owner_connection.execute("DELETE FROM observations_evidence WHERE item = 'B7' AND part = 'human'")
    for variant, options in VARIANTS.items():
        page = browser(run.reviewer, **options)
        page.goto(address(run))
        page.wait_for_load_state("networkidle")
        picture = FOLDER / f"activation-{variant}.png"
        clip = {"x": 0, "y": 0, "width": options.get("width", 1440), "height": SHOWN}
        page.screenshot(path=picture, full_page=True, clip=clip)
        assert 10_000 < picture.stat().st_size < MOST_BYTES, picture.name
    run.give("B7", measured=MEASURED["B7"])
    run.request()
    page = browser(run.reviewer)
    page.goto(address(run))
    page.get_by_role("link", name="Approve…").first.click()
    page.locator("dialog[open]").get_by_text("B11 H").wait_for()
    picture = FOLDER / "approval-light.png"
    page.screenshot(path=picture)
    assert 10_000 < picture.stat().st_size < MOST_BYTES
