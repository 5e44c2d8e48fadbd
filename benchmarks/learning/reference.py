"""PRME 0.15.0 on the same receipts, in an environment of its own: what learning is compared with."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ".venv-reference"

SCRIPT = """
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
whole = time.process_time() - start
print(json.dumps({"whole_per_receipt": whole / len(receipts), "fit_per_receipt": spent[0],
                  "multipliers": report.multipliers.model_dump()}))
"""


def environment() -> str | None:
    """Its interpreter, installed where it is not there yet; None, said, where that fails (offline)."""
    python = ROOT / FOLDER / "bin" / "python"
    made = subprocess.run(
        [ROOT / "scripts" / "venv", "reference"], env=os.environ | {"VENV": FOLDER}, cwd=ROOT
    )
    if made.returncode:
        print("The reference could not be installed: what is compared with it is left out.")
        return None
    return str(python)


def measure(python: str, receipts: Path, labels: Path) -> dict[str, Any]:
    """Its processor seconds a receipt (whole evaluation, fit), and the multipliers that it found."""
    command = [python, "-c", SCRIPT, str(receipts), str(labels)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result
