"""Every path by which a free text reaches a record that is governed, as whoever may take it would.

`REFUSED`: the text is refused, with its field named. `NOT_KEPT`: the call is made, and the text left out.
`ELSEWHERE`: parameters of such a name that are no path of their own, each with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import User
from jwt.algorithms import RSAAlgorithm

from apps.accounts import services as accounts
from apps.accounts.models import Principal
from apps.core import audit, clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.policies import newest_version, publish_policy
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services import judgments
from apps.feedback.services import staff as labels
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.learning.services import desk, drills, pointers, proposals
from apps.learning.services import staff as learning
from apps.observations.activation.items import ITEMS
from apps.observations.models import ActivationRun, Enrolment
from apps.observations.models.activation import Part, Result
from apps.observations.services import activation, enrolments, evidence, restore
from apps.observations.services import reviews as journal_reviews
from apps.observations.services import staff as journal_staff
from apps.operations import alarms, holds, reviews
from apps.operations.alarms.destinations import confirm_destination, rotate_secret, save_destination
from apps.operations.erasure import services as erasures
from apps.operations.models import Alarm, Destination, RetentionReview
from apps.operations.models.reviews import Decision
from apps.retrieval.services import contexts
from apps.retrieval.services import staff as imported
from apps.search.schemas import SearchRequest
from apps.search.services import search
from apps.traces.models import ReceiptKind
from apps.traces.services import staff as traces
from tests.support import collection, journal
from tests.support.activation import make_scene
from tests.support.api import Api
from tests.support.factories import World, make_staff
from tests.support.library import CHAIN, store
from tests.support.profiles import make_profile
from tests.support.traces import climb, issue, ranked, save, source_of

GRANTS = (
    "view_traces",
    "reveal_text",
    "curate",
    "review_retention",
    "manage_profiles",
    "operate_collection",
    "audit",
)
NONE = UUID(int=0)


@dataclass
class Scene:
    """A world with one person who may do all that staff may, and rows for the paths that look before they read."""

    world: World
    made: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def staff(self) -> User:
        return make_staff(self.world.workspace, *GRANTS)

    @property
    def me(self) -> PrincipalIdentity:
        return self.world.principal

    @property
    def root(self) -> User:
        return self.world.superuser

    @property
    def space(self) -> UUID:
        return self.world.workspace.pk

    def as_staff(self, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        with staff_session(self.staff):
            return call(*given, **more)

    def as_root(self, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        with staff_session(self.root):
            return call(*given, **more)

    def as_me(self, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        with principal_session(self.me):
            return call(*given, **more)

    @cached_property
    def colleague(self) -> User:
        return make_staff(self.world.workspace, *GRANTS)

    @cached_property
    def api(self) -> Api:
        return Api(self.me, "search", "feedback", "learning", "evidence", superuser=self.root)

    @cached_property
    def answer(self) -> dict[str, Any]:
        store(shared_of(self.world), *CHAIN)
        found = self.api.post("/v1/search", {"query": "billing", "corpus": "shared"}).json()
        return dict(found)

    @cached_property
    def hold(self) -> UUID:
        held = [("traces.principal", self.me.principal_id)]
        return UUID(
            str(self.as_staff(holds.place, workspace_id=self.space, reference="c", reason="r", items=held).pk)
        )

    @cached_property
    def review(self) -> RetentionReview:
        given: dict[str, Any] = {"limits": {"text_days": 30}, "next_due_at": clock.now() + journal.HOUR * 240}
        with staff_session(self.colleague):
            return reviews.decide(
                subject=journal_reviews.SUBJECT,
                workspace_id=self.space,
                decision=Decision.SHORTEN,
                reason="r",
                **given,
            )

    @cached_property
    def run(self) -> UUID:
        return make_scene(self.world).run_id

    @cached_property
    def destination(self) -> Destination:
        made = Destination(name="ops", kind="email", address="ops@alerts.test")
        return self.as_root(save_destination, destination=made, reason="r")  # type: ignore[no-any-return]

    @cached_property
    def alarm(self) -> UUID:
        alarms.raise_alarm(source="tests.source", reason="overdue")
        return Alarm.objects.get(source="tests.source").pk

    @cached_property
    def profile(self) -> UUID:
        return make_profile(self.me)

    @cached_property
    def proposal(self) -> Any:
        with staff_session(self.colleague):
            return proposals.propose_activation(profile_id=self.profile, expected_active=None, reason="r")

    @cached_property
    def token(self) -> UUID:
        with staff_session(self.root):
            owner = Principal.objects.defer("hash_key").get(pk=self.me.principal_id)
            return accounts.create_token(name="t", scopes=["search"], principal=owner).token.pk

    def publish(self, text: str) -> Any:
        before = self.as_staff(newest_version, self.space, "collection")
        return self.as_staff(
            publish_policy,
            workspace_id=self.space,
            kind="collection",
            document=journal.DEFAULT | {"mode": "off"},
            if_match=before.hash,
            reason=text,
        )


def shared_of(world: World) -> PrincipalIdentity:
    shared = world.principal.shared_principal_id
    assert shared is not None
    return PrincipalIdentity(shared, world.workspace.pk, shared)


def receipt(s: Scene) -> UUID:
    return UUID(s.answer["retrieval_receipt_id"])


def judgment(s: Scene, **more: Any) -> JudgmentRequest:
    node = s.answer["results"][0]["node_id"]
    return JudgmentRequest(
        feedback_id=uuid4(), labels={node: True}, surface="results", method="explicit_user", **more
    )


def observed(s: Scene, query: str) -> None:
    assert s.answer
    request = SearchRequest(query=query, corpus="shared")
    assert "_meta" in search(caller=s.me, request=request, verified=True).document


def confirm(reason: str) -> None:
    trace = save([ranked(issue(1))])
    source = source_of(issue(1))
    climb(trace.id, source)
    said = Outcome(ReceiptKind.CONFIRMED, reason, source_ids=(source,))
    record_outcome(trace_id=trace.id, idempotency_key=uuid4().hex, outcome=said)


def moved(s: Scene, reason: str) -> None:
    """There, and back."""
    with principal_session(s.me):
        there = pointers.Command(uuid4().hex, None, reason)
        pointers.activate_profile(profile_id=s.profile, command=there)
        back = pointers.Command(uuid4().hex, s.profile, reason)
        pointers.deactivate_profile(profile_id=s.profile, command=back)


def query_set(s: Scene, **more: Any) -> UUID:
    from apps.learning.requests import QuerySetRequest, SetJudgment, SetQuery
    from apps.learning.services.query_sets import create_query_set

    request = QuerySetRequest(
        name=more.get("name", "constructed"),
        queries=[SetQuery(id="q", text=more.get("text", "billing"))],
        judgments=[SetJudgment(query="q", repo=collection.REPO, identity="d")],
    )
    with principal_session(s.me):
        return create_query_set(idempotency_key=uuid4().hex, request=request)


def enrolled(s: Scene, **more: Any) -> Any:
    given = {"purpose": "p", "consent_version": "1", "reason": "r"} | more
    return s.as_staff(enrolments.enrol, principal_id=s.me.principal_id, **given)


def thrown(s: Scene) -> UUID:
    if "switch" not in s.made:
        s.made["switch"] = s.as_staff(enrolments.throw_kill_switch, workspace_id=s.space, reason="r").pk
    return UUID(str(s.made["switch"]))


def recorded(s: Scene, **more: Any) -> Any:
    given = {"note": "n", "method": "probe.1"} | more
    with staff_session(s.staff):
        return evidence.record(
            run=ActivationRun.objects.get(pk=s.run),
            item=ITEMS["B10"],
            part=Part.HUMAN,
            result=Result.PASS,
            measured={},
            observed_at=clock.now(),
            **given,
        )


def issuer_of(s: Scene) -> dict[str, Any]:
    if "key" not in s.made:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
        s.made["key"] = RSAAlgorithm.to_jwk(key, as_dict=True) | {"kid": "k", "alg": "RS256", "use": "sig"}
    return {
        "workspace": s.space,
        "iss": f"https://{uuid4().hex}.test",
        "audience": "a",
        "subject_prefix": "oidc:x#",
        "algorithms": ["RS256"],
        "scopes": ["search"],
        "pinned_keys": [s.made["key"]],
    }


def an_issuer(s: Scene) -> UUID:
    if "issuer" not in s.made:
        s.made["issuer"] = s.as_root(accounts.create_issuer, **issuer_of(s), reason="r").pk
    return UUID(str(s.made["issuer"]))


def disabled(s: Scene) -> UUID:
    """Another principal, who is shut out."""
    if "disabled" not in s.made:
        made = s.as_staff(accounts.create_principal, workspace=s.space, subject="token:out", reason="r")
        s.made["disabled"] = s.as_staff(accounts.disable_principal, made.pk, reason="r").pk
    return UUID(str(s.made["disabled"]))


def inactive(s: Scene) -> int:
    if "inactive" not in s.made:
        s.made["inactive"] = s.as_root(
            accounts.deactivate_staff, make_staff(s.world.workspace).pk, reason="r"
        ).pk
    return int(s.made["inactive"])


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
