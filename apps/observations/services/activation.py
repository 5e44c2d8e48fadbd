"""The steps of an activation run, in a staff session unless said. Off needs one person; on needs two and evidence."""

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from apps.core import audit, clock, policies
from apps.core.db.sessions import current_staff, staff_session
from apps.core.models import StoredPolicy
from apps.core.problems import Forbidden, InvalidRequest, NotFound, StaleVersion
from apps.core.reasons import check_reason
from apps.observations.activation import probes
from apps.observations.activation.checklist import Checklist, approval_hash, checklist
from apps.observations.activation.items import ITEMS
from apps.observations.exceptions import (
    ActivationBlocked,
    ActivationRunning,
    ActivationState,
    ApprovalVoid,
    OneEnrolmentNeeded,
)
from apps.observations.fences import fence, is_held
from apps.observations.models import ActivationRun, Enrolment, Evidence
from apps.observations.models.activation import Part, Result, RunState
from apps.observations.policy import KIND, Mode, collecting
from apps.observations.services import evidence, unattended
from apps.observations.services.evidence import run_of
from apps.observations.services.unattended import ALARM_SOURCE
from apps.observations.standing import known
from apps.operations import alarms
from apps.operations.holds import FourEyes

VALID_FOR = timedelta(hours=24)
OPERATES, REVIEWS = "operate_collection", "review_retention"
UNVERIFIED = "shutdown_unverified"
BEFORE_ENABLING = "AB"
ON = (RunState.ENABLED, RunState.PILOT_VERIFIED)
STOPPED = (RunState.STOPPING, RunState.SHUTDOWN_UNVERIFIED, RunState.SHUTDOWN_VERIFIED)


def open_run(*, workspace_id: UUID, mode: Mode, reason: str) -> ActivationRun:
    """Begin a run whose end is to publish `mode`. Raises NotFound, Forbidden, InvalidRequest, ActivationRunning."""
    staff = current_staff()
    check_reason(reason)
    _require(workspace_id, OPERATES)
    if mode == "off":
        raise InvalidRequest("A run is for a mode that collects", pointer="/mode")
    try:
        with transaction.atomic():
            run = ActivationRun.objects.create(
                workspace_id=workspace_id, mode=mode, opened_by_id=staff.user_id
            )
    except IntegrityError:
        raise ActivationRunning(_way_past(workspace_id)) from None
    _audit("open", run, reason)
    return run


def examine(*, run_id: UUID, item: str, user_id: int, query: str = probes.HARMLESS) -> Evidence:
    """Let the machine look at an item, and keep what it found; opens sessions of its own. `query`: what C2 asks.

    A failing C switches off at once, with an alarm. A failing D2 leaves `shutdown_unverified`, an alarm. Raises
    NotFound, Forbidden, InvalidRequest, ActivationState.
    """
    if item not in probes.PROBES:
        raise InvalidRequest("The machine does not look at this item", pointer="/item")
    with staff_session(user_id):
        run = run_of(run_id)
        _require(run.workspace_id, OPERATES)
        _require_step(run, item)
    observed_at = clock.now()
    found = probes.look(item, probes.Asked(run, user_id, query))
    off = item[0] == "C" and not found.passed
    with staff_session(user_id):
        if off:
            fence()  # before the row, as every stop takes them
        run = run_of(run_id, lock=True)
        _require_step(run, item)
        row = evidence.record(
            run=run,
            item=ITEMS[item],
            part=Part.MACHINE,
            result=Result.PASS if found.passed else Result.FAIL,
            measured=found.values,
            method=f"{found_by(item)}.{probes.VERSION}",
            observed_at=observed_at,
            actor_id=user_id,
        )
        if off:
            stop(run_id=run_id, reason=f"{item} failed")
            alarms.raise_alarm(source=ALARM_SOURCE, reason=unattended.FAILED, workspace=run.workspace_id)
    advance_run(run_id=run_id, user_id=user_id)
    return row


def vouch(
    *,
    run_id: UUID,
    item: str,
    result: str,
    note: str,
    user_id: int,
    subject: evidence.Subject = evidence.NOTHING,
) -> Evidence:
    """Attest an item as a human, and take the run on; opens sessions of its own. A C that does not hold switches off
    at once, whatever grant the person holds. Raises as `evidence.attest`, Forbidden, ActivationState."""
    with staff_session(user_id):
        run = run_of(run_id)
        _require(run.workspace_id, OPERATES, REVIEWS)
        row = evidence.attest(run_id=run_id, item=item, result=result, note=note, subject=subject)
        _require_step(run, item)
    if item[0] == "C" and row.result != Result.PASS:
        unattended.stop_unsafe()
    advance_run(run_id=run_id, user_id=user_id)
    return row


