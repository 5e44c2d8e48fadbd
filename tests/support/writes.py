"""Who writes free texts, and what the paths of `tests.support.write_paths` write on."""

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
from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.policies import newest_version, publish_policy
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.learning.requests import SetJudgment, SetQuery
from apps.learning.services import pointers, proposals
from apps.learning.services.query_sets import make_query_set
from apps.observations.activation.items import ITEMS
from apps.observations.models import ActivationRun
from apps.observations.models.activation import Part, Result
from apps.observations.services import enrolments, evidence
from apps.observations.services import reviews as journal_reviews
from apps.operations import alarms, holds, reviews
from apps.operations.alarms.destinations import save_destination
from apps.operations.models import Alarm, Destination, RetentionReview
from apps.operations.models.reviews import Decision
from apps.search.schemas import SearchRequest
from apps.search.services import search
from apps.traces.models import ReceiptKind
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


def query_set(s: Scene, name: str = "constructed", text: str = "billing") -> UUID:
    with principal_session(s.me):
        return make_query_set(
            name=name,
            queries=[SetQuery(id="q", text=text)],
            judgments=[SetJudgment(query="q", repo=collection.REPO, identity="d")],
            source="api",
        ).pk


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
