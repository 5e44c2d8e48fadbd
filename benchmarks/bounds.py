"""What is asked of a figure, and whether this run kept it.

A part of a benchmark that runs in a process of its own appends its rows to the file that `ROWS` names; who started it
prints the table of all parts.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROWS = "MEMORY_BENCH_ROWS"
VERDICTS = {True: "yes", False: "**no**", None: "–"}


@dataclass(frozen=True, slots=True)
class Bound:
    """One figure: what it is of, what it must be, what it was; `kept` is None where nothing is asked of it."""

    what: str
    must: str
    measured: str
    kept: bool | None = None


class Table(list[Bound]):
    """Rows in the order in which they were measured."""

    def add(self, what: str, must: str, measured: str, kept: bool | None) -> None:
        self.append(Bound(what, must, measured, kept))


def report(rows: Sequence[Bound]) -> None:
    """Print rows as a table, or hand them to the process that prints the table."""
    collected = os.environ.get(ROWS)
    if collected:
        with Path(collected).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    else:
        show(rows)


def show(rows: Sequence[Bound]) -> None:
    """Print a table as a page of the documentation has it."""
    print("\n| what | must be | measured | held |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.must} | {row.measured} | {VERDICTS[row.kept]} |")


def collected(parts: Sequence[Sequence[str]]) -> tuple[list[Bound], bool]:
    """Run parts (module and arguments) one after the other: their rows, and whether all of them ended well."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.touch()
        environ = os.environ | {ROWS: str(file)}
        ended = [subprocess.run([sys.executable, "-m", *part], env=environ).returncode == 0 for part in parts]
        rows = [Bound(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    return rows, all(ended)
