"""B9: a restored copy stays closed until what is due and what was erased is gone from it again, and two persons
have opened it. No deadline moves.

The drill's records, its owners, its two persons and its erasure file are its own. The installation's erasure file
must never name what happens here: a certificate that the installation lacks closes its journal.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.contrib.auth.models import User
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from apps.accounts import services as accounts
from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.observations import gate, status
from apps.observations.fingerprints import VERSION
from apps.observations.models.observations import Corpus, Disposition
from apps.observations.rehearsal.copies import connected_to, copy_of
from apps.observations.rehearsal.posted import Shown
from apps.observations.services import erasure, restore
from apps.observations.services.records import INSERT
from apps.operations.erasure.models import ErasureCertificate, ErasureStatus

HOUR = timedelta(hours=1)
WHOLE_LIFE = 2160 * HOUR
KIND = "restore-drill"
REASON = "restore drill"
HASH_OF_NOTHING = "0" * 64
LEFT = "SELECT count(*) FROM observations_observation WHERE id = ANY (%s)"
TEXTS_LEFT = "SELECT count(*) FROM observations_observation_text WHERE observation_id = ANY (%s)"
WHOLE = (
    "SELECT o::text, t::text FROM observations_observation o LEFT JOIN observations_observation_text t "
    "ON t.observation_id = o.id WHERE o.id = ANY (%s) ORDER BY o.id"
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Whose records there are, who opens, and the records by what has to become of them (ids).

    `outlived` live, and only their texts are due.
    """

    first: User
    second: User
    eraser: PrincipalIdentity
    kept: list[UUID]
    outlived: list[UUID]
    due: list[UUID]
    erased: list[UUID]


def drill(owner_url: str, admin_url: str) -> Shown:
    """Fill the connected database, copy it, erase in it what the copy still holds, and restore the copy.

    Raises RehearsalRefused, GateRefused, and what `services.restore.drain` raises; the copy is dropped all the same.
    """
    name = str(conninfo_to_dict(owner_url)["dbname"])
    with TemporaryDirectory() as folder, _erasure_file(Path(folder) / "erasures.jsonl") as file:
        scene = _fill(owner_url)
        with copy_of(name, admin_url) as copy:
            with principal_session(scene.eraser):
                certificate = erasure.begin(send=False)
            erasure.run(certificate)
            with connected_to(copy):
                measured = _restore(make_conninfo(owner_url, dbname=copy), scene, certificate, file)
    return Shown("B9", _is_as_promised(measured), measured)


def _restore(owner_url: str, scene: Scene, certificate: UUID, file: Path) -> dict[str, Any]:
    """From the closed gate to the open one, connected to the copy."""
    before = _whole(owner_url, scene.kept)
    values = status.read().values
    measured: dict[str, Any] = {
        "closed": not gate.is_open(),
        "opened_undrained": _opens(scene),
        "overdue_found": values["expired_records"] + values["expired_texts"],
        "erased_found": _count(owner_url, LEFT, scene.erased),
        "erasures_replayed": restore.drain(file),
        "closed_after_drain": not gate.is_open(),
    }
    restore.open_gate(first=scene.first, second=scene.second, reason=REASON)
    values = status.read().values
    return measured | {
        "opened": gate.is_open(),
        "overdue_left": values["expired_records"]
        + values["expired_texts"]
        + _count(owner_url, LEFT, scene.due)
        + _count(owner_url, TEXTS_LEFT, scene.outlived),
        "erased_left": _count(owner_url, LEFT, scene.erased),
        "certificate_back": ErasureCertificate.objects.filter(
            pk=certificate, status=ErasureStatus.COMPLETE
        ).exists(),
        "kept": _count(owner_url, LEFT, scene.kept + scene.outlived),
        "timestamps_unchanged": _whole(owner_url, scene.kept) == before,
    }


def _opens(scene: Scene) -> bool:
    """Whether two persons can open what was not drained."""
    try:
        restore.open_gate(first=scene.first, second=scene.second, reason=REASON)
    except restore.GateRefused:
        return False
    return True


