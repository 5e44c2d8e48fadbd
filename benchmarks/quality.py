"""Measures ranking quality on judged collections, through the product's own import and retrieval.

    python -m benchmarks.quality [--collection cranfield locomo] [--sweep]

nDCG@10 and recall@10 over binary relevance (grade ≥ 1), beside reciprocal-rank fusion of the same channels.
Exits with 1 below a floor. Vectors are kept in var/benchmarks, so that only the first run takes minutes.
"""

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.database import analyze, judged, own_database

DEPTH = 10


@dataclass(frozen=True)
class Collection:
    """How a collection is imported, and the floors of its nDCG@10 and recall@10."""

    split_by: str | None
    session_by: str | None
    event_time: str | None
    ndcg: float
    recall: float


COLLECTIONS = {
    "cranfield": Collection(None, None, None, 0.545, 0.470),
    "locomo": Collection("conversation", "session", "occurred_at", 0.500, 0.680),
}


@dataclass(frozen=True)
class Question:
    """A query with its owner, its vector and the ids of its relevant documents."""

    text: str
    owner: str | None
    embedding: Any
    relevant: frozenset[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collection", nargs="*", default=list(COLLECTIONS), choices=list(COLLECTIONS))
    parser.add_argument("--sweep", action="store_true", help="Print the weights around the default, too.")
    options = parser.parse_args()
    with own_database():
        passed = [measure(name, COLLECTIONS[name], sweep=options.sweep) for name in options.collection]
    return 0 if all(passed) else 1


def measure(name: str, collection: Collection, *, sweep: bool) -> bool:
    """Import, embed, ask, print; whether the floors hold and rank fusion is not better."""
    from apps.graph.embedders.active import active
    from apps.retrieval.policy import ScoringPolicy
    from benchmarks.vectors import keep

    space = active()
    if space is None:
        sys.exit("No embedder is active.")
    embedder = space.embedder()
    kept = keep(embedder)
    owners = load(name, collection)
    kept.save()
    questions = list(read_questions(judged(name), collection, space, embedder, kept))
    kept.save()
    analyze()
    print(f"{name}: {len(questions)} queries, {space.model_id}")
    ndcg, recall = ask(owners, questions, ScoringPolicy())
    fusion = ask(owners, questions, ScoringPolicy(formula="rank_fusion"))
    report("default policy", (ndcg, recall))
    report("rank fusion of the same", fusion)
    if sweep:
        for label, policy in variants():
            report(label, ask(owners, questions, policy))
    passed = ndcg >= collection.ndcg and recall >= collection.recall and (ndcg, recall) >= fusion
    print(f"  floors {collection.ndcg:.3f} / {collection.recall:.3f}: {'held' if passed else 'MISSED'}")
    return passed


def report(label: str, figures: tuple[float, float]) -> None:
    print(f"  {label:<44} nDCG@10 {figures[0]:.4f}  recall@10 {figures[1]:.4f}")


def variants() -> Iterator[tuple[str, Any]]:
    """Policies around the default one."""
    from apps.retrieval.policy import FeatureWeights, ScoringPolicy, SessionInheritance

    yield (
        "fusion without sessions",
        ScoringPolicy(formula="rank_fusion", session=SessionInheritance(enabled=False)),
    )
    yield "default without sessions", ScoringPolicy(session=SessionInheritance(enabled=False))
    rest = {"graph": 0.08, "recency": 0.06, "salience": 0.07, "confidence": 0.07}
    for share in (0.3, 0.4, 0.45, 0.55, 0.6, 0.7):
        weights = FeatureWeights(
            semantic=round(0.72 * share, 4), lexical=round(0.72 * (1 - share), 4), **rest
        )
        yield f"semantic {share:.2f} of semantic + lexical", ScoringPolicy(weights=weights)
    for recency in (0.0, 0.03, 0.12):
        weights = FeatureWeights(semantic=0.36, lexical=0.36, graph=0.08, recency=recency, salience=0.07)
        yield f"recency {recency:.2f}", ScoringPolicy(weights=weights)
    for decay in (0.7, 0.85, 0.9):
        yield f"session decay {decay:.2f}", ScoringPolicy(session=SessionInheritance(decay=decay))


def load(name: str, collection: Collection) -> dict[str | None, Any]:
    """Import a collection and make its vectors; the principal of each owner name."""
    from apps.graph.beir import Layout, read_corpus
    from apps.graph.services import embed_missing, import_passages
    from benchmarks.worlds import principal, workspace

    space = workspace("quality")
    owners: dict[str | None, Any] = {}

    def principal_of(owner: str | None) -> Any:
        owners[owner] = principal(space, f"token:{name}:{owner or 'all'}")
        return owners[owner]

    layout = Layout(
        repo=f"conn:{name}",
        split_by=collection.split_by,
        session_by=collection.session_by,
        event_time=collection.event_time,
    )
    documents = [
        (d.owner, item) for d in read_corpus(judged(name) / "corpus.jsonl", layout) for item in d.parts
    ]
    start = time.perf_counter()
    counts, _ = import_passages(documents=documents, principal_of=principal_of)
    spent = time.perf_counter() - start
    print(f"{name}: imported {dict(counts)}, {len(documents) / spent:,.0f} passages a second")
    for identity in owners.values():
        while (run := embed_missing(principal=identity)).more:
            pass
        if run.error:
            sys.exit(f"No vectors: {run.error}")
    return owners


def read_questions(
    folder: Path, collection: Collection, space: Any, embedder: Any, kept: Any
) -> Iterator[Question]:
    from apps.graph.embedders import QueryEmbedding

    relevant: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) >= 1:
            relevant[query].add(document)
    for line in (folder / "queries.jsonl").open(encoding="utf-8"):
        query = json.loads(line)
        if query["_id"] in relevant:
            owner = query["metadata"][collection.split_by] if collection.split_by else None
            vector = kept.query(embedder, query["text"])
            embedding = QueryEmbedding("ready", space.id, space.model_id, vector)
            yield Question(query["text"], owner, embedding, frozenset(relevant[query["_id"]]))


def ask(owners: dict[str | None, Any], questions: Sequence[Question], policy: Any) -> tuple[float, float]:
    """Mean nDCG@10 and recall@10 of a policy."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.policy import unstored
    from apps.retrieval.retrieve import retrieve
    from apps.retrieval.schemas import RetrievalRequest

    ruling = unstored(policy)
    at = datetime.now(UTC)
    ndcg = recall = 0.0
    for question in questions:
        request = RetrievalRequest(
            query=question.text, embedding=question.embedding, reference_time=at, limit=DEPTH
        )
        with principal_session(owners[question.owner]):
            rows = retrieve(request, policy=ruling).rows
        gained, found = judge([str(row.provenance.identity) for row in rows], question.relevant)
        ndcg, recall = ndcg + gained, recall + found
    return ndcg / len(questions), recall / len(questions)


def judge(ranked: Sequence[str], relevant: frozenset[str]) -> tuple[float, float]:
    """nDCG@10 and recall@10 of one ranking, binary relevance; a document counts at its first row."""
    ranked = list(dict.fromkeys(ranked))[:DEPTH]
    hits = [document in relevant for document in ranked]
    gained = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(relevant))))
    return gained / ideal, sum(hits) / len(relevant)


if __name__ == "__main__":
    sys.exit(main())
