"""The commands over files: what they print and how they exit."""

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from apps.learning.management.commands.evaluate_holdout import Command as EvaluateHoldout
from apps.learning.management.commands.evaluate_learning import Command as EvaluateLearning
from apps.retrieval.management.commands.replay_receipts import Command as ReplayReceipts
from tests.support import judged_data
from tests.support.prme import dump, make_receipt, make_record

FEATURES = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7))


def run(command: BaseCommand, *arguments: object) -> tuple[int, str]:
    """Exit code and what was printed."""
    out = StringIO()
    try:
        call_command(command, *map(str, arguments), stdout=out, stderr=StringIO())
    except SystemExit as exit_:
        return int(str(exit_.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """One receipt and one record on it."""
    receipt = make_receipt(FEATURES, query="a private question")
    receipts, labels = tmp_path / "receipts.jsonl", tmp_path / "labels.jsonl.gz"
    receipts.write_bytes(dump(receipt) + b"\n")
    labels.write_bytes(gzip.compress(make_record(receipt, {0: True, 1: False}) + b"\n"))
    return receipts, labels


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_an_improvement_exits_0_and_prints_the_reference_fields(tmp_path: Path) -> None:
    folder = judged_data("prme") / "weighted-v12"
    given = json.loads((folder / "inputs.json").read_bytes())
    code, out = run(
        EvaluateLearning(),
        *("--receipts", folder / "receipts.jsonl.gz"),
        *("--labels", folder / "records.jsonl.gz"),
        *("--scopes", "project"),
        *("--query-groups", write(tmp_path / "groups.json", given["query_groups"])),
        *("--config", write(tmp_path / "config.json", given["config"])),
        "--json",
    )
    report, theirs = json.loads(out), json.loads((folder / "report.json").read_bytes())
    assert code == 0
    assert set(theirs) - {"schema_version"} < set(report)
    assert report["input_checksum"] == theirs["input_checksum"]
    assert report["multipliers"] == pytest.approx(theirs["multipliers"], abs=1e-4)


def test_another_decision_exits_1(files: tuple[Path, Path]) -> None:
    code, out = run(EvaluateLearning(), "--receipts", files[0], "--labels", files[1], "--scopes", "project")
    assert code == 1
    assert "decision: insufficient_data" in out
    folder = judged_data("prme") / "holdout"
    arguments = ("--receipts", folder / "receipts.jsonl.gz", "--trials", folder / "inputs.json")
    code, out = run(EvaluateHoldout(), *arguments, "--json")
    assert code == 1
    assert json.loads(out)["decision"] == "no_improvement"
    assert json.loads(out)["exploratory"] is True


def test_bad_input_exits_2_without_repeating_it(files: tuple[Path, Path], tmp_path: Path) -> None:
    receipts, labels = files
    groups = write(tmp_path / "groups.json", {"unknown": "name"})
    config = write(tmp_path / "config.json", {"seed": "x"})
    spoiled = tmp_path / "spoiled.jsonl"
    spoiled.write_bytes(receipts.read_bytes().replace(b"private", b"altered"))
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(labels.read_bytes()[:-12])
    for arguments, says in (
        (("--receipts", tmp_path / "none.jsonl", "--labels", labels), "none.jsonl"),
        (("--receipts", tmp_path, "--labels", labels), tmp_path.name),
        (("--receipts", labels, "--labels", labels), "labels.jsonl.gz line 1"),
        (("--receipts", receipts, "--labels", receipts), "receipts.jsonl line 1"),
        (("--receipts", spoiled, "--labels", labels), "conflicting_identity"),
        (("--receipts", receipts, "--labels", cut), "cut.jsonl.gz: the file is not a whole gzip archive"),
        (("--receipts", receipts, "--labels", labels, "--query-groups", groups), "unknown_reference"),
        (("--receipts", receipts, "--labels", labels, "--config", config), "config.json"),
        (("--receipts", receipts, "--labels", labels, "--config", tmp_path / "none.json"), "none.json"),
        (("--receipts", receipts, "--labels", labels, "--user", "another"), "foreign_input"),
    ):
        code, message = run(EvaluateLearning(), *arguments)
        assert code == 2, arguments
        assert says in message, message
        assert "private" not in message
    code, message = run(EvaluateHoldout(), "--receipts", receipts, "--trials", config)
    assert (code, "config.json" in message) == (2, True)


def test_overlap_with_an_evaluation_is_bad_input(tmp_path: Path) -> None:
    folder = judged_data("prme") / "holdout"
    given = json.loads((folder / "inputs.json").read_bytes())
    overlapping = {
        "receipt_checksums": {given["trials"][0]["baseline_request_id"]: "0" * 64},
        "queries": [],
        "more": 1,
    }
    report = write(tmp_path / "report.json", overlapping)
    arguments = ("--receipts", folder / "receipts.jsonl.gz", "--trials", folder / "inputs.json")
    code, message = run(EvaluateHoldout(), *arguments, "--evaluation", report)
    assert code == 2
    assert message.startswith("overlap")
    other = judged_data("prme") / "weighted-v2" / "report.json"
    assert run(EvaluateHoldout(), *arguments, "--evaluation", other)[0] == 1


def test_replay_counts_and_exits_by_drift(files: tuple[Path, Path], tmp_path: Path) -> None:
    receipts = files[0]
    code, out = run(ReplayReceipts(), "--file", receipts, "--json")
    assert (code, json.loads(out)) == (
        0,
        {"receipts": 1, "replayed": 1, "not_replayable": 0, "drifted": 0, "refused": 0},
    )
    drifted = make_receipt(FEATURES)
    drifted["candidates"][0]["score"] += 1e-12
    legacy = make_receipt(FEATURES, version=1)
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b"\n".join([dump(drifted), dump(legacy), b"{}", receipts.read_bytes()]))
    code, out = run(ReplayReceipts(), "--file", path, "--json")
    assert code == 1
    assert json.loads(out) == {"receipts": 4, "replayed": 1, "not_replayable": 1, "drifted": 1, "refused": 1}
    path.write_bytes(b"{}\n")
    assert run(ReplayReceipts(), "--file", path)[0] == 2
    assert run(ReplayReceipts(), "--file", tmp_path / "none.jsonl")[0] == 2


def test_a_stored_line_is_read_with_its_checksum(tmp_path: Path) -> None:
    raw = dump(make_receipt(FEATURES)).decode()
    path = tmp_path / "stored.jsonl"
    path.write_text(json.dumps({"receipt": raw, "checksum": "0" * 64}))
    code, out = run(ReplayReceipts(), "--file", path, "--json")
    assert code == 2
    assert json.loads(out)["refused"] == 1
