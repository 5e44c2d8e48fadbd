"""A principal that has learned: evaluations, a query set, a holdout, and profiles on a pointer that has moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.learning.models import Recheck, Verdict
from apps.learning.scorer import FEATURES
from apps.learning.services.pointers import Command
from apps.learning.services.profiles import create_profile
from apps.learning.services.proposals import approve_activation, drill_for, propose_activation, roll_back_for
from tests.support import collection
from tests.support.learning_pages import EVIDENCE
from tests.support.profiles import make_profile

FIRST = (1.2, 1.0, 0.9, 1.4, 1.0, 1.0)
SECOND = (1.0, 0.45, 0.8, 3.1, 1.0, 0.7)
THIRD = (1.0, 0.5, 1.0, 2.6, 1.15, 1.0)
SMALL = {
    "config": {"min_training_queries": 2, "min_validation_queries": 2},
    "holdout": {"min_query_groups": 2},
}


@dataclass(frozen=True)
class Learned:
    """Ids. `few` is an evaluation with too few labels; `proposal` waits for another person than `ana`."""

    evaluation: UUID
    few: UUID
    query_set: UUID
    holdout: UUID
    profile: UUID
    proposal: UUID


def learn(
    principal: PrincipalIdentity,
    ana: User,
    ben: User,
    monkeypatch: pytest.MonkeyPatch,
    *,
    sizes: Mapping[str, int] | None = None,
    small: bool = True,
    scopes: Sequence[str] | None = None,
) -> Learned:
    """Every fourth question is answered by its stale document, so that a better weighting is not better everywhere.

    `small` asks for less than the gate does, and the profile that waits stands on no evidence; otherwise it is made of
    the evaluation and the holdout, which tries it against the profile that is active.
    """
    with monkeypatch.context() as patch:
        collection.quiet(patch)
        made = collection.build(principal, **(sizes or {"training": 4, "validation": 4, "unseen": 4}))
        answers, few = collection.search_all(made), None
        for number, answer in enumerate(answers):
            _judge(principal, made.judged[number], answer, stale=number % 4 == 3)
            if number == len(answers) // 2:
                few = collection.evaluate(principal)
        assert few is not None
        evaluation = collection.evaluate(principal, **({"config": SMALL["config"]} if small else {}))
        query_set = collection.query_set(made, _some_stale(made.unseen, 5 if small else 12), slice="names")
        more: dict[str, Any] = {"config": SMALL["holdout"]}
        if not small:
            more = {"baseline_multipliers": dict(zip(FEATURES, FIRST, strict=True))}
        holdout = collection.hold_out(principal, evaluation, query_set, **more)
        collection.search_all(made, made.unseen[:3], scopes=scopes)
    evidence = None if small else (evaluation, holdout)
    profile, proposal = _pointer(principal, ana, ben, scopes, evidence)
    return Learned(evaluation, few, query_set, holdout, profile, proposal)


def _judge(
    principal: PrincipalIdentity, question: collection.Question, answer: Mapping[str, Any], *, stale: bool
) -> None:
    labels = collection.labels_of(_stale(question) if stale else question, answer)
    with principal_session(principal):
        collection.judge(answer, labels)


def _stale(question: collection.Question) -> collection.Question:
    return collection.Question(question.text, question.relevant.replace("fresh", "stale"))


def _some_stale(questions: Sequence[collection.Question], each: int) -> list[collection.Question]:
    return [_stale(one) if number % each == each - 1 else one for number, one in enumerate(questions)]


def _pointer(
    principal: PrincipalIdentity,
    ana: User,
    ben: User,
    scopes: Sequence[str] | None,
    evidence: tuple[UUID, UUID] | None,
) -> tuple[UUID, UUID]:
    """Two profiles went active and one was rolled back; a third waits, rehearsed and re-checked."""
    now = clock.now()
    with clock.frozen(now - timedelta(days=27)):
        first = make_profile(principal, FIRST, scopes=scopes, evidence=EVIDENCE)
        _activate(first, None, ana, ben, "better on unseen queries")
    with clock.frozen(now - timedelta(days=12)):
        second = make_profile(principal, SECOND, scopes=scopes, baseline=first, evidence=EVIDENCE)
        _activate(second, first, ben, ana, "confirmed on the autumn queries")
    with clock.frozen(now - timedelta(days=10)), staff_session(ana):
        command = Command("back", second, "reference pages fell too low")
        roll_back_for(profile_id=second, to=first, command=command)
    with clock.frozen(now if evidence else now - timedelta(hours=3)):
        third = _third(principal, first, scopes, evidence)
        _rechecks(principal, third)
        with staff_session(ana):
            drill_for(profile_id=third, reason="before we rely on it")
            proposal = propose_activation(
                profile_id=third, expected_active=first, reason="old issues sink, fresh ones rise"
            )
    return third, proposal.pk


def _third(
    principal: PrincipalIdentity,
    first: UUID,
    scopes: Sequence[str] | None,
    evidence: tuple[UUID, UUID] | None,
) -> UUID:
    if evidence is None:
        return make_profile(principal, THIRD, scopes=scopes, baseline=first, evidence=EVIDENCE)
    evaluation, holdout = evidence
    with principal_session(principal):
        made = create_profile(evaluation_id=evaluation, holdout_id=holdout, baseline_profile_id=first)
        return made.pk


def _activate(profile: UUID, expected: UUID | None, proposer: User, approver: User, reason: str) -> None:
    with staff_session(proposer):
        proposal = propose_activation(profile_id=profile, expected_active=expected, reason=reason)
    with staff_session(approver):
        approve_activation(
            proposal_id=proposal.pk, version=proposal.version, change_id=str(profile), reason="looked at both"
        )


def _rechecks(principal: PrincipalIdentity, profile: UUID) -> None:
    with principal_session(principal):
        for days, gain in ((2, 0.012), (1, -0.004)):
            Recheck.objects.create(
                workspace_id=principal.workspace_id,
                principal_id=principal.principal_id,
                profile_id=profile,
                checked_at=clock.now() - timedelta(days=days),
                input_sha256=f"{days}" * 64,
                verdict=Verdict.HOLDS,
                groups=24,
                ndcg_gain=gain,
                interval_low=gain - 0.01,
                interval_high=gain + 0.01,
            )
