"""Measures the fit of ranking multipliers and the bootstrap, from columns, beside PRME's fit of the same receipts.

    python -m benchmarks.learning.fitting [--receipts 5000] [--reference-python PATH]

`--reference-python` names an interpreter of an environment with `prme==0.15.0`, which fits in the same run, one
process after the other. Times are processor seconds.
"""

import argparse
import hashlib
import json
import random
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import django
import numpy as np

import memory_platform  # noqa: F401  names the settings

django.setup()  # receipts and policies are read by modules that know the models; no database is asked

from apps.learning.bootstrap import Resampling, bootstrap_interval
from apps.learning.evaluate import EvaluationInputs, evaluate
from apps.learning.fit import PairwiseObjective, coordinate_search, pairwise_objective
from apps.learning.metrics import JudgedPool
from apps.learning.prme_inputs import evaluation_inputs
from apps.learning.schemas import LearningConfig
from apps.learning.selection import select
from apps.retrieval.prme.documents import ScoreTrace, ScoringWeights
from apps.retrieval.prme.reading import iter_label_records, iter_receipts
from apps.retrieval.prme.replay import weighted_score
from benchmarks.bounds import Bound
from benchmarks.bounds import report as report_rows
from benchmarks.learning import reference
from tests.support.prme import PACKING
from tests.support.prme import SCORING as WEIGHTS

Result = TypeVar("Result")
NATIVE_RESAMPLING = "pcg64_multiply_shift"
# A preference behind the labels that the configured weights do not have.
PREFERENCE = {"semantic_similarity": 0.2, "lexical_relevance": 0.6, "recency_factor": 0.2}


def synthetic_receipts(count: int, candidates: int, seed: int) -> Iterator[tuple[str, str]]:
    """Lines of (receipt of version 2, label record): random features, half of the candidates judged."""
    generator = random.Random(seed)
    weights = ScoringWeights.model_validate(WEIGHTS)
    for number in range(count):
        rows = sorted(
            (_candidate(generator, weights) for _ in range(candidates)),
            key=lambda row: (-row["trace"]["composite_score"], -row["trace"]["path_score"], row["node_id"]),
        )
        receipt = json.dumps(_receipt(generator, number, rows), separators=(",", ":"))
        yield receipt, json.dumps(_record(generator, receipt, rows), separators=(",", ":"))


def _candidate(generator: random.Random, weights: ScoringWeights) -> dict[str, Any]:
    names = ("semantic_similarity", "lexical_relevance", "graph_proximity", "recency_factor", "salience")
    # Six decimals and never tiny, so that every JSON writer spells the numbers alike.
    trace = {name: round(0.001 + 0.998 * generator.random(), 6) for name in (*names, "confidence")}
    trace |= {
        "epistemic_weight": generator.choice((1.0, 0.9, 0.7)),
        "path_score": generator.choice((1 / 3, 2 / 3, 1.0)),
        "temporal_affinity": 0.0,
        "node_type_boost": generator.choice((1.0, 1.15)),
        "composite_score": 0.0,
    }
    trace["composite_score"] = weighted_score(ScoreTrace.model_validate(trace), weights)
    return {"node_id": str(uuid.UUID(int=generator.getrandbits(128))), "trace": trace}


def _receipt(generator: random.Random, number: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "request_id": str(uuid.UUID(int=generator.getrandbits(128))),
        "user_id": "owner",
        "query": f"synthetic question {number}",
        "reference_time": "2026-11-01T00:00:00Z",
        "scopes": ["project"],
        "scoring": WEIGHTS,
        "packing": PACKING,
        "context_sha256": "0" * 64,
        "min_score": None,
        "result_limit": None,
        "retrieval_mode": "default",
        "time_from": None,
        "time_to": None,
        "candidates": [
            {
                "node_id": row["node_id"],
                "scope": "project",
                "content_sha256": "0" * 64,
                "score": row["trace"]["composite_score"],
                "trace": row["trace"],
                "reranker_score": None,
                "representation": None,
                "token_cost": 0,
                "in_context": False,
                "has_content": False,
            }
            for row in rows
        ],
        "score_provenance": {
            row["node_id"]: {
                "formula_version": 1,
                "base_node_id": row["node_id"],
                "trace": row["trace"],
                "weights": WEIGHTS,
                "adjustments": [],
            }
            for row in rows
        },
        "ranking_policy": "score_path_id",
    }


