"""How to make an object of somebody else for each route that names one by id.

A route with a path parameter stands in MAKERS (by its url name) or in NO_OWNER with the reason; the walking test
fails for one that is in neither. A maker gets the world whose object it makes, and gives the path's values.
"""

from collections.abc import Callable
from typing import Any

from apps.core.db.sessions import principal_session
from tests.support.factories import World

Maker = Callable[[World], dict[str, Any]]

MAKERS: dict[str, Maker] = {}
NO_OWNER: dict[str, str] = {}
# A well-formed body for routes that read the body before the object.
BODIES: dict[str, dict[str, Any]] = {}


def foreign(name: str) -> Callable[[Maker], Maker]:
    """Register the maker of a route."""

    def register(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return register


@foreign("trace")
@foreign("trace-uses")
@foreign("trace-outcomes")
def a_trace(world: World) -> dict[str, Any]:
    from tests.support import traces

    with principal_session(world.principal):
        return {"trace_id": traces.save([traces.ranked(traces.issue(1))]).id}


@foreign("receipt")
@foreign("receipt-replay")
@foreign("judge")
@foreign("citations")
def a_receipt(world: World) -> dict[str, Any]:
    from tests.support import library

    return {"receipt_id": library.ask(world.principal, "billing")["retrieval_receipt_id"]}


@foreign("ablations")
def a_receipt_with_a_context(world: World) -> dict[str, Any]:
    from tests.support import library

    return {
        "receipt_id": library.ask(world.principal, "billing", include_context=True)["retrieval_receipt_id"]
    }


@foreign("assessments")
def an_ablation(world: World) -> dict[str, Any]:
    from uuid import UUID

    from apps.feedback.schemas import AblationRequest
    from apps.feedback.services.ablations import ablate
    from tests.support import library

    library.store(world.principal, library.thread(1, "billing"))
    answer = library.ask(world.principal, "billing", include_context=True)
    targets = AblationRequest(node_ids=[answer["context"]["entries"][0]["node_id"]])
    with principal_session(world.principal):
        made = ablate(receipt_id=UUID(answer["retrieval_receipt_id"]), submission=targets)
    return {"ablation_id": made["ablation_id"]}


@foreign("ranking-profile")
@foreign("ranking-profile-preview")
@foreign("ranking-profile-activate")
@foreign("ranking-profile-deactivate")
@foreign("ranking-profile-rollback")
def a_profile(world: World) -> dict[str, Any]:
    from tests.support.profiles import make_profile

    return {"profile_id": make_profile(world.principal)}


@foreign("evaluation")
@foreign("evaluation-queries")
@foreign("evaluation-cancel")
def an_evaluation(world: World) -> dict[str, Any]:
    from apps.learning.requests import EvaluationRequest
    from apps.learning.services.evaluations import start_evaluation

    with principal_session(world.principal):
        return {"evaluation_id": start_evaluation(idempotency_key="k", request=EvaluationRequest())}


@foreign("query-set")
def a_query_set(world: World) -> dict[str, Any]:
    from tests.support import collection

    question = collection.Question("a word of three", "fresh")
    made = collection.Collection(world.principal, (), (question,))
    return {"query_set_id": collection.query_set(made)}


@foreign("holdout")
@foreign("holdout-queries")
@foreign("holdout-cancel")
def a_holdout(world: World) -> dict[str, Any]:
    from tests.support import collection

    evaluation_id, set_id = an_evaluation(world)["evaluation_id"], a_query_set(world)["query_set_id"]
    return {"holdout_id": collection.stored_holdout(world.principal, evaluation_id, set_id)}


SOURCE = "0" * 64
NOBODY = "00000000-0000-0000-0000-000000000000"
BODIES["trace-uses"] = {"idempotency_key": "k", "uses": [{"source_id": SOURCE, "stage": "selected"}]}
BODIES["trace-outcomes"] = {"idempotency_key": "k", "outcome": "success", "confirmation": "manual"}


@foreign("observation")
def an_observation(world: World) -> dict[str, Any]:
    from django.db import connection

    from tests.support import journal

    with principal_session(world.principal), connection.cursor() as cursor:
        return {"observation_id": journal.record(cursor, world.principal)}


@foreign("observations-erasure-certificate")
def a_certificate_of_the_journal(world: World) -> dict[str, Any]:
    from apps.observations.services import erasure

    with principal_session(world.principal):
        return {"certificate_id": erasure.begin()}


COMMAND = {"change_id": "k", "expected_active": None}
BODIES["ranking-profile-activate"] = BODIES["ranking-profile-deactivate"] = COMMAND
BODIES["ranking-profile-rollback"] = COMMAND | {"to": None}
BODIES["judge"] = {
    "feedback_id": NOBODY,
    "labels": {NOBODY: True},
    "surface": "results",
    "method": "explicit_user",
}
BODIES["citations"] = {
    "citation_id": NOBODY,
    "answer_id": "a",
    "answer_sha256": None,
    "method": "model_reported",
    "cited_node_ids": [],
}
BODIES["ablations"] = {"node_ids": ["00000000-0000-7000-8000-000000000000"]}
BODIES["assessments"] = {
    "evaluation_id": "e",
    "citation_id": "00000000-0000-7000-8000-000000000000",
    "baseline_correct": True,
    "counterfactual_correct": True,
}
BODIES["evaluation-cancel"] = BODIES["holdout-cancel"] = {}
