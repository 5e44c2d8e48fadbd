"""Measures learning over receipts that are stored: read from the database, verified, fitted, judged.

    python -m benchmarks.learning.stored [--receipts 5000] [--candidates 15] [--reference-python PATH]

Receipts are written by the service that searches use, of rows with random features; half of each one's candidates
are judged by a preference that the default weights do not have.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid4

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.bounds import report as report_rows
from benchmarks.database import analyze, own_database

Result = TypeVar("Result")
PREFERENCE = np.array([0.2, 0.6, 0.0, 0.2, 0.0, 0.0])
QUERY_SET = UUID(int=1)
RESULTS: Literal["results"] = "results"
BATCH = 1000
REFERENCE_RECEIPTS = 500
LIMITS: dict[int, tuple[int, int | None]] = {5_000: (2, None), 100_000: (40, 2048)}
"""Seconds and MiB that are asked, by number of receipts."""


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds by the clock on the wall, the database's part included, and the result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def fill(identity: Any, count: int, candidates: int) -> list[UUID]:
    """Ids of `count` stored receipts, a sixth of which was made under multipliers."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.services import save_receipt

    draw = random.Random(7)
    ids = []
    for start in range(0, count, BATCH):
        with principal_session(identity):
            ids += [
                save_receipt(new=_receipt(draw, number, candidates))
                for number in range(start, min(start + BATCH, count))
            ]
    return ids


def _receipt(draw: random.Random, number: int, candidates: int) -> Any:
    from apps.core import clock
    from apps.graph.embedders import QueryEmbedding
    from apps.retrieval.policy import ScoringPolicy, reference
    from apps.retrieval.receipts.document import NewReceipt
    from apps.retrieval.schemas import Retrieval, RetrievalRequest
    from apps.retrieval.scoring import applied_weights

    policy, now = ScoringPolicy(), clock.now()
    weights = applied_weights(policy, {"lexical": 2.0} if number % 6 == 0 else None)
    rows = [_row(draw, weights, now) for _ in range(candidates)]
    rows.sort(key=lambda row: (-row.score, -row.path_score, row.node_id.int))
    request = RetrievalRequest(f"stored question {number}", QueryEmbedding("empty"), now, limit=candidates)
    found = Retrieval(
        rows=tuple(rows),
        scored=candidates,
        omitted=0,
        channels=(),
        weights=weights,
        policy=reference(policy),
        corpus_digest="0" * 64,
        embedder=None,
        analyser="words-1",
        query_groups=1,
        groups_used=1,
    )
    return NewReceipt(request, found, now, query_set_id=QUERY_SET, query_name=f"q{number}")


def _row(draw: random.Random, weights: Any, now: Any) -> Any:
    from apps.retrieval.schemas import Adjustment, Features, Provenance, Raw, Row
    from apps.retrieval.scoring import SESSION_DECAY, score_of

    features, raw = Features(*(draw.random() for _ in range(6))), Raw(bm25=1.0, lexical_rank=1)
    steps: tuple[Adjustment, ...] = (Adjustment("epistemic", draw.choice((1.0, 0.9, 0.7))),)
    if draw.random() < 0.2:
        steps += (Adjustment(SESSION_DECAY, 0.8, uuid4()),)
    return Row(
        node_id=UUID(int=draw.getrandbits(128)),
        rank=0,
        score=score_of(
            formula="weighted", applied=weights.applied, features=features, raw=raw, adjustments=steps
        ),
        path_score=draw.choice((1, 2)),
        features=features,
        raw=raw,
        adjustments=steps,
        kind="passage",
        subkind=None,
        title="",
        content="text",
        provenance=Provenance(None, None, None, None),
        epistemic="observed",
        scope="default",
        path=None,
        slug=None,
        url=None,
        number=None,
        state=None,
        labels=(),
        milestone=None,
        assignee=None,
        session=None,
        position=None,
        event_at=None,
        updated_at=now,
        shared=False,
    )


def labels_of(receipts: Any, seed: int = 3) -> Any:
    """One record a receipt, which judges a random half of its candidates."""
    from apps.learning.receipt_set import NO_GRADE, LabelSet

    generator = np.random.default_rng(seed)
    rows = np.sort(generator.permutation(len(receipts.recorded))[: len(receipts.recorded) // 2])
    appeal = PREFERENCE @ receipts.scorer.features[:, rows] + generator.normal(0, 0.1, len(rows))
    count = len(receipts)
    return LabelSet(
        feedback_ids=tuple(f"{number:08}" for number in range(count)),
        record_receipt=np.arange(count),
        record_surface=(RESULTS,) * count,
        label_record=receipts.receipt_of_row[rows],
        label_row=rows,
        label_value=appeal > 0.5,
        label_grade=np.full(len(rows), NO_GRADE, dtype=np.int8),
    )


def measure(identity: Any, ids: list[UUID]) -> tuple[float, list[Bound]]:
    """The seconds of reading with the evaluation, and its rows."""
    from apps.core.db.sessions import principal_session
    from apps.learning.evaluate import EvaluationInputs, evaluate
    from apps.learning.native_receipts import load_receipt_set
    from apps.learning.schemas import LearningConfig
    from apps.retrieval.policy import SCORER_CONTRACT

    def load() -> Any:
        with principal_session(identity):
            return load_receipt_set(ids)

    reading, receipts = timed(load)
    labels = labels_of(receipts)

    def whole() -> Any:
        inputs = EvaluationInputs(
            "owner", load(), labels, {}, "0" * 64, SCORER_CONTRACT, "pcg64_multiply_shift"
        )
        return evaluate(inputs, scopes=None, config=LearningConfig(max_records=1_000_000))

    seconds, report = timed(whole)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(receipts)
    limit, most = LIMITS.get(count, (None, None))
    rows = [
        Bound(
            f"reading, verifying, replaying {count:,} stored",
            "–",
            f"{reading:.2f} s, {count / reading:,.0f} a second",
        ),
        Bound(
            f"evaluation of {count:,} stored, read included",
            f"≤ {limit} s" if limit else "–",
            f"{seconds:.2f} s, {report.decision}",
            seconds <= limit if limit else None,
        ),
        Bound(
            "memory of that process, peak",
            f"≤ {most:,} MB" if most else "–",
            f"{peak:,.0f} MiB",
            peak <= most if most else None,
        ),
    ]
    return seconds, rows


def beside_reference(python: str, *, seconds: float, count: int) -> list[Bound]:
    """PRME's evaluation of fewer receipts of the same shape, scaled to as many; its processor time grows linearly."""
    from benchmarks.learning import reference
    from benchmarks.learning.fitting import write_files

    with tempfile.TemporaryDirectory() as folder:
        theirs = reference.measure(python, *write_files(Path(folder), REFERENCE_RECEIPTS, 15))
    ratio = theirs["whole_per_receipt"] * count / seconds
    return [Bound("PRME's evaluation of as many ÷ ours", "≥ 30", f"{ratio:,.0f}", ratio >= 30)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--receipts", type=int, default=5000)
    parser.add_argument("--candidates", type=int, default=15)
    parser.add_argument("--reference-python", help="interpreter with prme==0.15.0")
    options = parser.parse_args()
    with own_database():
        from benchmarks.worlds import principal, workspace

        identity = principal(workspace("stored"), "token:benchmark")
        ids = fill(identity, options.receipts, options.candidates)
        analyze()
        seconds, rows = measure(identity, ids)
    if options.reference_python:
        rows += beside_reference(options.reference_python, seconds=seconds, count=options.receipts)
    report_rows(rows)


if __name__ == "__main__":
    main()
