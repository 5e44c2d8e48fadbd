"""Measures the learning of ranking multipliers, beside PRME's on the same receipts.

    python -m benchmarks.learning [--receipts 5000] [--reference-python PATH]

`--reference-python` names an interpreter of an environment with `prme==0.15.0`; it then fits the same
receipts in the same run, one process after the other. Ratios are what is printed to be compared: absolute
times depend on the machine.
"""

import argparse
import hashlib
import json
import random
import resource
import subprocess
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np

from apps.learning.bootstrap import Resampling, bootstrap_interval
from apps.learning.evaluate import EvaluationInputs, evaluate
from apps.learning.fit import Fitted, PairwiseObjective, coordinate_search, pairwise_objective
from apps.learning.metrics import JudgedPool
from apps.learning.prme_inputs import evaluation_inputs
from apps.learning.receipt_set import LabelSet, ReceiptSet
from apps.learning.schemas import LearningConfig
from apps.learning.selection import select
from apps.retrieval.prme.documents import ScoreTrace, ScoringWeights
from apps.retrieval.prme.reading import iter_label_records, iter_receipts
from apps.retrieval.prme.replay import weighted_score
from tests.support.prme import PACKING
from tests.support.prme import SCORING as WEIGHTS

Result = TypeVar("Result")
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


def measure_ours(receipts: Path, labels: Path, times: int) -> float:
    """Print our times, those of `times` as many receipts too; the seconds of the fit."""
    config = LearningConfig(max_records=1_000_000)
    seconds, inputs = timed(lambda: evaluation_inputs(iter_receipts(receipts), iter_label_records(labels)))
    print(f"read, verify, replay and checksum   {seconds:8.2f} s")
    seconds, report = timed(lambda: evaluate(inputs, scopes=("project",), config=config))
    print(f"evaluation from columns             {seconds:8.2f} s   {report.decision}")
    objective = training_objective(inputs, config)
    seconds, fitted = timed(lambda: coordinate_search(objective, passes_per_step=config.passes_per_step))
    print(f"fit of all receipts                 {seconds:8.2f} s   {len(objective.winner):,} pairs")
    tracemalloc.start()
    search: Callable[[], Fitted] = lambda: coordinate_search(  # noqa: E731
        training_objective(inputs, config), passes_per_step=1
    )
    search()
    print(f"memory of the fit, peak             {tracemalloc.get_traced_memory()[1] / 2**20:8.0f} MiB")
    tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of the process, peak         {peak:8.0f} MiB   loss {fitted.loss_after:.4f}")
    if times > 1:
        measure_many(inputs, times)
    return seconds


def tiled(inputs: EvaluationInputs, times: int) -> EvaluationInputs:
    """The same receipts and labels `times` over, as other requests with other queries."""
    receipts, labels = inputs.receipts, inputs.labels
    copies, num_rows, num = range(times), len(receipts.recorded), len(receipts)
    scorer = receipts.scorer.take(np.tile(np.arange(num_rows), times))
    sizes = np.tile(np.diff(receipts.offsets), times)
    return replace(
        inputs,
        receipts=ReceiptSet(
            request_ids=tuple(f"{copy:03}-{name}" for copy in copies for name in receipts.request_ids),
            checksums=receipts.checksums * times,
            query_identities=tuple(f"{copy} {text}" for copy in copies for text in receipts.query_identities),
            scopes=receipts.scopes * times,
            formulas=receipts.formulas * times,
            contracts=receipts.contracts * times,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            recorded=np.tile(receipts.recorded, times),
            tie_group=np.tile(receipts.tie_group, times),
            tie_path=np.tile(receipts.tie_path, times),
            id_rank=np.tile(receipts.id_rank, times),
            scorer=scorer,
        ),
        labels=LabelSet(
            feedback_ids=tuple(f"{copy:03}-{name}" for copy in copies for name in labels.feedback_ids),
            record_receipt=np.concatenate([labels.record_receipt + copy * num for copy in copies]),
            record_surface=labels.record_surface * times,
            label_record=np.concatenate([labels.label_record + copy * len(labels) for copy in copies]),
            label_row=np.concatenate([labels.label_row + copy * num_rows for copy in copies]),
            label_value=np.tile(labels.label_value, times),
            label_grade=np.tile(labels.label_grade, times),
        ),
        resampling="pcg64_multiply_shift",
    )


def measure_many(inputs: EvaluationInputs, times: int) -> None:
    """An evaluation of `times` as many receipts, from columns."""
    many = tiled(inputs, times)
    config = LearningConfig(max_records=1_000_000)
    seconds, report = timed(lambda: evaluate(many, scopes=("project",), config=config))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"evaluation of {len(many.receipts):9,} receipts   {seconds:8.2f} s   {report.decision}")
    print(f"memory of the process, peak         {peak:8.0f} MiB")


def measure_bootstrap() -> None:
    """10,000 resamples over 1,000 groups, both generators."""
    gains = np.random.default_rng(0).normal(0.01, 0.1, 1000)
    for resampling in get_args(Resampling):
        seconds, _ = timed(lambda: bootstrap_interval(gains, samples=10_000, seed=42, resampling=resampling))  # noqa: B023
        print(f"bootstrap 10,000 × 1,000            {seconds:8.2f} s   {resampling}")


REFERENCE = """
import json, sys, time
from prme.models.relevance import RelevanceRecord, RetrievalReceipt
from prme.retrieval import learning
from prme.types import Scope

lines = lambda path: open(path).read().splitlines()
receipts = [RetrievalReceipt.model_validate_json(line) for line in lines(sys.argv[1])]
records = [RelevanceRecord.model_validate_json(line) for line in lines(sys.argv[2])]
fit, spent = learning._fit, []


def timed(observations, config):
    start = time.process_time()
    result = fit(observations, config)
    spent.append((time.process_time() - start) / len(observations))
    return result


learning._fit = timed
start = time.process_time()
report = learning.evaluate_learning(receipts, records, user_id="owner", scopes=[Scope("project")])
print(json.dumps({"whole": time.process_time() - start, "fit_per_receipt": spent[0],
                  "multipliers": report.multipliers.model_dump()}))
"""


def measure_reference(python: str, receipts: Path, labels: Path) -> dict[str, Any]:
    """PRME's seconds on the same files: the whole evaluation, and its fit per training receipt."""
    command = [python, "-c", REFERENCE, str(receipts), str(labels)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


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
    parser.add_argument("--times", type=int, default=20, help="also evaluate so many times the receipts")
    parser.add_argument("--reference-python", help="interpreter with prme==0.15.0")
    parser.add_argument(
        "--reference-receipts", type=int, default=500, help="PRME fits so many; its time grows linearly"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fit = measure_ours(*write_files(folder, options.receipts, options.candidates), options.times)
        measure_bootstrap()
        if options.reference_python:
            files = write_files(folder, options.reference_receipts, options.candidates)
            reference = measure_reference(options.reference_python, *files)
            theirs = reference["fit_per_receipt"] * options.receipts
            print(f"PRME's fit, scaled to as many       {theirs:8.2f} s   {theirs / fit:,.0f} × ours")
            inputs = evaluation_inputs(iter_receipts(files[0]), iter_label_records(files[1]))
            ours = evaluate(inputs, scopes=("project",)).multipliers.model_dump()
            print(f"same multipliers as PRME            {ours == reference['multipliers']}")


if __name__ == "__main__":
    main()
