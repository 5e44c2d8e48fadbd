"""What a run tells while it works, and whether it is to stop.

Progress is written and the wish to stop is read in sessions of their own: the work's transaction, which may be a
snapshot, would hide both.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import current, principal_session
from apps.learning.models import Evaluation, Holdout, RunStatus

T = TypeVar("T")
INTERVAL_S = 1.0


class Cancelled(Exception):
    """Its owner stopped the run, or it is gone."""


class Watch:
    """Belongs to one run; its methods raise Cancelled."""

    def __init__(self, model: type[Evaluation] | type[Holdout], principal_id: UUID, run_id: UUID) -> None:
        self._model, self._principal_id, self._run_id = model, principal_id, run_id
        self._told_at = float("-inf")
        self._phase, self._total, self._done = "", 0, 0
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def phase(self, name: str, total: int = 0) -> None:
        """Something else begins; of `total` steps, 0 where they are not counted."""
        self._phase, self._total, self._done = name, total, 0
        self._tell()

    def step(self, steps: int = 1) -> None:
        """So many more steps are done; told once a second at most."""
        self._done += steps
        if time.monotonic() - self._told_at >= INTERVAL_S:
            self._tell()

    def apart(self, work: Callable[[], T]) -> T:
        """Run `work` in a session of the principal that is none of the work's own."""

        def in_session() -> T:
            with principal_session(self._principal_id):
                return work()

        def in_thread() -> T:
            try:
                return in_session()
            finally:
                connection.close()

        if current() is None:
            return in_session()
        if self._thread is None:
            # Another thread has another connection, and no identity yet.
            self._thread = ThreadPoolExecutor(max_workers=1)
        return self._thread.submit(in_thread).result()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        if not self.apart(self._write):
            raise Cancelled

    def _write(self) -> bool:
        """Whether to go on."""
        return bool(
            self._model.objects.filter(
                principal_id=self._principal_id,
                pk=self._run_id,
                status=RunStatus.RUNNING,
                cancel_requested_at=None,
            ).update(phase=self._phase, done=self._done, total=self._total)
        )
