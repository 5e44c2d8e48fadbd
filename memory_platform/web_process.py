"""What web does beside serving: refuse an unsafe database, heartbeat, counters shared by its workers.

Gunicorn's configuration: `--config python:memory_platform.web_process`. Sizes and addresses stand on the command
line (Procfile).
"""

import os
import shutil
import tempfile
from typing import Any

from memory_platform.logging import configure_structlog, logging_config

configure_structlog()
# Must be set before prometheus_client is imported: each worker writes its counters here, any of them shows all.
_counters = os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="memory-metrics-"))
# One thread embeds a question: a team of two took 19 ms for one of 15 tokens where one thread takes 16, and half as
# much processor again, which the searches beside it need. OpenMP reads this when the model is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
logconfig_dict = logging_config(os.environ.get("LOG_LEVEL", "INFO"))


def post_worker_init(worker: Any) -> None:
    """The application is loaded: from here on this process serves."""
    from apps.core.checks import refuse_unsafe_database
    from apps.operations import heartbeats
    from memory_platform.environment import environment
    from memory_platform.telemetry import configure_telemetry

    refuse_unsafe_database()
    configure_telemetry(environment())
    heartbeats.start("web")


def worker_exit(server: Any, worker: Any) -> None:
    from apps.operations import heartbeats

    heartbeats.stop()


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    shutil.rmtree(_counters, ignore_errors=True)
