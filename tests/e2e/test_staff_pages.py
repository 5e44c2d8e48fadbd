"""Every staff page in a real browser: accessible, narrow, by keyboard, without script, in its own policy."""

import re
from datetime import timedelta
from typing import Any

import pytest

from apps.core.ui.formats import duration
from tests.e2e import pages
from tests.e2e.conftest import SECRET_QUERY, Scene
from tests.support import factories
from tests.support.learning_scene import Learned, learn

LONG_SCOPES = [f"{name}{'-of-a-long-name' * 4}"[:64] for name in ("handbook", "tickets", "wiki")]

AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
WIDE = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && "
WIDE += "!e.closest('.gv-scroll,.gv-region,[data-simplebar],.gv-sr,pre'))"
WIDE += ".slice(0, 3).map(e => e.outerHTML.slice(0, 120))"
UNREACHABLE = """
[...document.querySelectorAll('[x-on\\\\:click], [onclick], [data-dialog], [data-copy], [data-menu], [aria-expanded]')]
  .filter(e => e.checkVisibility())
  .filter(e => !e.closest('a[href], button, input, select, textarea, summary, label, [tabindex="0"]'))
  .map(e => e.outerHTML.slice(0, 160))
"""


def _axe(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options=AXE).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:160]} ({len(v['nodes'])})" for v in found]


@pytest.fixture
def learned(scene: Scene, monkeypatch: Any) -> Learned:
    """Evaluations, a holdout and profiles, one of which waits for another person than the one who looks."""
    ben = factories.make_staff(scene.workspace, "view_traces", "manage_profiles")
    return learn(scene.principal, scene.everything, ben, monkeypatch, scopes=LONG_SCOPES)


def _every(scene: Scene, learned: Learned) -> list[str]:
    trace = f"/admin/traces/trace/{scene.trace}/"
    own = [f"{trace}change/", f"{trace}reverse/{scene.confirmation}/"]
    return [*pages.every(scene.everything), *own, *_learning(learned)]


def _learning(learned: Learned) -> list[str]:
    """Pages of learning that the registry does not name: beside an object, and of an evaluation that lacks labels."""
    profile = f"/admin/learning/rankingprofile/{learned.profile}/"
    acts = [f"{profile}{name}/{learned.proposal}/" for name in ("approve", "withdraw")]
    parts = [f"{profile}{name}/" for name in ("preview", "reproduces")]
    queries = [
        f"/admin/learning/{kind}/{key}/queries/"
        for kind, key in (("evaluation", learned.evaluation), ("holdout", learned.holdout))
    ]
    return [*acts, *parts, *queries, f"/admin/learning/evaluation/{learned.few}/change/"]


def _only(scene: Scene, user: Any) -> list[str]:
    """Pages that look different to a superuser: where accounts are managed."""
    return [url for url in pages.every(user) if "/accounts/" in url or "/auth/" in url]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_accessible_and_silent(
    browser: Any, scene: Scene, learned: Learned, dark: bool
) -> None:
    found: dict[str, Any] = {}
    for user in (scene.everything, scene.superuser):
        page = browser(user, dark=dark)
        for url in _every(scene, learned) if user is scene.everything else _only(scene, user):
            answer = page.goto(url)
            page.wait_for_load_state()
            assert answer.status < 500, url
            problems = [*_axe(page), *page.problems, *page.evaluate("window.reports")]
            page.problems.clear()
            if problems:
                found[url] = problems
    assert not found


@pytest.mark.parametrize("width", [360, 320])
def test_no_page_is_wider_than_the_screen(browser: Any, scene: Scene, learned: Learned, width: int) -> None:
    found: dict[str, Any] = {}
    page = browser(scene.everything, width=width)
    for url in _every(scene, learned):
        page.goto(url)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[url] = page.evaluate(WIDE)
        tall = page.evaluate(
            "[...document.querySelectorAll('#result_list tr.data-row')]"
            ".some(r => r.getBoundingClientRect().height > 97)"
        )
        if tall:
            found[url] = "a list row is higher than 96 px"
    assert not found


