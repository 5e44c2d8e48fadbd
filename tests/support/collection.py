"""A collection with a known best weighting: what is relevant is fresh, and what matches the words best is stale.

Of each question three documents speak. The stale one has all its words and is not relevant, the fresh one has some
and is, the third is neither. At the default weights the words win; with more weight on recency and less on words the
fresh document does, for every question. Nothing has a vector, so that no embedder is needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.judgments import record_judgment
from apps.graph.services import PassageItem
from apps.learning.identity import query_group_id
from apps.learning.models import Evaluation, Holdout
from apps.learning.requests import (
    EvaluationRequest,
    HoldoutRequest,
    QuerySetRequest,
    SetJudgment,
    SetQuery,
)
from apps.learning.schemas import HoldoutConfig
from apps.learning.services.evaluations import run_evaluation, start_evaluation
from apps.learning.services.holdouts import run_holdout, start_holdout
from apps.learning.services.query_sets import create_query_set
from apps.learning.split import is_validation
from apps.retrieval.identity import keyed_query_identity
from apps.retrieval.services import hash_key
from tests.support import library, memory

REPO = "conn:constructed"
STALE = timedelta(days=400)
RAISED, LOWERED = "recency", "lexical"
"""The feature that tells what is relevant, and the one that misleads."""


@dataclass(frozen=True)
class Question:
    """A query of three words of its own; `relevant` is the identity of the one document that answers it."""

    text: str
    relevant: str


@dataclass(frozen=True)
class Collection:
    """The memory's owner, questions to be searched and judged, and others that nobody searched."""

    principal: PrincipalIdentity
    judged: tuple[Question, ...]
    unseen: tuple[Question, ...]


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no task and embed no query: the collection has no vectors, and tests do a worker's work themselves."""
    monkeypatch.setattr("apps.operations.tasks_base.PlatformTask.apply_async", lambda *_, **__: None)
    for place in ("apps.search.found", "apps.learning.services.arms"):
        monkeypatch.setattr(f"{place}.embed_query", lambda text: memory.NO_VECTOR)


def build(
    principal: PrincipalIdentity,
    *,
    training: int = 22,
    validation: int = 22,
    unseen: int = 22,
    scope: str = "default",
) -> Collection:
    """Store the collection. Just so many judged questions are on each side of the split, whatever the key is."""
    with principal_session(principal):
        key = hash_key()
    room = {False: training, True: validation}
    judged: list[Question] = []
    questions = questions_in_order()
    while sum(room.values()):
        question = next(questions)
        side = is_validation(42, query_group_id(keyed_query_identity(question.text, key)), 0.3)
        if room[side]:
            room[side] -= 1
            judged.append(question)
    others = tuple(next(questions) for _ in range(unseen))
    memory.store(principal, *(item for each in (*judged, *others) for item in documents_of(each, scope)))
    return Collection(principal, tuple(judged), others)


def questions_in_order() -> Iterator[Question]:
    """Questions of words that no analyser takes for each other."""
    syllables = [a + b for a, b in product("bdfgklmnprtvz", "aou")]
    words = (f"{first}{second}{third}nok" for first, second, third in product(syllables, repeat=3))
    for number, three in enumerate(zip(words, words, words, strict=False)):
        yield Question(" ".join(three), f"fresh-{number}")


def documents_of(question: Question, scope: str) -> list[PassageItem]:
    now = clock.now()
    first, second, third = question.text.split()
    number = question.relevant.removeprefix("fresh-")

    def item(identity: str, text: str, age: timedelta) -> PassageItem:
        return PassageItem(identity=identity, text=text, repo=REPO, event_at=now - age, scope=scope)

    return [
        item(f"stale-{number}", f"{first} {second} {third} notes", STALE),
        item(question.relevant, f"{first} {second} report notes", timedelta()),
        item(f"other-{number}", f"{first} summary report notes", STALE),
    ]


def search_all(
    collection: Collection, questions: Sequence[Question] | None = None, **fields: Any
) -> list[dict[str, Any]]:
    """The answers of the front door to the judged questions (or those given), in their order."""
    asked = collection.judged if questions is None else questions
    return [library.ask(collection.principal, question.text, **fields) for question in asked]


