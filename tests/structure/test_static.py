"""The staff pages' own sheet and script stay small, and load nothing from elsewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "apps" / "core" / "static" / "core"
SHEETS = sorted([*ROOT.glob("apps/*/static/**/*.css"), *ROOT.glob("apps/*/static/**/*.js")])
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
OURS = [path for path in TEMPLATES if not {"admin", "unfold"} & set(path.relative_to(ROOT).parts)]
"""All but those that take the place of a library's own, which keep its scripts."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(("name", "most"), [("gov.css", 24 * 1024), ("gov.js", 12 * 1024)])
def test_the_budget_holds(name: str, most: int) -> None:
    assert (STATIC / name).stat().st_size <= most


@pytest.mark.parametrize("path", [*SHEETS, *TEMPLATES], ids=name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    assert not re.findall(
        r"""(?:src=|href=|url\(|@import )\s*["']?(?:https?:)?//[^"')\s]+""", path.read_text()
    )


@pytest.mark.parametrize("path", OURS, ids=name)
def test_parts_carry_no_inline_style_or_script(path: Path) -> None:
    """They are used on pages whose policy allows neither."""
    text = path.read_text()
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_no_page_loads_the_chart_library(path: Path) -> None:
    assert "chart/chart.js" not in path.read_text()
