"""Evidence of an activation run: only ever appended, and never holding a text that should not be kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import audit, clock, policies
from apps.core.db.sessions import current_principal, current_staff
from apps.core.problems import InvalidRequest, NotFound
from apps.core.reasons import check_reason
from apps.core.text import refused_by
from apps.observations.activation.bindings import bindings
from apps.observations.activation.items import ITEMS, Item
from apps.observations.constants import CLOCK_TOLERANCE
from apps.observations.exceptions import MachineFirst
from apps.observations.fences import in_turn
from apps.observations.models import ActivationRun, Evidence
from apps.observations.models.activation import POSTED, Part, Result
from apps.observations.policy import KIND
from apps.operations.holds import FourEyes

LONGEST_NOTE = 500
MAX_MEASURED = 32
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|\b(?:password|host|dbname|user)\s*=", re.IGNORECASE)
ATTESTATION = "attestation"

Measured = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """What was looked at: its type, id and version, as codes."""

    type: str = ""
    id: str = ""
    version: str = ""


NOTHING = Subject()


def run_of(run_id: UUID, *, lock: bool = False) -> ActivationRun:
    """A run that the session sees. Raises NotFound."""
    rows = ActivationRun.objects.select_for_update() if lock else ActivationRun.objects
    found = rows.filter(pk=run_id).first()
    if found is None:
        raise NotFound(code="unknown_activation_run")
    return found


def post(
    *,
    run_id: UUID,
    item: str,
    result: str,
    release: str,
    observed_at: datetime,
    measured: Measured,
    token_id: UUID | None,
    method: str,
    subject: Subject = NOTHING,
    note: str = "",
) -> Evidence:
    """What was measured elsewhere, in the session of a principal of the run's workspace.

    Raises NotFound, InvalidRequest: for an item that is measured here, for a pass that does not show what it needs,
    and for anything in it that must not be kept.
    """
    current_principal()
    if item not in POSTED:
        raise InvalidRequest("This item is not posted", pointer="/item")
    run = run_of(run_id)
    for name, value in ITEMS[item].needs if result == Result.PASS else ():
        if measured.get(name) is not value:
            raise InvalidRequest("A pass of this item needs it", pointer=f"/measured/{name}")
    return record(
        run=run,
        item=ITEMS[item],
        part=Part.MACHINE,
        result=Result(result),
        measured=measured,
        method=method,
        observed_at=observed_at,
        release=release,
        token_id=token_id,
        subject=subject,
        note=note,
    )


def attest(
    *,
    run_id: UUID,
    item: str,
    result: str,
    note: str,
    observed_at: datetime | None = None,
    subject: Subject = NOTHING,
) -> Evidence:
    """What a human vouches for, in its staff session with `operate_collection` or `review_retention`.

    Where the machine decides, too, its evidence comes first, and who ran the probe cannot vouch for it. Raises
    NotFound, InvalidRequest, MachineFirst, FourEyes.
    """
    staff = current_staff()
    run = run_of(run_id)
    found = ITEMS.get(item)
    if found is None or Part.HUMAN not in found.parts:
        raise InvalidRequest("No human decides this item", pointer="/item")
    check_reason(note, pointer="/note", longest=LONGEST_NOTE)
    second = None
    if Part.MACHINE in found.parts:
        probe = _newest(run, found, Part.MACHINE)
        if probe is None:
            raise MachineFirst
        second = probe.actor_id
        if second == staff.user_id:
            raise FourEyes
    row = record(
        run=run,
        item=found,
        part=Part.HUMAN,
        result=Result(result),
        measured={},
        method=ATTESTATION,
        observed_at=observed_at or clock.now(),
        note=note,
        subject=subject,
        actor_id=staff.user_id,
        second_actor_id=second,
    )
    audit.record(
        "observations.attest",
        row._meta.label_lower,
        row.pk,
        workspace=run.workspace_id,
        details={"item": item},
    )
    return row


def record(
    *,
    run: ActivationRun,
    item: Item,
    part: Part,
    result: Result,
    measured: Measured,
    method: str,
    observed_at: datetime,
    release: str | None = None,
    actor_id: int | None = None,
    second_actor_id: int | None = None,
    token_id: UUID | None = None,
    subject: Subject = NOTHING,
    note: str = "",
) -> Evidence:
    """Append a row that supersedes the newest of its item and part. Raises InvalidRequest."""
    check_measured(measured)
    check_note(note)
    for pointer, value in (
        ("/method", method),
        ("/release", release or ""),
        ("/object/type", subject.type),
        ("/object/id", subject.id),
        ("/object/version", subject.version),
    ):
        _check_code(value, pointer)
    if observed_at > clock.now() + CLOCK_TOLERANCE:
        raise InvalidRequest("This is in the future", pointer="/observed_at")
    in_turn(run.pk)
    before = _newest(run, item, part)
    now = bindings()
    return Evidence.objects.create(
        workspace_id=run.workspace_id,
        run=run,
        item=item.code,
        part=part,
        object_type=subject.type,
        object_id=subject.id,
        object_version=subject.version,
        **now.document() | ({"release": release} if release is not None else {}),
        generation=policies.followed(run.workspace_id, KIND).version,
        result=result,
        measured=dict(measured),
        method=method,
        note=note,
        actor_id=actor_id,
        second_actor_id=second_actor_id,
        token_id=token_id,
        observed_at=observed_at,
        supersedes=before,
    )


def check_measured(measured: Measured) -> None:
    """Numbers, booleans, null, codes and hashes under names that are codes; nothing that the filter refuses."""
    if len(measured) > MAX_MEASURED:
        raise InvalidRequest(f"At most {MAX_MEASURED} values", pointer="/measured")
    for name, value in measured.items():
        if not CODE.fullmatch(name) or refused_by(name) is not None:
            raise InvalidRequest("Names of values are codes", pointer="/measured")
        if isinstance(value, str):
            _check_code(value, f"/measured/{name}")
        elif value is not None and not isinstance(value, (bool, int, float)):
            raise InvalidRequest("Values are numbers and codes", pointer=f"/measured/{name}")


def check_note(note: str) -> None:
    """At most 500 characters without credentials, addresses of databases and personal numbers."""
    check_reason(note, pointer="/note", required=False, longest=LONGEST_NOTE)
    if ADDRESS.search(note):
        raise InvalidRequest("This may not be kept: it looks like an address", pointer="/note")


def _check_code(value: str, pointer: str) -> None:
    if value and (not CODE.fullmatch(value) or refused_by(value) is not None):
        raise InvalidRequest("This is a number, a code or a hash", pointer=pointer)


def _newest(run: ActivationRun, item: Item, part: Part) -> Evidence | None:
    return Evidence.objects.filter(run=run, item=item.code, part=part, superseded_by=None).first()
