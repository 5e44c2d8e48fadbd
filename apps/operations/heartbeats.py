"""Heartbeats: every web, worker and beat process writes its row every 10 s, with what apps registered to report.

A row unseen for 60 s is not live. Reports say what *this process* knows (its settings, its cached policies);
they run in the heartbeat's own thread, may look into the database, and cannot stop the heartbeat by failing.

    heartbeats.register_report("observations", lambda: {"ceiling": "off"})
"""

import atexit
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from apps.core import clock
from apps.core.ids import uuid7
from apps.operations.models import Process

logger = structlog.get_logger(__name__)

BEAT_SECONDS = 10.0
Report = Callable[[], Mapping[str, Any]]

_reports: dict[str, Report] = {}


def register_report(app: str, report: Report) -> None:
    """Have `report()` (a JSON object of codes and numbers) stand in every heartbeat, under the app's name."""
    _reports[app] = report


def collect() -> dict[str, Any]:
    """What the apps report now. A report that fails is replaced by the class of its failure."""
    found: dict[str, Any] = {}
    for app, report in sorted(_reports.items()):
        try:
            found[app] = dict(report())
        except Exception as error:
            found[app] = {"error": type(error).__name__}
            logger.error("heartbeat_report_failed", source=app, code=type(error).__name__)
    return found


class Heartbeat:
    """The heartbeat of this process, in a thread of its own."""

    def __init__(self, kind: str, seconds: float = BEAT_SECONDS) -> None:
        self.kind, self.seconds = kind, seconds
        self.id: UUID = uuid7()
        self.pid = os.getpid()
        self.started_at: datetime = clock.now()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and take the row away: an ended process is not a dead one."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2)
        if os.getpid() == self.pid:
            with suppress(DatabaseError, InterfaceError):
                Process.objects.filter(pk=self.id).delete()

    def beat(self) -> None:
        """Write the row once. Raises what the database raises."""
        Process.objects.update_or_create(
            id=self.id,
            defaults={
                "kind": self.kind,
                "release": settings.RELEASE,
                "host": socket.gethostname(),
                "pid": self.pid,
                "started_at": self.started_at,
                "seen_at": clock.now(),
                "report": collect(),
            },
        )

    def _run(self) -> None:
        while True:
            try:
                self.beat()
            except Exception as error:
                # The database may be away; the row then grows old, which is what it is for.
                logger.error("heartbeat_failed", code=type(error).__name__)
            finally:
                with suppress(DatabaseError, InterfaceError):
                    connection.close()
            if self._stop.wait(self.seconds):
                return


_running: Heartbeat | None = None


def start(kind: str) -> Heartbeat:
    """Begin the heartbeat of this process, once: `web`, `worker` or `beat`."""
    global _running
    # After a fork the thread is the parent's, and so is the row.
    if _running is None or (_running.kind == "web" and _running.pid != os.getpid()):
        _running = Heartbeat(kind)
        _running.start()
        atexit.register(_running.stop)
    return _running


def process_id() -> UUID | None:
    """The id of this process's row, also in the children of a worker; None where no heartbeat runs."""
    return _running.id if _running else None


def stop() -> None:
    """End the heartbeat of this process, if it has one."""
    if _running is not None:
        _running.stop()