def _record(generator: random.Random, receipt: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    judged = generator.sample(rows, len(rows) // 2)
    appeal = {
        row["node_id"]: sum(share * row["trace"][name] for name, share in PREFERENCE.items())
        for row in judged
    }
    middle = sorted(appeal.values())[len(appeal) // 2]
    return {
        "feedback_id": str(uuid.UUID(int=generator.getrandbits(128))),
        "request_id": json.loads(receipt)["request_id"],
        "labels": {node_id: value + generator.gauss(0, 0.1) > middle for node_id, value in appeal.items()},
        "surface": "results",
        "method": "structured_evaluation",
        "schema_version": 1,
        "user_id": "owner",
        "recorded_at": "2026-11-01T00:00:00Z",
        "receipt_checksum": hashlib.sha256(receipt.encode()).hexdigest(),
    }


def timed(run: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds that one call took, and its result: another process on the machine does not count."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def training_objective(inputs: EvaluationInputs, config: LearningConfig) -> PairwiseObjective:
    """The loss over all requests as if every query trained, to measure the fit alone."""
    selection = select(
        inputs.receipts,
        inputs.labels,
        scopes=("project",),
        surface="results",
        contract=inputs.scorer_contract,
        max_pairs_per_request=config.max_pairs_per_request,
    )
    pool: JudgedPool = selection.pool
    return pairwise_objective(
        inputs.receipts.scorer.take(selection.rows),
        pool,
        np.arange(pool.num_requests),
        margin_scale=config.margin_scale,
        regularization=config.regularization,
    )


def measure_ours(receipts: Path, labels: Path) -> tuple[float, list[Bound]]:
    """The seconds of the fit of all receipts, and what was measured beside it."""
    config = LearningConfig(max_records=1_000_000)
    reading, inputs = timed(lambda: evaluation_inputs(iter_receipts(receipts), iter_label_records(labels)))
    evaluating, report = timed(lambda: evaluate(inputs, scopes=("project",), config=config))
    objective = training_objective(inputs, config)
    fitting, _ = timed(lambda: coordinate_search(objective, passes_per_step=config.passes_per_step))
    tracemalloc.start()
    coordinate_search(training_objective(inputs, config), passes_per_step=1)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    count = len(inputs.receipts)
    return fitting, [
        Bound(f"reading, verifying, replaying {count:,} receipts from files", "–", f"{reading:.2f} s"),
        Bound(f"evaluation of {count:,} from columns", "–", f"{evaluating:.2f} s, {report.decision}"),
        Bound(f"fit of {count:,} receipts", "–", f"{fitting:.2f} s, {len(objective.winner):,} pairs"),
        Bound("memory of the fit, peak", "≤ 300 MB", f"{peak:.0f} MiB", peak <= 300),
    ]


def measure_bootstrap() -> list[Bound]:
    """10,000 resamples over 1,000 groups, both generators; the bound is the native one's."""
    gains = np.random.default_rng(0).normal(0.01, 0.1, 1000)
    rows = []
    for resampling in get_args(Resampling):
        seconds, _ = timed(partial(bootstrap_interval, gains, samples=10_000, seed=42, resampling=resampling))
        native = resampling == NATIVE_RESAMPLING
        what = f"10,000 resamples over 1,000 groups, {resampling}"
        rows.append(
            Bound(what, "≤ .3 s" if native else "–", f"{seconds:.2f} s", seconds <= 0.3 if native else None)
        )
    return rows


def beside_reference(python: str, receipts: Path, labels: Path, *, fit: float, count: int) -> list[Bound]:
    """Its fit scaled to as many receipts (it grows linearly), and whether it finds the same multipliers."""
    theirs = reference.measure(python, receipts, labels)
    ratio = theirs["fit_per_receipt"] * count / fit
    inputs = evaluation_inputs(iter_receipts(receipts), iter_label_records(labels))
    ours = evaluate(inputs, scopes=("project",)).multipliers.model_dump()
    same = ours == theirs["multipliers"]
    return [
        Bound("PRME's fit of as many ÷ ours", "≥ 150", f"{ratio:,.0f}", ratio >= 150),
        Bound("multipliers of both", "equal", "equal" if same else "differ", same),
    ]


def write_files(folder: Path, count: int, candidates: int) -> tuple[Path, Path]:
    """Synthetic receipts and labels as files."""
    receipts, labels = folder / f"receipts-{count}.jsonl", folder / f"labels-{count}.jsonl"
    with receipts.open("w") as receipt_file, labels.open("w") as label_file:
        for receipt, record in synthetic_receipts(count, candidates, seed=7):
            receipt_file.write(receipt + "\n")
            label_file.write(record + "\n")
    return receipts, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--receipts", type=int, default=5000)
    parser.add_argument("--candidates", type=int, default=15)
    parser.add_argument("--reference-python", help="interpreter with prme==0.15.0")
    parser.add_argument(
        "--reference-receipts", type=int, default=500, help="PRME fits so many; its time grows linearly"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit, rows = measure_ours(*write_files(folder, options.receipts, options.candidates))
        rows += measure_bootstrap()
        if options.reference_python:
            files = write_files(folder, options.reference_receipts, options.candidates)
            rows += beside_reference(options.reference_python, *files, fit=fit, count=options.receipts)
    report_rows(rows)


if __name__ == "__main__":
    main()
