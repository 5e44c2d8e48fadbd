"""The loop of learning as an application runs it: over HTTP, against an installation."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import httpx

from tests.support.stack import PATIENCE, Stack

ENDED = ("succeeded", "failed", "cancelled")
Relevance = Callable[[str], Mapping[Any, int]]
"""Query id → grades of the documents that are relevant to it."""


class Loop:
    """One principal's application. `documents` are of repository `conn:{collection}`."""

    def __init__(self, stack: Stack, principal: str, collection: str, relevance: Relevance) -> None:
        self.repo, self.relevance = f"conn:{collection}", relevance
        self.stack, self.receipts = stack, dict[str, str]()
        self.token = stack.manage(
            *("create_token", "--workspace", "demo", "--principal", principal),
            *("--scopes", "search", "feedback", "learning"),
        ).strip()
        self.connect()

    def connect(self) -> None:
        """Begin with connections that no earlier process holds."""
        self.http = self.stack.client_of(self.token)

    def search(self, text: str, **more: Any) -> dict[str, Any]:
        return self._answer(self.http.post("/v1/search", json={"query": text} | more))

    def judge_all(self, queries: Mapping[str, str]) -> None:
        """Search each query and say of every returned document whether it is relevant; what nobody named is not."""
        for name, text in queries.items():
            answer = self.search(text)
            receipt = self.receipts[name] = answer["retrieval_receipt_id"]
            relevant = self.relevance(name)
            labels = {
                row["node_id"]: relevant.get(row["provenance"]["identity"], 0) > 0
                for row in answer["results"]
            }
            body = {
                "feedback_id": str(uuid4()),
                "labels": labels,
                "surface": "results",
                "method": "structured_evaluation",
            }
            self._answer(self.http.post(f"/v1/receipts/{receipt}/judgments", json=body))

    def evaluate(self, groups: Mapping[str, str] | None = None) -> dict[str, Any]:
        """An evaluation that has ended; `groups` names the group of a query."""
        named = {self.receipts[name]: group for name, group in (groups or {}).items()}
        return self._ended("evaluation", {"query_groups": named})

    def query_set(self, queries: Mapping[str, str]) -> str:
        """A query set of these queries with all that is relevant to them; its id."""
        judgments = [
            {"query": name, "repo": self.repo, "identity": identity, "grade": grade}
            for name in queries
            for identity, grade in self.relevance(name).items()
        ]
        body = {
            "idempotency_key": str(uuid4()),
            "name": "unseen",
            "queries": [{"id": name, "text": text} for name, text in queries.items()],
            "judgments": judgments,
        }
        made = self._answer(self.http.post("/v1/learning/query-sets", json=body))
        return str(made["query_set_id"])

    def hold_out(self, evaluation: str, query_set: str) -> dict[str, Any]:
        """A holdout that has ended."""
        return self._ended("holdout", {"evaluation_id": evaluation, "query_set_id": query_set})

    def profile(self, evaluation: str, holdout: str) -> httpx.Response:
        """What the platform answers to the wish for a profile."""
        body = {"evaluation_id": evaluation, "holdout_id": holdout}
        return self.http.post("/v1/learning/profiles", json=body)

    def command(self, profile: str, verb: str, expected: str | None, **more: Any) -> dict[str, Any]:
        body = {"change_id": str(uuid4()), "expected_active": expected} | more
        return self._answer(self.http.post(f"/v1/learning/profiles/{profile}/{verb}", json=body))

    def _ended(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        key = {"idempotency_key": str(uuid4())}
        asked = self._answer(self.http.post(f"/v1/learning/{kind}s", json=key | dict(body)))
        deadline = time.monotonic() + PATIENCE
        while asked["status"] not in ENDED:
            assert time.monotonic() < deadline, f"waited in vain for the {kind}"
            time.sleep(0.3)
            asked = self._answer(self.http.get(f"/v1/learning/{kind}s/{asked[f'{kind}_id']}"))
        assert asked["status"] == "succeeded", asked
        return asked

    @staticmethod
    def _answer(response: httpx.Response) -> dict[str, Any]:
        assert response.is_success, response.text
        return dict(response.json())


def ranking(answer: Mapping[str, Any]) -> Sequence[tuple[Any, float]]:
    """The rows of an answer: identity and score, in order."""
    return [(row["provenance"]["identity"], row["score"]) for row in answer["results"]]
