"""Pictures of the main pages for the documentation, made where MEMORY_PICTURES=1 is set; looked at by a person."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import pages
from tests.e2e.conftest import Scene

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
VARIANTS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"dark": True}, "phone": {"width": 360}}


def _shown(scene: Scene) -> dict[str, str]:
    return {
        "start": "/admin/",
        "traces": "/admin/traces/trace/",
        "trace": f"/admin/traces/trace/{scene.trace}/change/",
        "ledger": "/admin/feedback/edgestrength/",
        "activation": "/admin/traces/activation/",
        "principals": "/admin/accounts/principal/",
        "tokens": "/admin/accounts/apitoken/",
        "alarms": "/admin/operations/alarm/",
        "policies": "/admin/core/storedpolicy/",
        "audit": "/admin/core/auditentry/",
        "parts": pages.GALLERY,
    }


@pytest.mark.skipif(
    os.environ.get("MEMORY_PICTURES") != "1", reason="pictures are made with MEMORY_PICTURES=1"
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_pictures(browser: Any, scene: Scene, variant: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    page = browser(scene.everything, **VARIANTS[variant])
    for name, url in _shown(scene).items():
        page.goto(url)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=FOLDER / f"{name}-{variant}.png")
    page.goto(_shown(scene)["trace"])
    page.get_by_role("link", name="Reverse…").click()
    page.locator("#gv-dialog form").wait_for()
    page.screenshot(path=FOLDER / f"reversal-{variant}.png")
    assert (FOLDER / f"start-{variant}.png").stat().st_size > 10_000
