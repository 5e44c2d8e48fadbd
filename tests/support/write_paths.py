"""Every path by which a free text reaches a record that is governed, as whoever may take it would.

`REFUSED`: the text is refused, with its field named. `NOT_KEPT`: the call is made, and the text left out.
`ELSEWHERE`: parameters of such a name that are no path of their own, each with the reason.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from apps.accounts import services as accounts
from apps.core import audit
from apps.feedback.services import judgments
from apps.feedback.services import staff as labels
from apps.learning.services import desk, drills, pointers, proposals
from apps.learning.services import staff as learning
from apps.observations.models import Enrolment
from apps.observations.services import activation, enrolments, evidence, exports, restore
from apps.observations.services import reviews as journal_reviews
from apps.observations.services import staff as journal_staff
from apps.operations import alarms, holds, reviews
from apps.operations.alarms.destinations import confirm_destination, rotate_secret, save_destination
from apps.operations.erasure import services as erasures
from apps.operations.models import Destination
from apps.operations.models.reviews import Decision
from apps.retrieval.services import contexts
from apps.retrieval.services import staff as imported
from apps.traces.models import ReceiptKind
from apps.traces.services import staff as traces
from tests.support.traces import issue, ranked, save
from tests.support.writes import (
    NONE,
    Scene,
    an_issuer,
    confirm,
    disabled,
    enrolled,
    inactive,
    issuer_of,
    judgment,
    moved,
    observed,
    query_set,
    receipt,
    recorded,
    thrown,
)

Path = Callable[[Scene, str], Any]
WS = "apps.accounts.services"
OBS = "apps.observations.services"
LEARN = "apps.learning.services"

REFUSED: dict[str, Path] = {
    "apps.core.policies.services.publish_policy:reason": lambda s, t: s.publish(t),
    f"{WS}.grants.give_grant:reason": lambda s, t: s.as_root(
        accounts.give_grant, user=s.staff, workspace=s.world.workspace, grant="audit", reason=t
    ),
    f"{WS}.grants.take_grant:reason": lambda s, t: s.as_root(
        accounts.take_grant, user=s.staff, workspace=s.world.workspace, grant="audit", reason=t
    ),
    f"{WS}.grants.join_group:reason": lambda s, t: s.as_root(
        accounts.join_group, user=s.staff, workspace=s.world.workspace, title="Auditor", reason=t
    ),
    f"{WS}.grants.leave_group:reason": lambda s, t: s.as_root(
        accounts.leave_group, user=s.staff, workspace=s.world.workspace, title="Auditor", reason=t
    ),
    f"{WS}.issuers.create_issuer:reason": lambda s, t: s.as_root(
        accounts.create_issuer, **issuer_of(s), reason=t
    ),
    f"{WS}.issuers.change_issuer:reason": lambda s, t: s.as_root(
        accounts.change_issuer, an_issuer(s), active=False, reason=t
    ),
    f"{WS}.principals.create_principal:reason": lambda s, t: s.as_staff(
        accounts.create_principal, workspace=s.space, subject=f"token:{uuid4().hex}", reason=t
    ),
    f"{WS}.principals.disable_principal:reason": lambda s, t: s.as_staff(
        accounts.disable_principal, s.me.principal_id, reason=t
    ),
    f"{WS}.principals.enable_principal:reason": lambda s, t: s.as_staff(
        accounts.enable_principal, disabled(s), reason=t
    ),
    f"{WS}.staff.create_staff:reason": lambda s, t: s.as_root(
        accounts.create_staff, username=f"u{uuid4().hex}", reason=t
    ),
    f"{WS}.staff.change_staff_email:reason": lambda s, t: s.as_root(
        accounts.change_staff_email, s.staff.pk, email=f"{uuid4().hex}@example.org", reason=t
    ),
    f"{WS}.staff.deactivate_staff:reason": lambda s, t: s.as_root(
        accounts.deactivate_staff, s.staff.pk, reason=t
    ),
    f"{WS}.staff.activate_staff:reason": lambda s, t: s.as_root(
        accounts.activate_staff, inactive(s), reason=t
    ),
    f"{WS}.tokens.create_token:reason": lambda s, t: s.as_root(
        accounts.create_token, name="t", scopes=["search"], user_id=s.root.pk, reason=t
    ),
    f"{WS}.tokens.revoke_token:reason": lambda s, t: s.as_root(accounts.revoke_token, s.token, reason=t),
    f"{WS}.tokens.rotate_token:reason": lambda s, t: s.as_root(accounts.rotate_token, s.token, reason=t),
    "apps.operations.alarms.destinations.save_destination:reason": lambda s, t: s.as_root(
        save_destination, destination=Destination(name="n", kind="email", address="a@b.test"), reason=t
    ),
    "apps.operations.alarms.destinations.confirm_destination:reason": lambda s, t: s.as_root(
        confirm_destination, destination_id=s.destination.pk, reason=t
    ),
    "apps.operations.alarms.destinations.rotate_secret:reason": lambda s, t: s.as_root(
        rotate_secret, destination_id=s.destination.pk, reason=t
    ),
    "apps.operations.alarms.services.acknowledge:reason": lambda s, t: s.as_staff(
        alarms.acknowledge, alarm_id=s.alarm, reason=t
    ),
    "apps.operations.erasure.services.erase_principal:reason": lambda s, t: s.as_staff(
        erasures.erase_principal, principal_id=s.me.principal_id, reason=t
    ),
    "apps.operations.holds.place:reference": lambda s, t: s.as_staff(
        holds.place,
        workspace_id=s.space,
        reference=t,
        reason="r",
        items=[("traces.principal", s.me.principal_id)],
    ),
    "apps.operations.holds.place:reason": lambda s, t: s.as_staff(
        holds.place,
        workspace_id=s.space,
        reference="c",
        reason=t,
        items=[("traces.principal", s.me.principal_id)],
    ),
    "apps.operations.holds.extend:reason": lambda s, t: s.as_staff(
        holds.extend, hold_id=s.hold, items=[("traces.principal", s.me.principal_id)], reason=t
    ),
    "apps.operations.holds.release:reason": lambda s, t: s.as_staff(holds.release, hold_id=s.hold, reason=t),
    "apps.operations.reviews.decide:reason": lambda s, t: s.as_staff(
        reviews.decide,
        subject=journal_reviews.SUBJECT,
        workspace_id=s.space,
        decision=Decision.EXTEND,
        next_due_at=s.review.next_due_at,
        reason=t,
    ),
    "apps.operations.reviews.approve:reason": lambda s, t: s.as_staff(
        reviews.approve, review_id=s.review.pk, reason=t
    ),
    "apps.retrieval.services.contexts.reveal_context:reason": lambda s, t: s.as_staff(
        contexts.reveal_context, receipt_id=receipt(s), reason=t
    ),
    "apps.retrieval.services.staff.reveal_imported:reason": lambda s, t: s.as_staff(
        imported.reveal_imported, receipt_id=NONE, reason=t
    ),
    "apps.traces.services.staff.reveal_query:reason": lambda s, t: s.as_staff(
        traces.reveal_query, trace_id=UUID(s.answer["trace_id"]), reason=t
    ),
    "apps.traces.services.staff.erase_trace_of_principal:reason": lambda s, t: s.as_staff(
        traces.erase_trace_of_principal, trace_id=UUID(s.answer["trace_id"]), reason=t
    ),
    "apps.feedback.services.staff.reverse_outcome:reason": lambda s, t: s.as_staff(
        labels.reverse_outcome, receipt_id=NONE, kind=ReceiptKind.CORRECTED, version="", reason=t
    ),
    "apps.feedback.services.staff.judge_receipt:reason": lambda s, t: s.as_staff(
        labels.judge_receipt, receipt_id=receipt(s), submission=judgment(s), reason=t
    ),
    "apps.feedback.services.staff.reveal_counterfactual:reason": lambda s, t: s.as_staff(
        labels.reveal_counterfactual, ablation_id=NONE, reason=t
    ),
    f"{LEARN}.desk.open_desk:reason": lambda s, t: s.as_staff(
        desk.open_desk, queue=desk.Queue("receipt=1", "t", s.me.principal_id, s.space, ()), reason=t
    ),
    f"{LEARN}.desk.judge:note": lambda s, t: s.as_staff(
        desk.judge,
        receipt_id=receipt(s),
        node_id=UUID(s.answer["results"][0]["node_id"]),
        feedback_id=uuid4(),
        relevant=True,
        grade=None,
        note=t,
    ),
    f"{LEARN}.drills.run_rollback_drill:reason": lambda s, t: s.as_me(
        drills.run_rollback_drill, profile_id=s.profile, reason=t
    ),
    f"{LEARN}.proposals.propose_activation:reason": lambda s, t: s.as_staff(
        proposals.propose_activation, profile_id=s.profile, expected_active=None, reason=t
    ),
    f"{LEARN}.proposals.approve_activation:reason": lambda s, t: s.as_staff(
        proposals.approve_activation,
        proposal_id=s.proposal.pk,
        version=s.proposal.version,
        change_id=uuid4().hex,
        reason=t,
    ),
    f"{LEARN}.proposals.withdraw_proposal:reason": lambda s, t: s.as_staff(
        proposals.withdraw_proposal, proposal_id=s.proposal.pk, reason=t
    ),
    f"{LEARN}.proposals.drill_for:reason": lambda s, t: s.as_staff(
        proposals.drill_for, profile_id=s.profile, reason=t
    ),
    f"{LEARN}.staff.start_evaluation_for:reason": lambda s, t: s.as_staff(
        learning.start_evaluation_for,
        principal_id=s.me.principal_id,
        scopes=None,
        surface="results",
        key=uuid4().hex,
        reason=t,
    ),
    f"{LEARN}.staff.repeat_evaluation_for:reason": lambda s, t: s.as_staff(
        learning.repeat_evaluation_for, evaluation_id=NONE, key="k", reason=t
    ),
    f"{LEARN}.staff.cancel_evaluation_for:reason": lambda s, t: s.as_staff(
        learning.cancel_evaluation_for, evaluation_id=NONE, reason=t
    ),
    f"{LEARN}.staff.start_holdout_for:reason": lambda s, t: s.as_staff(
        learning.start_holdout_for, evaluation_id=NONE, query_set_id=NONE, key="k", reason=t
    ),
    f"{LEARN}.staff.cancel_holdout_for:reason": lambda s, t: s.as_staff(
        learning.cancel_holdout_for, holdout_id=NONE, reason=t
    ),
    f"{LEARN}.staff.create_profile_for:reason": lambda s, t: s.as_staff(
        learning.create_profile_for,
        holdout_id=NONE,
        baseline_profile_id=None,
        effective_until=None,
        reason=t,
    ),
    f"{LEARN}.query_sets.make_query_set:name": lambda s, t: query_set(s, name=t),
    "SetQuery.text": lambda s, t: query_set(s, text=t),
    f"{OBS}.exports.attest_deletion:reason": lambda s, t: s.as_staff(
        exports.attest_deletion, export_id=uuid4(), reason=t
    ),
    f"{OBS}.activation.open_run:reason": lambda s, t: s.as_staff(
        activation.open_run, workspace_id=s.space, mode="hash", reason=t
    ),
    f"{OBS}.activation.vouch:note": lambda s, t: activation.vouch(
        run_id=s.run, item="B10", result="pass", note=t, user_id=s.staff.pk
    ),
    f"{OBS}.activation.request_enabling:reason": lambda s, t: s.as_staff(
        activation.request_enabling, run_id=s.run, reason=t
    ),
    f"{OBS}.activation.approve:reason": lambda s, t: s.as_staff(
        activation.approve, run_id=s.run, version="", reason=t
    ),
    f"{OBS}.activation.enable:reason": lambda s, t: s.as_staff(activation.enable, run_id=s.run, reason=t),
    f"{OBS}.activation.stop:reason": lambda s, t: s.as_staff(activation.stop, run_id=s.run, reason=t),
    f"{OBS}.enrolments.enrol:reason": lambda s, t: enrolled(s, reason=t),
    f"{OBS}.enrolments.enrol:purpose": lambda s, t: enrolled(s, purpose=t),
    f"{OBS}.enrolments.enrol:consent_version": lambda s, t: enrolled(s, consent_version=t),
    f"{OBS}.enrolments.withdraw:reason": lambda s, t: s.as_staff(
        enrolments.withdraw, enrolment_id=s.as_staff(Enrolment.objects.get).pk, reason=t
    ),
    f"{OBS}.enrolments.throw_kill_switch:reason": lambda s, t: s.as_staff(
        enrolments.throw_kill_switch, workspace_id=s.space, reason=t
    ),
    f"{OBS}.enrolments.release_kill_switch:reason": lambda s, t: s.as_staff(
        enrolments.release_kill_switch, kill_switch_id=thrown(s), reason=t
    ),
    f"{OBS}.evidence.attest:note": lambda s, t: s.as_staff(
        evidence.attest, run_id=s.run, item="B10", result="pass", note=t
    ),
    f"{OBS}.evidence.record:note": lambda s, t: recorded(s, note=t),
    f"{OBS}.evidence.record:method": lambda s, t: recorded(s, method=t),
    f"{OBS}.evidence.check_note:note": lambda s, t: evidence.check_note(t),
    f"{OBS}.restore.open_gate:reason": lambda s, t: restore.open_gate(first=s.staff, second=s.root, reason=t),
    f"{OBS}.reviews.shorten:reason": lambda s, t: s.as_staff(
        journal_reviews.shorten, s.space, {"text_days": 30}, t
    ),
    f"{OBS}.staff.reveal_text:reason": lambda s, t: s.as_staff(
        journal_staff.reveal_text, observation_id=NONE, reason=t
    ),
    "Command.reason (staff)": lambda s, t: s.as_staff(
        proposals.activate_for, profile_id=s.profile, command=pointers.Command(uuid4().hex, None, t)
    ),
    "apps.core.audit.record:reason (staff)": lambda s, t: s.as_staff(
        audit.record, "tests.act", "tests.thing", 1, workspace=s.space, reason=t
    ),
}

NOT_KEPT: dict[str, Path] = {
    "SearchRequest.query": lambda s, t: observed(s, f"billing {t}"),
    "apps.traces.services.save.save_trace:query": lambda s, t: s.as_me(save, [ranked(issue(1))], query=t),
    "OutcomeRequest.reason": lambda s, t: s.as_me(confirm, t),
    "JudgmentRequest.reason": lambda s, t: s.as_me(
        judgments.record_judgment, receipt_id=receipt(s), submission=judgment(s, reason=t), annotator=None
    ),
    "ActivateRequest.reason": lambda s, t: moved(s, t),
    "apps.core.audit.record:reason": lambda s, t: s.as_me(
        audit.record, "tests.act", "tests.thing", 1, reason=t
    ),
    "apps.operations.erasure.services.begin:reason": lambda s, t: s.as_me(erasures.begin, reason=t),
}

ELSEWHERE: dict[str, str] = {
    f"{OBS}.activation.examine:query": "searched as any query is, by the SearchRequest of a probe",
    "apps.operations.alarms.services.raise_alarm:reason": "a code of the program",
    f"{LEARN}.pointers.append_transition:reason": "written by the commands of this list",
    f"{OBS}.evidence.post:note": "posted to evidence.record, and in test_activation",
    f"{OBS}.evidence.post:method": "posted to evidence.record, and in test_activation",
    "EvidencePosted.note": "posted to evidence.record, and in test_activation",
    "EvidencePosted.method": "posted to evidence.record, and in test_activation",
    "DeactivateRequest.reason": "a Command, as ActivateRequest",
    "RollbackRequest.reason": "a Command, as ActivateRequest",
    "QuerySetRequest.name": "made by make_query_set",
    "SetJudgment.query": "the id of a query of the set",
    "NodeItem.text": "a memory, which is no governed record",
    "Call.text": "of the demonstration alone",
}
