"""Evaluate a full-retrieval holdout from exported pairs of receipts."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.learning.files import read_document
from apps.learning.holdout import evaluate_holdout
from apps.learning.management.evaluation_command import EvaluationCommand
from apps.learning.pairs import check_overlap, checked_pairs
from apps.learning.prme_holdout import HoldoutArguments, holdout_inputs
from apps.learning.schemas import EvaluationEvidence, HoldoutConfig, HoldoutReport
from apps.retrieval.prme.reading import iter_receipts


class Command(EvaluationCommand):
    help = (
        "Compare two arms of retrieval over PRME receipts, without the database. The trials file is a JSON "
        "object: user_id, scopes, proposal_input_checksum, memory_artifact_sha256, baseline_multipliers, "
        "candidate_multipliers, config and trials ({group_id, baseline_request_id, candidate_request_id, "
        "relevant_node_ids}). Exit 0: an improvement; 1: no improvement or insufficient data; 2: bad input."
    )
    improvement = "improved_full_retrieval"
    summary = (
        "decision",
        "failed_gates",
        "exploratory",
        "baseline_ndcg",
        "candidate_ndcg",
        "ndcg_gain",
        "ndcg_gain_interval",
        "baseline_recall",
        "candidate_recall",
        "baseline_mrr",
        "candidate_mrr",
        "regression_fraction",
        "coverage",
        "power",
        "manifest_sha256",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--receipts", required=True, type=Path, help=".jsonl or .jsonl.gz")
        parser.add_argument("--trials", required=True, type=Path, help="JSON object of the arguments")
        parser.add_argument("--config", type=Path, help="JSON object of settings, in place of the trials'")
        parser.add_argument(
            "--evaluation", type=Path, help="report of the evaluation to confirm: overlap with it is refused"
        )

    def report(self, options: dict[str, Any]) -> HoldoutReport:
        arguments = read_document(options["trials"], HoldoutArguments)
        given = options["config"]
        config = arguments.config if given is None else read_document(given, HoldoutConfig)
        inputs = holdout_inputs(iter_receipts(options["receipts"]), arguments, config)
        if options["evaluation"] is not None:
            evidence = read_document(options["evaluation"], EvaluationEvidence)
            check_overlap(
                checked_pairs(inputs),
                request_ids=evidence.receipt_checksums,
                group_ids=[query.group_id for query in evidence.queries],
            )
        return evaluate_holdout(inputs, config=config)
