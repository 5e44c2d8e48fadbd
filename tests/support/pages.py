"""Pages of the documentation as a test reads them: marked blocks of commands and the answers shown for them.

`<!-- run -->` before a block of `sh` says that it runs; `<!-- answer -->` before a block of `json` says that the
block before prints a document with at least these members; `<!-- prints -->` before a block of `text` that it prints
just that. The blocks of a page share one shell.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import ROOT

_BLOCK = re.compile(
    r"<!-- (?P<mark>run|answer|prints) -->\n+```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "reference" not in page.relative_to(ROOT).parts]


@dataclass
class Block:
    """Commands that run, and what the page shows for them: members of a document, or all that is printed."""

    commands: str
    answer: Any = None
    prints: str | None = None


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        if match["mark"] == "run":
            found.append(Block(match["body"]))
        elif match["mark"] == "prints":
            found[-1].prints = match["body"]
        else:
            found[-1].answer = json.loads(match["body"])
    return found


def run(page_blocks: list[Block], folder: Path, variables: dict[str, str]) -> list[str]:
    """What each block prints, run in order in one shell. Fails at the first that fails."""
    script = ["set -eo pipefail"]
    for number, block in enumerate(page_blocks):
        script.append(f"{{\n{block.commands}\n}} >{folder}/{number}.out 2>{folder}/{number}.err")
        script.append(f"touch {folder}/{number}.done")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=variables, capture_output=True, text=True
    )
    for number, block in enumerate(page_blocks):
        said = "\n".join((folder / f"{number}.{kind}").read_text() for kind in ("out", "err"))
        assert (folder / f"{number}.done").exists(), f"failed:\n{block.commands}\n{said}\n{done.stderr}"
    return [(folder / f"{number}.out").read_text() for number in range(len(page_blocks))]


def missing_members(shown: Any, printed: Any, at: str = "") -> list[str]:
    """Members that a page shows and the answer has not; of a list, the first entries are compared."""
    if isinstance(shown, dict):
        if not isinstance(printed, dict):
            return [at]
        lost = [f"{at}/{name}" for name in shown if name not in printed]
        for name in shown.keys() & printed.keys():
            lost += missing_members(shown[name], printed[name], f"{at}/{name}")
        return lost
    if isinstance(shown, list) and shown:
        if not isinstance(printed, list) or not printed:
            return [at]
        return missing_members(shown[0], printed[0], f"{at}/0")
    return []
