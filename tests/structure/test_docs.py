"""The documentation names what exists: commands, targets, routes, settings, error codes, links."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.urls import URLPattern, URLResolver, get_resolver

import apps
from apps.core.problems import Problem
from memory_platform.environment import Environment
from memory_platform.run.announce import curl_lines
from scripts.check_docs import broken_links
from tests.support import ROOT
from tests.support.pages import PAGES, blocks, text_of

TEXT = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
EVERYTHING = "\n".join(TEXT.values())


def subclasses(of: type[Problem]) -> Iterator[type[Problem]]:
    for sub in of.__subclasses__():
        yield sub
        yield from subclasses(sub)


def codes_of_the_code() -> set[str]:
    """Codes of problem classes, and those given where one is raised."""
    for module in pkgutil.walk_packages(apps.__path__, "apps."):
        if not re.search(r"\.(migrations|management)\b", module.name):
            importlib.import_module(module.name)
    classes = {Problem, *subclasses(Problem)}
    classes = {one for one in classes if one.__module__.startswith(("apps.", "memory_platform."))}
    names = {one.__name__ for one in classes} | {"ItemError"}
    found = {one.code for one in classes}
    for folder in ("apps", "memory_platform"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= codes_given(ast.parse(path.read_text(encoding="utf-8")), names)
    return found


def codes_given(tree: ast.AST, names: set[str]) -> set[str]:
    found = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name == "ItemRefused" and isinstance(call.args[0], ast.Constant):
            found.add(str(call.args[0].value))
        if name in names:
            found |= {
                str(word.value.value)
                for word in call.keywords
                if word.arg == "code" and isinstance(word.value, ast.Constant)
            }
    return found


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        at = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, at)
        else:
            yield at


def test_page_of_error_codes_lists_exactly_those_of_the_code() -> None:
    rows = [line for line in TEXT["docs/problems.md"].splitlines() if line.startswith("| `")]
    listed = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    assert listed == codes_of_the_code()


def test_api_guide_shows_every_route() -> None:
    guide = TEXT["docs/api-guide.md"]
    for route in routes(get_resolver().url_patterns):
        if not route.startswith(("v1/", "health/", "metrics")):
            continue
        parts = re.split(r"<[^>]+>", route)
        shown = r"\{\w+\}".join(re.escape(part) for part in parts)
        assert re.search(f"/{shown}(?![\\w/])", guide), f"docs/api-guide.md says nothing of /{route}"


def test_readme_shows_the_calls_that_make_run_prints() -> None:
    printed = curl_lines("http://127.0.0.1:8000", Path("var/api_token"))
    assert [block.commands.strip() for block in blocks(TEXT["README.md"])] == printed


@pytest.mark.parametrize("page", TEXT)
def test_commands_exist(page: str) -> None:
    text = TEXT[page]
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z-]+)\b", text, re.MULTILINE)
    assert set(named) <= targets
    called = set(re.findall(r"manage\.py ([a-z_]+)", text))
    assert called <= set(get_commands())
    for name in re.findall(r"python -m (benchmarks(?:\.\w+)?)", text):
        place = ROOT / name.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()


def test_settings_exist() -> None:
    known = {name.upper() for name in Environment.model_fields}
    named = set(re.findall(r"`([A-Z][A-Z]+_[A-Z_]+)`", EVERYTHING))
    of_compose = set(re.findall(r"\$\{(\w+)", text_of("deploy/compose.yaml")))
    assert {name for name in named if not name.endswith("_")} <= known | of_compose


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []
