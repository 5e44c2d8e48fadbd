"""Measures a full-retrieval holdout beside the bare retrievals that it is made of, and searches beside an evaluation.

    python -m benchmarks.learning.holdout [--nodes 10000] [--queries 200] [--judged 60]

Embeddings are given, so that no model is measured. Processor time (Python and the connection's process of PostgreSQL)
stands beside each time, since other work on the machine lengthens times more than it lengthens that.
"""

import argparse
import os
import subprocess
import sys
from typing import Any
from uuid import UUID, uuid4

from benchmarks.bounds import Bound, report
from benchmarks.corpora import LIMIT, Texts, fill, without_vector_index
from benchmarks.database import analyze, own_database
from benchmarks.measuring import measured, median, timed
from benchmarks.search import front_door

REPO = "conn:upload"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--judged", type=int, default=60)
    parser.add_argument(
        "--evaluate-for", type=UUID, help="evaluate again and again for a principal, until killed"
    )
    options = parser.parse_args()
    with own_database():
        if options.evaluate_for:
            evaluate_on(options.evaluate_for)
        report(run(options))


def run(options: argparse.Namespace) -> list[Bound]:
    from apps.learning.services import arms
    from benchmarks.worlds import principal, workspace

    texts = Texts(seed=11)
    me = principal(workspace("holdout-benchmark"), "token:me")
    with without_vector_index():
        fill(me, options.nodes, texts)
    requests = [texts.request() for _ in range(options.queries + options.judged)]
    given = {request.query: request.embedding for request in requests}
    vars(arms)["embed_query"] = given.__getitem__
    unseen, judged = requests[: options.queries], requests[options.queries :]
    receipts = search_all(me, judged)
    judge(me, receipts)
    analyze()
    return [*holdout(me, unseen), beside_an_evaluation(me, judged)]


def search_all(me: Any, requests: list[Any]) -> list[UUID]:
    """Search each, and answer with the ids of the receipts."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.models import Receipt

    call = front_door(me, requests)
    for request in requests:
        call(request)
    with principal_session(me):
        return list(Receipt.objects.filter(mode="search").order_by("id").values_list("pk", flat=True))


def judge(me: Any, receipts: list[UUID]) -> None:
    """One relevant and one not relevant row of each."""
    from apps.core.db.sessions import principal_session
    from apps.feedback.schemas import JudgmentRequest
    from apps.feedback.services.judgments import record_judgment
    from apps.retrieval.models import Receipt

    with principal_session(me):
        for number, row in enumerate(Receipt.objects.filter(pk__in=receipts).order_by("id")):
            first, second = (str(node) for node in row.node_ids[:2])
            submission = JudgmentRequest(
                feedback_id=uuid4(),
                labels={first: number % 3 != 0, second: number % 3 == 0},
                surface="results",
                method="explicit_user",
            )
            record_judgment(receipt_id=row.pk, submission=submission)


def holdout(me: Any, requests: list[Any]) -> list[Bound]:
    """A whole holdout against twice its retrievals."""
    from apps.core.db.sessions import principal_session
    from apps.learning.models import HoldoutResult
    from apps.learning.requests import HoldoutRequest, QuerySetRequest, SetJudgment, SetQuery
    from apps.learning.services.holdouts import run_holdout, start_holdout
    from apps.learning.services.query_sets import create_query_set

    evaluation = evaluated(me)
    names = [str(number) for number in range(len(requests))]
    asked = QuerySetRequest(
        name="benchmark",
        queries=[
            SetQuery(id=name, text=request.query) for name, request in zip(names, requests, strict=True)
        ],
        judgments=[SetJudgment(query=name, repo=REPO, identity=name) for name in names],
    )
    with principal_session(me):
        query_set = create_query_set(idempotency_key=str(uuid4()), request=asked)
        wanted = HoldoutRequest(evaluation_id=evaluation, query_set_id=query_set)
        holdout_id = start_holdout(idempotency_key=str(uuid4()), request=wanted)
    bare = measured(lambda _: retrieved(me, requests), [0, 1])  # the first warms
    spent = measured(lambda _: run_holdout(principal_id=me.principal_id, holdout_id=holdout_id), [0])
    with principal_session(me):
        decision = HoldoutResult.objects.get(holdout_id=holdout_id).decision
    least = 2 * min(bare.times)
    whole = f"holdout of {len(requests)} queries, both arms, stored ({decision})"
    overhead = 100 * (spent.p50 / least - 1)
    of_processor = 100 * (spent.processor / (2 * bare.processor) - 1)
    return [
        Bound(whole, "–", f"{spent.p50 / 1000:.2f} s, its retrievals alone {least / 1000:.2f} s"),
        Bound(
            "its overhead over them",
            "≤ 10 %",
            f"{overhead:.1f} %, of processor time {of_processor:.1f} %",
            overhead <= 10,
        ),
    ]


def evaluated(me: Any) -> UUID:
    from apps.core.db.sessions import principal_session
    from apps.learning.requests import EvaluationRequest
    from apps.learning.services.evaluations import run_evaluation, start_evaluation

    config = {"min_training_queries": 2, "min_validation_queries": 2}
    request = EvaluationRequest.model_validate({"config": config}, strict=False)
    with principal_session(me):
        evaluation = start_evaluation(idempotency_key=str(uuid4()), request=request)
    run_evaluation(principal_id=me.principal_id, evaluation_id=evaluation)
    return evaluation


def retrieved(me: Any, requests: list[Any]) -> None:
    """Every query once, in one session, as an arm of a holdout asks it."""
    from dataclasses import replace

    from apps.core.db.sessions import principal_session
    from apps.retrieval.retrieve import retrieve

    with principal_session(me):
        for request in requests:
            assert not retrieve(replace(request, limit=10)).partial


def evaluate_on(principal_id: UUID) -> None:
    """What a worker does while the web serves: one evaluation after the other."""
    from apps.core.db.sessions import identity_of

    me = identity_of(principal_id)
    while True:
        evaluated(me)
        print("evaluated", flush=True)


def beside_an_evaluation(me: Any, requests: list[Any]) -> Bound:
    """Searches of one client while another process evaluates again and again, as a worker beside the web would."""
    search = front_door(me, requests)
    alone = timed(search, requests * 2)
    command = [sys.executable, "-m", "benchmarks.learning.holdout", "--evaluate-for", str(me.principal_id)]
    environ = os.environ | {"MEMORY_BENCH_DATABASE": "given"}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as worker:
        try:
            assert worker.stdout is not None
            worker.stdout.readline()  # it has begun
            beside = timed(search, requests * 2)
        finally:
            worker.kill()
    ratio = median(beside) / median(alone)
    return Bound(
        f"p50 of a search of {LIMIT} rows while an evaluation runs ÷ without",
        "≤ 1.20",
        f"{ratio:.2f} ({median(beside):.1f} and {median(alone):.1f} ms)",
        ratio <= 1.2,
    )


if __name__ == "__main__":
    main()
