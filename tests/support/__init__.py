"""Helpers of the suite."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def judged_data(name: str) -> Path:
    """The folder of a judged collection; skips the test with the reason where it is absent.

    Looked for in MEMORY_JUDGED_DATA, else beside the checkout.
    """
    given = os.environ.get("MEMORY_JUDGED_DATA")
    candidates = [Path(given)] if given else [ROOT.parent / "shared" / "data", *_beside_main_checkout()]
    for folder in candidates:
        if (folder / name).is_dir():
            return folder / name
    pytest.skip(f"the judged collection {name} is not on this machine (set MEMORY_JUDGED_DATA)")


def _beside_main_checkout() -> list[Path]:
    found = subprocess.run(
        ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        return []
    return [Path(found.stdout.strip()).parent.parent / "shared" / "data"]
