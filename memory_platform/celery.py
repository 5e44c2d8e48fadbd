"""The Celery application of worker and beat; web sends through it."""

import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_platform.settings")

app = Celery("memory_platform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect(weak=False)
def _log_as_the_platform(**kwargs: Any) -> None:
    """Django's settings set logging up; Celery must not do it again, its lines would show arguments."""


@signals.worker_init.connect(weak=False)
@signals.beat_init.connect(weak=False)
def _start(sender: Any = None, signal: Any = None, **kwargs: Any) -> None:
    from apps.core.checks import UnsafeDatabase, refuse_unsafe_database
    from apps.operations import heartbeats

    _without_pool()
    # Celery logs what a signal's handler raises and goes on; only SystemExit keeps it from starting.
    try:
        refuse_unsafe_database()
    except UnsafeDatabase as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None
    except Exception as error:
        raise SystemExit(f"the database could not be verified: {type(error).__name__}") from None
    heartbeats.start("worker" if signal is signals.worker_init else "beat")


@signals.worker_shutdown.connect(weak=False)
def _stop(**kwargs: Any) -> None:
    from apps.operations import heartbeats

    heartbeats.stop()


@signals.worker_process_init.connect(weak=False)
def _in_each_child(**kwargs: Any) -> None:
    from memory_platform.environment import environment
    from memory_platform.telemetry import configure_telemetry

    configure_telemetry(environment())


def _without_pool() -> None:
    """One task at a time needs one connection; a pool's threads and locks would not survive the fork."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        connection.close()
    for settings in connections.settings.values():
        settings["OPTIONS"].pop("pool", None)
