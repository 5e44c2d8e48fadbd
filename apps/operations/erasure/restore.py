"""After a restore: what the erasure file names and the restored data brought back goes again.

Each line whose complete certificate is missing runs again, up to its fence, and has its certificate under its own
id. Lines of a narrower scope are replayed by the app that owns it, which registers how.
"""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import maintenance_session
from apps.operations.erasure import lines, runs
from apps.operations.erasure.models import ErasureCertificate, ErasureScope, ErasureStatus

Replay = Callable[[lines.ErasureLine], UUID | None]


class NoReplay(LookupError):
    """The file names a scope that no app has registered."""


def _replay_all(line: lines.ErasureLine) -> UUID | None:
    """Fence the principal out again and erase it. Returns the certificate, None when it is complete already."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT operations_erasure_replay(%s, %s, %s, %s)",
            [line.certificate, line.fence_at, line.workspace, line.principal],
        )
        if not cursor.fetchone()[0]:
            return None
    runs.run(line.certificate)
    return line.certificate


_replays: dict[str, Replay] = {ErasureScope.ALL.value: _replay_all}


def register_replay(scope: str, replay: Replay) -> None:
    _replays[scope] = replay


def replay_file(file: Path | None = None) -> list[UUID]:
    """Replay every line, oldest first; the certificates that ran. Raises DamagedLine before anything runs."""
    known = lines.read(file)
    for line in known:
        if line.scope not in _replays:
            raise NoReplay(line.scope)
    return [done for line in known if (done := _replays[line.scope](line)) is not None]


def missing(file: Path | None = None) -> list[UUID]:
    """Certificates that the file names and the database lacks: the sign of a restore that nobody closed."""
    named = [line.certificate for line in lines.read(file)]
    there = set(
        ErasureCertificate.objects.filter(pk__in=named, status=ErasureStatus.COMPLETE).values_list(
            "pk", flat=True
        )
    )
    open_ones = set(
        ErasureCertificate.objects.filter(pk__in=named)
        .exclude(status=ErasureStatus.COMPLETE)
        .values_list("pk", flat=True)
    )
    return [key for key in named if key not in there | open_ones]