def judge_all(
    collection: Collection,
    answers: Sequence[Mapping[str, Any]],
    questions: Sequence[Question] | None = None,
    *,
    annotator: str | None = None,
) -> list[UUID]:
    """Judge every returned document of each answer, relevant or not; the feedback ids."""
    asked = collection.judged if questions is None else questions
    ids = []
    with principal_session(collection.principal):
        for question, answer in zip(asked, answers, strict=True):
            ids.append(judge(answer, labels_of(question, answer), annotator=annotator))
    return ids


def labels_of(question: Question, answer: Mapping[str, Any]) -> dict[str, bool]:
    """What is true of each returned document: node id → relevant."""
    return {
        str(row["node_id"]): row["provenance"]["identity"] == question.relevant for row in answer["results"]
    }


def judge(
    answer: Mapping[str, Any], labels: Mapping[str, bool], *, annotator: str | None = None, **fields: Any
) -> UUID:
    """Record labels on the receipt of an answer, in the session that is open."""
    submission = JudgmentRequest(
        feedback_id=uuid4(), labels=dict(labels), surface="results", method="explicit_user", **fields
    )
    record_judgment(
        receipt_id=UUID(answer["retrieval_receipt_id"]), submission=submission, annotator=annotator
    )
    return submission.feedback_id


def query_set(
    collection: Collection,
    questions: Sequence[Question] | None = None,
    *,
    each: Callable[[Question], Mapping[str, Any]] = lambda question: {},
    **fields: Any,
) -> UUID:
    """A query set over the unseen questions, or those given; `fields` are of every query, `each` gives one's own."""
    asked = collection.unseen if questions is None else questions
    request = QuerySetRequest(
        name="constructed",
        queries=[
            SetQuery(id=question.relevant, text=question.text, **fields, **each(question))
            for question in asked
        ],
        judgments=[
            SetJudgment(query=question.relevant, repo=REPO, identity=question.relevant) for question in asked
        ],
    )
    with principal_session(collection.principal):
        return create_query_set(idempotency_key=str(uuid7()), request=request)


def evaluate(principal: PrincipalIdentity, **fields: Any) -> UUID:
    """Ask for an evaluation and do what its worker does; its id. `fields` are of the request."""
    request = EvaluationRequest.model_validate(fields, strict=False)
    with principal_session(principal):
        evaluation_id = start_evaluation(idempotency_key=str(uuid7()), request=request)
    run_evaluation(principal_id=principal.principal_id, evaluation_id=evaluation_id)
    return evaluation_id


def hold_out(principal: PrincipalIdentity, evaluation_id: UUID, set_id: UUID | None, **fields: Any) -> UUID:
    """Ask for a holdout over a query set and do what its worker does; its id."""
    given = {"evaluation_id": evaluation_id, "query_set_id": set_id} | fields
    request = HoldoutRequest.model_validate(given, strict=False)
    with principal_session(principal):
        holdout_id = start_holdout(idempotency_key=str(uuid7()), request=request)
    run_holdout(principal_id=principal.principal_id, holdout_id=holdout_id)
    return holdout_id


def stored_holdout(
    principal: PrincipalIdentity, evaluation_id: UUID, set_id: UUID | None, **fields: Any
) -> UUID:
    """The row of a holdout that nobody ran, whatever became of its evaluation; `fields` are the row's."""
    with principal_session(principal):
        evaluation = Evaluation.objects.get(pk=evaluation_id)
        usual = {
            "workspace_id": principal.workspace_id,
            "principal_id": principal.principal_id,
            "evaluation": evaluation,
            "query_set_id": set_id,
            "requested_at": clock.now(),
            "config": HoldoutConfig().model_dump(mode="json"),
            "limit": 10,
            "gate_policy_id": evaluation.gate_policy_id,
            "exploratory": False,
            "baseline_multipliers": [1.0] * 6,
            "candidate_multipliers": [1.0] * 6,
        }
        return Holdout.objects.create(**usual | fields).pk


def judged_collection(principal: PrincipalIdentity, **sizes: Any) -> Collection:
    """The collection, searched and judged."""
    collection = build(principal, **sizes)
    judge_all(collection, search_all(collection))
    return collection
