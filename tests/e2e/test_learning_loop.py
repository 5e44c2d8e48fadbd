"""From searches to a profile in force and back, over HTTP against real servers.

On the constructed collection a better weighting is known, so that it must be found, confirmed and promoted. On judged
data the gates decide, and what they say is printed.
"""

import csv
import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core import clock
from apps.learning.identity import named_group_id
from apps.learning.split import is_validation
from tests.support import collection, judged_data
from tests.support.loop import Loop, ranking
from tests.support.stack import Stack, running_stack, wait

pytestmark = pytest.mark.installation

SMALL = "wordllama"
"""The embedder that takes over where the default cannot run; it makes the vectors of a collection in seconds."""
TRAINING, VALIDATION, UNSEEN = 22, 22, 22
SEARCHED = 150
"""Of the judged queries; the others are held out."""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """An installation of its own, with an empty memory and the small embedder."""
    with running_stack(port=18200) as stack:
        spaces = stack.manage("embedder", "list").splitlines()
        (small,) = (line.split()[1] for line in spaces if SMALL in line)
        for act in ("fill", "activate"):
            stack.manage("embedder", act, small)
        yield stack


def test_a_known_improvement_is_found_put_in_force_and_taken_back(stack: Stack, tmp_path: Path) -> None:
    questions = list(islice(collection.questions_in_order(), TRAINING + VALIDATION + UNSEEN))
    write_constructed(tmp_path, questions)
    imported(stack, tmp_path, "loop", "constructed", "--event-time", "metadata.at")
    loop = Loop(stack, "loop", "constructed", lambda name: {name: 1})
    texts = {question.relevant: question.text for question in questions}
    judged = dict(islice(texts.items(), TRAINING + VALIDATION))
    unseen = {name: text for name, text in texts.items() if name not in judged}
    question = questions[-1]
    asked: dict[str, Any] = {"reference_time": clock.iso(clock.now())}
    first = loop.search(question.text, **asked)
    assert first["profile"]["status"] == "none"
    assert first["results"][0]["provenance"]["identity"] != question.relevant

    loop.judge_all(judged)
    evaluation = loop.evaluate(dict(zip(judged, group_names(), strict=False)))
    assert evaluation["report"]["decision"] == "improved_on_observed_candidates", evaluation
    assert evaluation["report"]["multipliers"]["recency"] > 1
    holdout = loop.hold_out(evaluation["evaluation_id"], loop.query_set(unseen))
    assert holdout["report"]["decision"] == "improved_full_retrieval", holdout
    made = loop.profile(evaluation["evaluation_id"], holdout["holdout_id"])
    assert made.status_code == 201, made.text
    profile = made.json()["profile_id"]
    assert (
        loop.search(question.text, **asked)["profile"]["status"] == "none"
    )  # nothing is active by being made

    loop.command(profile, "activate", None)
    restart_web(stack, loop)
    learned = loop.search(question.text, **asked)
    assert learned["profile"] == {"id": profile, "status": "applied", "reason": None}
    assert learned["results"][0]["provenance"]["identity"] == question.relevant
    with stack.client() as stranger:
        assert stranger.get(f"/v1/learning/profiles/{profile}").status_code == 404
        assert stranger.get("/v1/learning/active").json()["active"] is None

    loop.command(profile, "rollback", profile, to=None)
    last = loop.search(question.text, **asked)
    assert last["profile"]["status"] == "none"
    assert ranking(last) == ranking(first)


def write_constructed(folder: Path, questions: list[collection.Question]) -> None:
    """The constructed collection in the layout that is imported."""
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus:
        for question in questions:
            for item in collection.documents_of(question, "default"):
                at = clock.iso(item.event_at or clock.now())
                line = {"_id": item.identity, "title": "", "text": item.text, "metadata": {"at": at}}
                corpus.write(json.dumps(line) + "\n")


def group_names() -> Iterator[str]:
    """Names of query groups, just so many of them on each side of the split."""
    room = {False: TRAINING, True: VALIDATION}
    for number in count():
        name = f"question {number}"
        side = is_validation(42, named_group_id(name), 0.3)
        if room[side]:
            room[side] -= 1
            yield name
        if not any(room.values()):
            return


def imported(stack: Stack, folder: Path, principal: str, name: str, *more: str) -> None:
    stack.manage(
        *("import_beir", str(folder), "--workspace", "demo", "--principal", principal),
        *("--collection", name, "--embed", *more),
    )


def restart_web(stack: Stack, loop: Loop) -> None:
    """End the web process, which comes back by itself; what is in force is what the database says."""
    before = stack.pid("web")
    os.kill(before, signal.SIGTERM)
    wait(lambda: stack.info("web")["statename"] == "RUNNING" and stack.pid("web") != before, "web")
    wait(lambda: is_ready(stack), "readiness")
    loop.connect()


def is_ready(stack: Stack) -> bool:
    with stack.client() as http:
        try:
            return http.get("/health/ready").status_code == 200
        except httpx.TransportError:
            return False


def test_the_gates_decide_on_judged_data(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    folder = judged_data("cranfield")
    grades = grades_of(folder)
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        queries = {query["_id"]: query["text"] for query in map(json.loads, lines)}
    searched = dict(islice(queries.items(), SEARCHED))
    unseen = {name: text for name, text in queries.items() if name not in searched and grades[name]}
    imported(stack, folder, "cranfield-loop", "cranfield")
    loop = Loop(stack, "cranfield-loop", "cranfield", lambda name: grades[name])
    some, asked = queries["1"], {"reference_time": clock.iso(clock.now())}
    first = loop.search(some, **asked)

    loop.judge_all(searched)
    evaluation = loop.evaluate()
    said = [told("evaluation", evaluation["report"], "validation_ndcg_gain", "validation_gain_interval")]
    if evaluation["report"]["decision"] != "insufficient_data":
        holdout = loop.hold_out(evaluation["evaluation_id"], loop.query_set(unseen))
        said.append(told("holdout", holdout["report"], "ndcg_gain", "ndcg_gain_interval", "failed_gates"))
        made = loop.profile(evaluation["evaluation_id"], holdout["holdout_id"])
        passed = (
            evaluation["report"]["decision"] == "improved_on_observed_candidates"
            and holdout["report"]["decision"] == "improved_full_retrieval"
        )
        said.append(f"profile: {made.status_code} {made.json().get('reason', '')}")
        assert made.status_code == (201 if passed else 409), made.text
        if passed:
            profile = made.json()["profile_id"]
            loop.command(profile, "activate", None)
            assert loop.search(some, **asked)["profile"]["status"] == "applied"
            loop.command(profile, "rollback", profile, to=None)
        else:
            assert made.json()["code"] == "not_promotable"
    assert ranking(loop.search(some, **asked)) == ranking(first)
    with capsys.disabled():
        print("\nCranfield, 150 queries judged and 75 held out:", *said, sep="\n  ")


def grades_of(folder: Path) -> dict[str, dict[str, int]]:
    """Query id → the documents that are relevant to it, with their grades."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for path in sorted((folder / "qrels").glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                if int(row["score"]) > 0:
                    found[row["query-id"]][row["corpus-id"]] = min(int(row["score"]), 4)
    return found


def told(what: str, report: dict[str, Any], *members: str) -> str:
    shown = ", ".join(f"{name} {report[name]}" for name in members)
    return f"{what}: {report['decision']}, {shown}"
