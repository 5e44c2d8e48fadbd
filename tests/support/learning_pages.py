"""What pages of learning show, as the services leave it, and how a person acts on them."""

import re
from html import unescape
from typing import Any

from django.test import Client

EVIDENCE: dict[str, Any] = {
    "evaluation": {
        "decision": "improved_on_observed_candidates",
        "training_queries": 148,
        "validation_queries": 64,
        "ndcg_gain": 0.031,
        "ndcg_gain_interval": [0.012, 0.05],
        "pairwise_gain": 0.024,
        "loss_before": 0.5137,
        "loss_after": 0.4702,
    },
    "holdout": {
        "decision": "improved_full_retrieval",
        "query_groups": 64,
        "ndcg_gain": 0.018,
        "ndcg_gain_interval": [0.004, 0.033],
        "recall_gain": 0.009,
        "mrr_gain": 0.021,
        "regression_fraction": 6 / 64,
    },
}
"""What a profile keeps of its evidence."""


def text_of(answer: Any) -> str:
    """The words of a page, as they are read."""
    html = answer.content.decode()
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


class Dialog:
    """The form of a governed action: opened once, sent as often as a test wants."""

    def __init__(self, client: Client, url: str) -> None:
        self.client, self.url = client, url
        self.answer = client.get(url)
        self.text = text_of(self.answer)
        html = self.answer.content.decode()
        found = re.findall(r'<input type="hidden" name="([\w]+)" value="([^"]*)"', html)
        self.hidden = {name: unescape(value) for name, value in found if name != "csrfmiddlewaretoken"}

    def send(self, **fields: Any) -> Any:
        return self.client.post(self.url, {**self.hidden, "reason": "better on unseen queries", **fields})
