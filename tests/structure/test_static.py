"""The staff pages' own sheet and script stay small, and load nothing from elsewhere."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parent.parent.parent / "apps" / "core" / "static" / "core"
TEMPLATES = Path(__file__).resolve().parent.parent.parent / "templates"


@pytest.mark.parametrize(("name", "most"), [("gov.css", 24 * 1024), ("gov.js", 12 * 1024)])
def test_the_budget_holds(name: str, most: int) -> None:
    assert (STATIC / name).stat().st_size <= most


def test_nothing_comes_from_elsewhere() -> None:
    for path in [*STATIC.iterdir(), *TEMPLATES.rglob("*.html")]:
        for address in re.findall(r"""(?:src|href|url\()=?["'(]?(https?:)?//[^"')\s]+""", path.read_text()):
            assert address in ("", None), path


def test_parts_carry_no_inline_style_or_script() -> None:
    """They are used on pages whose policy allows neither."""
    for path in [*(TEMPLATES / "core").rglob("*.html"), *(TEMPLATES / "desk").rglob("*.html")]:
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=", text), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), path


def test_no_page_loads_the_chart_library() -> None:
    for path in TEMPLATES.rglob("*.html"):
        assert "chart/chart.js" not in path.read_text(), path
