"""A database of the benchmarks' own, migrated and reached as the application, in a folder that is gone after."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def own_database() -> Iterator[None]:
    """Django, set up on a fresh database. `MEMORY_BENCH_DATABASE=given` takes the one of the environment."""
    import django

    # Nothing here waits for a broker, or for a worker that is not there.
    os.environ.setdefault("BROKER_URL", "memory://")
    if os.environ.get("MEMORY_BENCH_DATABASE") == "given":
        django.setup()
        yield
        return
    from memory_platform.embedded import temporary_postgres

    with temporary_postgres(durable=True) as server:
        os.environ |= {
            "DATABASE_URL": server.url("app"),
            "DATABASE_OWNER_URL": server.url("owner"),
            "DATABASE_ADMIN_URL": server.url("admin", "postgres"),
            "MONITOR_DATABASE_URL": server.url("probe"),
        }
        for command in (["provision_roles", "--apply"], ["migrate", "-v", "0"]):
            subprocess.run(
                [sys.executable, "manage.py", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
            )
        django.setup()
        yield
        from django.db import connections

        connections.close_all()


def judged(name: str) -> Path:
    """The folder of a judged collection: in MEMORY_JUDGED_DATA, else beside the checkout. Exits where absent."""
    given = os.environ.get("MEMORY_JUDGED_DATA")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    if not (folder / name).is_dir():
        sys.exit(f"The judged collection {name} is not here: set MEMORY_JUDGED_DATA.")
    return folder / name


def analyze() -> None:
    """Statistics for the planner, as autovacuum would have made them by now."""
    import psycopg

    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("VACUUM ANALYZE")