def test_no_list_is_cut_in_a_common_window_and_no_empty_line_stands_over_a_page(
    browser: Any, scene: Scene, learned: Learned
) -> None:
    page = browser(scene.everything, width=1280)
    found = {}
    for url in _every(scene, learned):
        page.goto(url)
        wide = page.evaluate(
            "[...document.querySelectorAll('.gv-scroll:has(>#result_list)')]"
            ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.scrollWidth)"
        )
        bare = page.evaluate(
            "[...document.querySelectorAll('.gv-head')].filter(e => e.checkVisibility() && !e.innerText.trim()).length"
        )
        if wide or bare:
            found[url] = (wide, bare)
    assert not found


CUT = """
[...document.querySelectorAll('.gv-scroll:has(>.gv-records)')].filter(e => e.checkVisibility())
  .filter(e => e.scrollWidth > e.clientWidth && !e.closest('.gv-more, .gv-trend'))
  .map(e => `${e.ariaLabel} ${e.scrollWidth}`)
"""


def test_a_folded_table_is_whole_on_a_phone_and_its_numbers_are_named(
    browser: Any, scene: Scene, learned: Learned
) -> None:
    page = browser(scene.everything, width=360)
    certificate = next(
        url for url in _every(scene, learned) if re.search(r"erasurecertificate/[^/]+/change", url)
    )
    found = {}
    for url in _every(scene, learned):
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        if cut := page.evaluate(CUT):
            found[url] = cut
    assert not found
    page.goto(certificate)
    row = page.locator(".gv-records .gv-row").first.locator("[data-label]")
    shown = [
        cell.evaluate("e => getComputedStyle(e, '::before').content + e.textContent") for cell in row.all()
    ]
    assert shown == ['"found "1\u202f204\u202f331', '"deleted "1\u202f204\u202f331', '"remaining "0']


def test_everything_that_can_be_clicked_can_be_reached(browser: Any, scene: Scene, learned: Learned) -> None:
    found: dict[str, Any] = {}
    for width in (1440, 360):
        page = browser(scene.everything, width=width)
        for url in _every(scene, learned):
            page.goto(url)
            if lost := page.evaluate(UNREACHABLE):
                found[f"{url} {width}"] = lost
    assert not found