def found_by(item: str) -> str:
    """Name of the probe of an item."""
    return probes.PROBES[item].__name__


def advance_run(*, run_id: UUID, user_id: int) -> ActivationRun:
    """Take the run as far as its evidence carries it, never back; opens a session of its own."""
    with staff_session(user_id):
        run = run_of(run_id, lock=True)
        _advance(run)
    if run.state == RunState.SHUTDOWN_UNVERIFIED:
        alarms.raise_alarm(source=ALARM_SOURCE, reason=UNVERIFIED, workspace=run.workspace_id)
    elif run.state in (RunState.SHUTDOWN_VERIFIED, RunState.EMPTIED):
        alarms.resolve(source=ALARM_SOURCE, workspace=run.workspace_id)
    return run


def request_enabling(*, run_id: UUID, reason: str) -> ActivationRun:
    """Ask for the approval of exactly what there is now; it holds for 24 hours.

    Raises NotFound, Forbidden, ActivationState, ActivationBlocked with the items.
    """
    staff = current_staff()
    check_reason(reason)
    _require(run_of(run_id).workspace_id, OPERATES)
    run = run_of(run_id, lock=True)
    _advance(run)
    found = checklist(run)
    _require_passed(found)
    if run.state not in (RunState.READY, RunState.APPROVED):
        raise ActivationState(state=run.state)
    run.state, run.requested_by_id, run.requested_at = RunState.READY, staff.user_id, clock.now()
    run.approved_by_id = run.approved_at = None
    run.valid_until = run.requested_at + VALID_FOR
    run.policy_hash = policies.followed(run.workspace_id, KIND).hash
    run.approval_hash = approval_hash(run, found)
    run.save()
    _audit("request_enabling", run, reason)
    return run


def approve(*, run_id: UUID, version: str, reason: str) -> ActivationRun:
    """By another person with `operate_collection` or `review_retention`, who hands back the hash that it saw.

    Raises NotFound, Forbidden, FourEyes, StaleVersion, ApprovalVoid, ActivationState, ActivationBlocked.
    """
    staff = current_staff()
    check_reason(reason)
    _require(run_of(run_id).workspace_id, OPERATES, REVIEWS)
    run = run_of(run_id, lock=True)
    if run.state != RunState.READY or run.requested_at is None:
        raise ActivationState(state=run.state)
    if run.requested_by_id is None or run.requested_by_id == staff.user_id:
        raise FourEyes
    if version != run.approval_hash:
        raise StaleVersion(version=run.approval_hash)
    _require_unchanged(run)
    run.state, run.approved_by_id, run.approved_at = RunState.APPROVED, staff.user_id, clock.now()
    run.save()
    _audit("approve", run, reason)
    return run


def enable(*, run_id: UUID, reason: str) -> ActivationRun:
    """Publish the mode, behind the fence, when the approval still fits and exactly one principal is enrolled.

    Raises NotFound, Forbidden, ActivationState, ApprovalVoid, ActivationBlocked, OneEnrolmentNeeded, and what
    publishing does.
    """
    staff = current_staff()
    check_reason(reason)
    _require(run_of(run_id).workspace_id, OPERATES)
    fence()
    run = run_of(run_id, lock=True)
    if run.state != RunState.APPROVED or run.approved_by_id is None:
        raise ActivationState(state=run.state)
    _require_unchanged(run)
    count = Enrolment.objects.filter(workspace_id=run.workspace_id, withdrawn_at=None).count()
    if count != 1:
        raise OneEnrolmentNeeded(enrolled=count)
    with transaction.atomic():
        run.state, run.enabled_by_id, run.enabled_at = RunState.ENABLED, staff.user_id, clock.now()
        run.save()
        published = _publish(run, run.mode, run.policy_hash, reason)
        run.generation = published.version
        run.save(update_fields=["generation"])
        _record_enabling(run)
    _audit("enable", run, reason)
    known.forget()
    return run


def stop(*, run_id: UUID, reason: str) -> ActivationRun:
    """Switch off, by one person with `operate_collection`. When this is committed, nothing admitted before it can
    still become durable; whether every process follows is for D1 and D2. Raises NotFound, Forbidden, ActivationState.
    """
    staff = current_staff()
    check_reason(reason)
    _require(run_of(run_id).workspace_id, OPERATES)
    fence()
    run = run_of(run_id, lock=True)
    if run.state not in ON:
        raise ActivationState(state=run.state)
    before = policies.followed(run.workspace_id, KIND)
    if collecting(before.document).mode != "off":
        before = _publish(run, "off", before.hash, reason)
    run.state, run.stopped_by_id, run.stopped_at = RunState.STOPPING, staff.user_id, clock.now()
    run.stopped_generation, run.fenced = before.version, is_held()
    run.save()
    _audit("stop", run, reason)
    known.forget()
    return run


