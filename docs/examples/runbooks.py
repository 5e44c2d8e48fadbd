"""Writes a small collection in the BEIR layout: runbooks of which each has an old and a new version.

    python3 docs/examples/runbooks.py DIR

For every task of every service there is an old page, which says all the words of the question again and again, and a
notice of last week, which says some of them once and is the one to follow. At the default weights the old page comes
first. `qrels/judged.tsv` is for the queries that are searched and judged, `qrels/unseen.tsv` for those held out.
"""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

SERVICES = (
    *("ledger", "gateway", "mailer", "scheduler", "vault", "indexer", "billing", "catalog"),
    *("notifier", "payroll", "archive", "router", "invoicing", "warehouse", "checkout"),
)
TASKS = {
    "rotate the signing keys": "keys",
    "restore the nightly snapshot": "snapshot",
    "drain a broken node": "node",
    "raise the request quota": "quota",
    "renew the server certificate": "certificate",
    "replay the failed messages": "messages",
    "purge the stale cache": "cache",
    "promote the standby replica": "replica",
    "rebuild the search index": "index",
    "revoke a leaked token": "token",
    "migrate the account schema": "schema",
}
UNSEEN_SERVICES = frozenset(SERVICES[-3:])
OLD, NEW = timedelta(days=700), timedelta(days=7)


def main(folder: Path) -> None:
    now = datetime.now(UTC)
    corpus, queries = [], []
    relevant: dict[str, list[str]] = {"judged": [], "unseen": []}
    for number, (service, (task, thing)) in enumerate(product(SERVICES, TASKS.items())):
        old, new = f"old/{service}-{thing}.md", f"notices/{service}-{thing}.md"
        words = f"How to {task} of the {service}: {task} of the {service} by hand, step by step."
        notice = (
            f"To {task} of the {service}, open a change in the pipeline of the {service}. It does the rest."
        )
        corpus += [page(old, f"{task} ({service})", words, now - OLD), page(new, "Notice", notice, now - NEW)]
        queries.append({"_id": f"q{number}", "text": f"how do we {task} of the {service}", "metadata": {}})
        side = "unseen" if service in UNSEEN_SERVICES else "judged"
        relevant[side].append(f"q{number}\t{new}\t1")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write(folder / "corpus.jsonl", map(json.dumps, corpus))
    write(folder / "queries.jsonl", map(json.dumps, queries))
    for side, rows in relevant.items():
        write(folder / "qrels" / f"{side}.tsv", ["query-id\tcorpus-id\tscore", *rows])


def page(identity: str, title: str, text: str, at: datetime) -> dict[str, object]:
    return {"_id": identity, "title": title, "text": text, "metadata": {"at": at.isoformat()}}


def write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
