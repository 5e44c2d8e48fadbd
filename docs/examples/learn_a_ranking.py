"""The whole way of a ranking over HTTP, from labels to rollback, on a collection whose best weighting is known.

Each question has three documents: a stale one with all its words, a fresh one that answers it, and one beside them.
Base scoring puts the stale one first. All of it lies in a scope of its own, so that nothing else is touched.

    python3 docs/examples/learn_a_ranking.py http://127.0.0.1:8000 "$(cat var/api_token)"

Tells each step on standard error, and prints what came of it as JSON. Needs the scopes search, feedback, memory and
learning.
"""

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import islice, product
from urllib.parse import urlsplit
from uuid import uuid4

ADDRESS, TOKEN = sys.argv[1:3]
RUN = uuid4().hex[:8]
SCOPE, REPO = f"example-{RUN}", f"conn:example-{RUN}"
A_ROUND, UNSEEN, ROUNDS = 100, 24, 3


def api(path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection = HTTPConnection(urlsplit(ADDRESS).netloc, timeout=120)
    connection.request("GET" if body is None else "POST", path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status >= 400:
        sys.exit(f"{path}: {answer.status} {text}")
    return json.loads(text)


def tell(words):
    print(words, file=sys.stderr, flush=True)


def questions():
    """Number and three words that occur in no other question."""
    syllables = [a + b for a, b in product("bdfgklmnprtvz", "aou")]
    words = ("".join(three) + "nok" for three in product(syllables, repeat=3))
    return enumerate(zip(words, words, words, strict=False))


def remember(asked):
    now = datetime.now(UTC)
    fresh, stale = now.isoformat(), (now - timedelta(days=400)).isoformat()
    items = []
    for number, (first, second, third) in asked:
        for name, text, at in (
            (f"stale-{number}", f"{first} {second} {third} notes", stale),
            (f"fresh-{number}", f"{first} {second} report notes", fresh),
            (f"other-{number}", f"{first} summary report notes", stale),
        ):
            items.append({"repo": REPO, "identity": name, "text": text, "event_at": at, "scope": SCOPE})
    for at in range(0, len(items), 90):
        api("/v1/nodes:batch", {"items": items[at : at + 90]})


def search(words):
    return api("/v1/search", {"query": " ".join(words), "scopes": [SCOPE]})


def label(asked):
    for number, words in asked:
        answer = search(words)
        labels = {
            row["node_id"]: row["provenance"]["identity"] == f"fresh-{number}" for row in answer["results"]
        }
        body = {
            "feedback_id": str(uuid4()),
            "surface": "results",
            "method": "explicit_user",
            "labels": labels,
        }
        api(f"/v1/receipts/{answer['retrieval_receipt_id']}/judgments", body)


def run(kind, **body):
    """Ask for an evaluation or a holdout, and wait for it."""
    asked = api(f"/v1/learning/{kind}s", {"idempotency_key": str(uuid4()), **body})
    while asked["status"] in ("queued", "running"):
        time.sleep(1)
        asked = api(f"/v1/learning/{kind}s/{asked[f'{kind}_id']}")
    return asked


def command(profile, verb, expected, **more):
    body = {"change_id": str(uuid4()), "expected_active": expected, "reason": "the example", **more}
    return api(f"/v1/learning/profiles/{profile}/{verb}", body)


everything = questions()
unseen = list(islice(everything, UNSEEN))
remember(unseen)

for _ in range(ROUNDS):
    more = list(islice(everything, A_ROUND))
    remember(more)
    tell(f"Searching {len(more)} questions and labelling what was returned")
    label(more)
    evaluation = run("evaluation", scopes=[SCOPE])
    decision = evaluation["report"]["decision"]
    tell(f"Evaluation: {decision}, gain {evaluation['report']['validation_ndcg_gain']}")
    # How many of the questions validate is the split's to say; where too few do, label more.
    if decision != "insufficient_data":
        break

names = {f"q{number}": (number, " ".join(words)) for number, words in unseen}
query_set = api(
    "/v1/learning/query-sets",
    {
        "idempotency_key": str(uuid4()),
        "name": f"unseen questions of {SCOPE}",
        "queries": [{"id": name, "text": text} for name, (_, text) in names.items()],
        "judgments": [
            {"query": name, "repo": REPO, "identity": f"fresh-{n}"} for name, (n, _) in names.items()
        ],
    },
)
while True:
    both = {"evaluation_id": evaluation["evaluation_id"], "query_set_id": query_set["query_set_id"]}
    holdout = run("holdout", **both)
    if holdout["failure_code"] != "corpus_changed":
        break
    tell("The memory changed meanwhile (vectors are still being made); once more")
    time.sleep(5)
tell(f"Holdout: {holdout['report']['decision']}, gain {holdout['report']['ndcg_gain']}")

made = api(
    "/v1/learning/profiles",
    {"evaluation_id": evaluation["evaluation_id"], "holdout_id": holdout["holdout_id"]},
)
profile = made["profile_id"]
words = unseen[0][1]


def seen():
    answer = search(words)
    return {"first": answer["results"][0]["provenance"]["identity"], "status": answer["profile"]["status"]}


before = seen()
command(profile, "activate", None)
active = seen()
command(profile, "rollback", profile, to=None)
after = seen()
tell(f"Before {before}, active {active}, rolled back {after}")
print(
    json.dumps(
        {
            "scope": SCOPE,
            "evaluation": evaluation["report"]["decision"],
            "holdout": holdout["report"]["decision"],
            "profile_id": profile,
            "before": before,
            "active": active,
            "rolled_back": after,
        }
    )
)
if active["status"] != "applied" or after != before:
    sys.exit("This is not what the documentation says")
