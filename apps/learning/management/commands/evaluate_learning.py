"""Evaluate a ranking proposal from exported receipts and labels."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.learning.evaluate import evaluate
from apps.learning.files import read_document, read_names
from apps.learning.identity import scope_key
from apps.learning.management.evaluation_command import EvaluationCommand
from apps.learning.prme_inputs import evaluation_inputs
from apps.learning.schemas import EvaluationReport, LearningConfig
from apps.retrieval.prme.reading import iter_label_records, iter_receipts


class Command(EvaluationCommand):
    help = (
        "Fit ranking multipliers to labels on PRME receipts and judge them on unseen queries, without the "
        "database. Files are .jsonl or .jsonl.gz. Exit 0: an improvement; 1: no improvement or insufficient "
        "data; 2: bad input."
    )
    improvement = "improved_on_observed_candidates"
    summary = (
        "decision",
        "multipliers",
        "training_loss_before",
        "training_loss_after",
        "validation_ndcg_gain",
        "validation_pairwise_gain",
        "validation_gain_interval",
        "coverage",
        "exclusions",
        "power",
        "label_plan",
        "manifest_sha256",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--receipts", required=True, type=Path)
        parser.add_argument("--labels", required=True, type=Path)
        parser.add_argument("--scopes", help="comma-separated; left out: requests without a scope filter")
        parser.add_argument("--surface", choices=("results", "context"), default="results")
        parser.add_argument("--user", help="owner of all inputs; left out: that of the receipts")
        parser.add_argument("--query-groups", type=Path, help="JSON object from request id to group name")
        parser.add_argument("--config", type=Path, help="JSON object of settings")

    def report(self, options: dict[str, Any]) -> EvaluationReport:
        config, groups, scopes = options["config"], options["query_groups"], options["scopes"]
        settings = LearningConfig() if config is None else read_document(config, LearningConfig)
        inputs = evaluation_inputs(
            iter_receipts(options["receipts"]),
            iter_label_records(options["labels"]),
            query_groups=None if groups is None else read_names(groups),
            owner=options["user"],
        )
        return evaluate(
            inputs,
            scopes=None if scopes is None else scope_key([scope.strip() for scope in scopes.split(",")]),
            surface=options["surface"],
            config=settings,
        )