def test_the_skip_link_is_first_and_focus_is_always_seen(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto(f"/admin/traces/trace/{scene.trace}/change/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "gv-skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(40):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            "(() => { const e = document.activeElement; if (e === document.body) return true;"
            "const s = getComputedStyle(e); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 })()"
        )
        assert seen, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def test_menus_open_by_key_and_give_the_focus_back(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto("/admin/")
    menu = page.locator(".gv-user")
    menu.focus()
    page.keyboard.press("Enter")
    assert menu.get_attribute("aria-expanded") == "true"
    page.get_by_role("button", name="Dark").press("Enter")
    assert page.evaluate("document.documentElement.classList.contains('dark')")
    page.keyboard.press("Escape")
    assert menu.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.classList.contains('gv-user')")
    page.reload()
    assert page.evaluate("document.documentElement.classList.contains('dark')")


def test_single_keys_act_and_can_be_switched_off(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto("/admin/")
    page.keyboard.press("?")
    assert page.locator("#gv-keys").evaluate("d => d.open")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/admin/traces/trace/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/change/**")
    page.evaluate("localStorage.setItem('govKeys', 'false')")
    page.keyboard.press("?")
    assert not page.locator("#gv-keys").evaluate("d => d.open")


def test_a_reversal_is_done_without_a_mouse(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto(f"/admin/traces/trace/{scene.trace}/change/")
    opener = page.get_by_role("link", name="Reverse…")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#gv-dialog")
    dialog.get_by_text("Touches 2 edges").wait_for()
    assert page.evaluate("document.activeElement.name") == "reason"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Reverse…"
    page.keyboard.press("Enter")
    dialog.get_by_text("Touches 2 edges").wait_for()
    for _ in range(12):
        page.keyboard.press("Tab")
        inside = page.evaluate(
            "document.activeElement.closest('#gv-dialog') !== null || document.activeElement === document.body"
        )
        assert inside
    page.locator("#gv-dialog textarea").focus()
    page.keyboard.type("was another step")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Reversed 2 credits.").wait_for()
    assert page.evaluate("document.activeElement.textContent").startswith("✓")
    assert page.get_by_role("link", name="Reverse…").count() == 0
    assert page.get_by_text("corrected, −").count() == 1


def test_a_stale_dialog_stays_keeps_the_reason_and_shows_the_difference(browser: Any, scene: Scene) -> None:
    url = f"/admin/traces/trace/{scene.trace}/change/"
    first, second = browser(scene.everything), browser(scene.everything)
    for page in (first, second):
        page.goto(url)
        page.get_by_role("link", name="Reverse…").click()
        page.locator("#gv-dialog textarea").fill("was another step")
    first.locator("#gv-dialog button[type=submit]").click()
    first.get_by_text("Reversed 2 credits.").wait_for()
    second.locator("#gv-dialog button[type=submit]").click()
    second.get_by_text("Since you opened this it has changed").wait_for()
    assert second.locator("#gv-dialog textarea").input_value() == "was another step"
    assert second.locator("#gv-dialog .differs").count() == 2


def test_a_query_is_shown_in_one_answer_and_closed_by_a_reload(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    page.goto(f"/admin/traces/trace/{scene.trace}/change/")
    assert SECRET_QUERY not in page.content()
    page.get_by_role("link", name="Reveal…").click()
    page.locator("#gv-dialog textarea").fill("support case")
    page.locator("#gv-dialog button[type=submit]").click()
    page.locator("#query").get_by_text(SECRET_QUERY).wait_for()
    assert page.get_by_text("Revealed by you at").count() == 1
    page.reload()
    assert SECRET_QUERY not in page.content()


def test_a_certificate_prints_on_one_page(browser: Any, scene: Scene) -> None:
    from apps.operations.erasure.models import ErasureCertificate

    page = browser(scene.everything)
    url = f"/admin/operations/erasurecertificate/{ErasureCertificate.objects.get().pk}/change/"
    page.goto(url)
    assert "certificate" in page.content()
    printed = page.pdf(format="A4", print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


def test_pages_can_be_read_without_script(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything, script=False)
    for url in pages.every(scene.everything):
        page.goto(url)
        assert page.locator("main").is_visible(), url
        assert (
            page.locator("#command-results").count() == 0
            or not page.locator("#search-input-command").is_visible()
        )
    page.goto(f"/admin/traces/trace/{scene.trace}/reveal/")
    page.locator("textarea").fill("support case")
    page.locator("button[type=submit].primary").click()
    page.get_by_text(SECRET_QUERY).wait_for()


def test_sign_in_works_without_script_under_the_strict_policy(browser: Any, scene: Scene) -> None:
    page = browser(None, script=False)
    answer = page.goto("/admin/login/?next=/admin/operations/alarm/")
    assert "unsafe" not in answer.headers["content-security-policy"]
    page.get_by_label("Username").fill(scene.everything.username)
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("alert").is_visible()
    page.get_by_label("Username").fill(scene.everything.username)
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Sign in").click()
    assert page.url.endswith("/admin/operations/alarm/")


def test_every_drawing_is_named_by_its_numbers_and_has_a_table(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything)
    for url in ("/admin/", pages.GALLERY, f"/admin/traces/trace/{scene.trace}/change/"):
        page.goto(url)
        names = page.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].map(s => s.getAttribute('aria-label') || '')"
        )
        assert names
        assert all(any(c.isdigit() for c in name) or "not measured" in name for name in names), names
        drawn = page.evaluate(
            "[...document.querySelectorAll('.gv-trend')]"
            ".map(t => [!!t.querySelector('svg'), !!t.querySelector('table')])"
        )
        assert all(has_table for has_svg, has_table in drawn if has_svg)
        lost = page.evaluate("[...document.querySelectorAll('svg text')].length")
        assert lost == 0


def test_under_forced_colours_segments_keep_an_outline(browser: Any, scene: Scene) -> None:
    page = browser(scene.everything, forced_colors="active")
    page.goto(pages.GALLERY)
    width = page.evaluate("getComputedStyle(document.querySelector('.gv-bar rect.seg')).strokeWidth")
    assert width == "1px"


def test_a_page_asks_for_nothing_from_elsewhere(browser: Any, scene: Scene, live_server: Any) -> None:
    page = browser(scene.everything)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/admin/")
    assert all(url.startswith((live_server.url, "data:", "blob:")) for url in asked)
    assert not [url for url in asked if "chart" in url]


def test_an_activation_is_approved_without_a_mouse_and_an_old_page_closes_its_actions(
    browser: Any, scene: Scene, monkeypatch: Any
) -> None:
    ben = factories.make_staff(scene.workspace, "view_traces", "manage_profiles")
    learned = learn(scene.principal, scene.everything, ben, monkeypatch)
    url = f"/admin/learning/rankingprofile/{learned.profile}/change/"
    old = browser(scene.everything)
    old.goto(url)
    assert old.get_by_role("button", name="Approve…").first.get_attribute("aria-disabled") == "true"
    page = browser(ben)
    page.goto(url)
    page.get_by_text("receipts a day of this scope set").wait_for()
    page.locator("[data-load] .gv-mark").wait_for()
    opener = page.get_by_role("link", name="Approve…").first
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#gv-dialog")
    dialog.get_by_text("proposed by").wait_for()
    assert page.evaluate("document.activeElement.name") == "reason"
    page.keyboard.type("looked at both")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("is active, proposed by").wait_for()
    poll = old.evaluate("document.querySelector('[data-poll]').dataset.poll")
    assert "data-stale" in old.request.get(poll).text()
    # The page asks every 15 seconds.
    assert not old.evaluate("document.querySelector('.gv-actions').inert")
    old.locator(".gv-notice").get_by_text("Since you opened this page").wait_for(timeout=40_000)
    assert old.evaluate("[...document.querySelectorAll('.gv-actions')].every(row => row.inert)")
    old.get_by_role("link", name="Show the new state").click()
    assert old.locator(".lr-line").inner_text().count(str(learned.profile)[-7:]) >= 1


def test_a_ticking_deadline_is_written_as_the_server_writes_it(browser: Any, scene: Scene) -> None:
    lengths = (0, 40, 60, 200, 3599, 3600, 7200, 12000, 86400, 90000, 172800, 187200, 5_284_800)
    page = browser(scene.everything)
    page.clock.install(time=0)
    page.goto("/admin/")
    page.clock.pause_at(5_000)
    page.evaluate(
        """lengths => document.body.append(...lengths.flatMap(s => [-s, s]).map(s => {
            const place = document.createElement("span");
            place.className = "told";
            place.dataset.deadline = new Date(Date.now() + 1000 + s * 1000).toISOString();
            return place;
        }))""",
        lengths,
    )
    page.clock.run_for(1000)
    told = page.locator(".told").all_inner_texts()
    words = [duration(timedelta(seconds=each)) for each in lengths]
    assert told[::2] == [f"overdue {each}" for each in words]
    # Further than an hour ahead it does not tick.
    assert (
        told[3::2] == [f"in {each}" if s < 3600 else "" for s, each in zip(lengths, words, strict=True)][1:]
    )