def _way_past(workspace_id: UUID) -> str:
    """What ends the run that is in the way of another."""
    off = ActivationRun.objects.filter(
        workspace_id=workspace_id, state__in=(RunState.STOPPING, RunState.SHUTDOWN_UNVERIFIED)
    )
    if off.exists():
        return "This workspace has an activation run already; D1 and D2 have to prove that it is off"
    return ""


def _advance(run: ActivationRun) -> None:
    before = run.state
    if run.state == RunState.DRAFT and not checklist(run, "A").blockers():
        run.state = RunState.PROVISIONED
    if run.state == RunState.PROVISIONED and not checklist(run).blockers():
        run.state = RunState.READY
    if run.state == RunState.ENABLED and not checklist(run, "C", after=run.enabled_at).blockers():
        run.state = RunState.PILOT_VERIFIED
    if run.state in STOPPED:
        _advance_stopped(run)
    if run.state != before:
        run.save(update_fields=["state"])
        _audit("advance", run, "")


def _advance_stopped(run: ActivationRun) -> None:
    found = checklist(run, "D", after=run.stopped_at)
    open_lines = {line.code: line.standing for line in found.blockers()}
    off = [line for line in open_lines if line.startswith(("D1", "D2"))]
    if run.state != RunState.SHUTDOWN_VERIFIED and not off:
        run.state = RunState.SHUTDOWN_VERIFIED
    elif run.state == RunState.STOPPING and "failed" in [open_lines[line] for line in off]:
        run.state = RunState.SHUTDOWN_UNVERIFIED
    if run.state == RunState.SHUTDOWN_VERIFIED and not open_lines:
        run.state = RunState.EMPTIED


def _record_enabling(run: ActivationRun) -> None:
    """C1: what the machine did, and for which two persons."""
    for part in ITEMS["C1"].parts:
        evidence.record(
            run=run,
            item=ITEMS["C1"],
            part=part,
            result=Result.PASS,
            measured={"enrolments": 1, "generation": run.generation},
            method="enable.1" if part == Part.MACHINE else "approval.1",
            observed_at=run.enabled_at or clock.now(),
            actor_id=run.requested_by_id,
            second_actor_id=run.approved_by_id,
        )


def _publish(run: ActivationRun, mode: str, seen: str, reason: str) -> StoredPolicy:
    document = policies.followed(run.workspace_id, KIND).document | {"mode": mode}
    return policies.publish_policy(
        workspace_id=run.workspace_id, kind=KIND, document=document, if_match=seen, reason=reason
    )


def _require_unchanged(run: ActivationRun) -> None:
    """What was asked for is what there is: same evidence, release, rights and policy, fresh, and within 24 hours."""
    if run.valid_until is None or clock.now() >= run.valid_until:
        raise ApprovalVoid
    found = checklist(run)
    _require_passed(found)
    if approval_hash(run, found) != run.approval_hash:
        raise ApprovalVoid


def _require_passed(found: Checklist) -> None:
    blockers = found.blockers(BEFORE_ENABLING)
    if blockers:
        raise ActivationBlocked(items={line.code: line.standing for line in blockers})


def _require_step(run: ActivationRun, item: str) -> None:
    """C is of a run that is on, D of one that is stopped, A and B of one that is neither."""
    over = (*ON, *STOPPED, RunState.EMPTIED)
    fits = run.state in {"C": ON, "D": STOPPED}[item[0]] if item[0] in "CD" else run.state not in over
    if not fits:
        raise ActivationState(state=run.state)


def _require(workspace_id: UUID, *grants: str) -> None:
    """Another's workspace is as one that does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s = ANY (accounts_granted_workspaces(%s)), %s = ANY (accounts_granted_workspaces(%s))",
            [workspace_id, list(grants), workspace_id, [OPERATES, REVIEWS, "audit"]],
        )
        holds, sees = cursor.fetchone()
    if not sees:
        raise NotFound(code="unknown_workspace")
    if not holds:
        raise Forbidden


def _audit(act: str, run: ActivationRun, reason: str) -> None:
    audit.record(
        f"observations.activation_{act}",
        run._meta.label_lower,
        run.pk,
        workspace=run.workspace_id,
        reason=reason,
        details={"state": run.state},
    )
