"""`make bench`: every benchmark in turn, with the machine and the date on which its numbers were measured.

    python -m benchmarks [--only NAME …]

A benchmark is a module of this package with a `main`, or a package with a `__main__`. Each runs in a process of its
own; one that fails or falls below its floor does not keep the others from running, and the exit code says so.
"""

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
CPU_INFO = Path("/proc/cpuinfo")


def names() -> list[str]:
    """Benchmarks: the modules and packages that can be run; helpers have no `main`."""
    modules = [path.stem for path in HERE.glob("[a-z]*.py") if "def main(" in path.read_text("utf-8")]
    return sorted([*modules, *(path.parent.name for path in HERE.glob("*/__main__.py"))])


def machine() -> str:
    """What the numbers depend on: processor, cores, memory, load at the start, versions."""
    model = platform.processor() or platform.machine()
    if CPU_INFO.exists():
        lines = [line for line in CPU_INFO.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, load {load:.2f} at the start, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def run(name: str) -> int:
    """Run one benchmark; its exit code."""
    print(f"\n== {name}\n", flush=True)
    return subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=HERE.parent).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names(), metavar="NAME", help=", ".join(names()))
    chosen = parser.parse_args().only or names()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {machine()}")
    if os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1):
        print("The machine is busy: times will be too long.")
    failed = [name for name in chosen if run(name) != 0]
    if failed:
        print(f"\nFailed or below a floor: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