def _is_as_promised(measured: dict[str, Any]) -> bool:
    found = measured["overdue_found"] and measured["erased_found"] and measured["kept"]
    left = measured["overdue_left"] or measured["erased_left"] or measured["opened_undrained"]
    steps = ("closed", "closed_after_drain", "opened", "certificate_back", "timestamps_unchanged")
    return bool(
        found and not left and measured["erasures_replayed"] and all(measured[step] for step in steps)
    )


@contextmanager
def _erasure_file(path: Path) -> Iterator[Path]:
    """The file to which erasures of this process go, instead of the installation's."""
    before, settings.ERASURE_FILE = settings.ERASURE_FILE, path
    path.touch(mode=0o600)
    try:
        yield path
    finally:
        settings.ERASURE_FILE = before


def _fill(owner_url: str) -> Scene:
    """Records of a new workspace, in every state that a restore may bring back."""
    title = f"{KIND}-{uuid7().hex[-12:]}"
    superuser = User.objects.create_superuser(title, password=None)
    with staff_session(superuser):
        workspace = accounts.create_workspace(slug=title, name=title)
        first, second = (
            accounts.create_staff(
                username=f"{title}-{number}", groups=[(workspace, "Operator")], reason=REASON
            ).user
            for number in (1, 2)
        )
    eraser, other = (
        accounts.enter_principal(workspace=workspace.pk, subject=f"token:{KIND}-{number}")
        for number in (1, 2)
    )
    with psycopg.connect(owner_url, autocommit=True) as owner:
        return Scene(
            first,
            second,
            eraser,
            kept=[_record(owner, other, text=True), _record(owner, other)],
            outlived=[_record(owner, other, text=True, text_life=HOUR)],
            due=[_record(owner, other, life=HOUR, text=True), _record(owner, other, life=HOUR)],
            erased=[_record(owner, eraser, text=True), _record(owner, eraser)],
        )


def _record(
    owner: Any,
    principal: PrincipalIdentity,
    *,
    life: timedelta = WHOLE_LIFE,
    text: bool = False,
    text_life: timedelta | None = None,
) -> UUID:
    """A record of a search three hours ago; no search that is made now could be overdue."""
    key, observed_at = uuid7(), clock.now() - 3 * HOUR
    disposition = Disposition.RETAINED if text else Disposition.DISABLED
    owner.execute(INSERT, _row(key, principal, observed_at, life, disposition, text_life or life))
    return key


def _row(
    key: UUID,
    principal: PrincipalIdentity,
    observed_at: datetime,
    life: timedelta,
    disposition: Disposition,
    text_life: timedelta,
) -> dict[str, Any]:
    text = KIND if disposition == Disposition.RETAINED else None
    return {
        "id": key,
        "workspace": principal.workspace_id,
        "principal": principal.principal_id,
        "trace": None,
        "corpus": Corpus.SHARED.value,
        "observed_at": observed_at,
        "record_expires_at": observed_at + life,
        "fingerprint": HASH_OF_NOTHING,
        "key": KIND,
        "version": VERSION,
        "disposition": disposition.value,
        "release": None,
        "profile": None,
        "purpose": KIND,
        "consent": KIND,
        "snapshot": '{"version": 1, "availableCount": 0, "returnedCount": 0, "omittedHits": false, "hits": []}',
        "text": text,
        "text_expires_at": observed_at + text_life,
    }


def _whole(owner_url: str, records: list[UUID]) -> list[Any]:
    """Every column of the records and their texts, deadlines among them."""
    with psycopg.connect(owner_url, autocommit=True) as owner:
        return owner.execute(WHOLE, [records]).fetchall()


def _count(owner_url: str, sql: Any, records: list[UUID]) -> int:
    with psycopg.connect(owner_url, autocommit=True) as owner:
        found = owner.execute(sql, [records]).fetchone()
    return int(found[0]) if found else 0
