"""The commands of the documentation, run as a reader would, against a running installation."""

import json
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.pages import PAGES, blocks, missing_members, run, text_of
from tests.support.stack import Stack

pytestmark = pytest.mark.installation

ADDRESS = "http://127.0.0.1:8000"
RUNNABLE = [str(page.relative_to(ROOT)) for page in PAGES if "<!-- run -->" in page.read_text("utf-8")]


@pytest.fixture
def checkout(stack: Stack, tmp_path: Path) -> Path:
    """The reader's folder: the checkout, with `var` of the running installation."""
    for entry in ROOT.iterdir():
        if entry.name != "var":
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "var").symlink_to(stack.var)
    return tmp_path


@pytest.mark.parametrize("page", RUNNABLE)
def test_commands_of_a_page_run_and_show_what_it_says(page: str, stack: Stack, checkout: Path) -> None:
    found = blocks(text_of(page).replace(ADDRESS, stack.url))
    for block, printed in zip(found, run(found, checkout, stack.command_variables()), strict=True):
        if block.answer is not None:
            lost = missing_members(block.answer, json.loads(printed))
            assert not lost, f"{block.commands}\nlacks {lost}\n{printed}"
        if block.prints is not None:
            assert printed == block.prints, block.commands
