"""Rows of one entity become one row of the answer: editions of a file, the parts of a thread."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from apps.retrieval.candidates import Attributes, Candidate
from apps.retrieval.scoring import Scored

VERSIONED = frozenset({"doc", "diff"})
THREADED = frozenset({"issue", "pull_request", "issue_comment", "pr_review", "pr_review_comment"})


def fold_key(node: Attributes) -> tuple[Any, ...]:
    """The entity of a node; where a part of the key is missing, the node itself."""
    if node.type in VERSIONED and node.repo and node.path:
        return ("file", node.principal_id.int, node.repo, node.path)
    if node.type in THREADED and node.repo and node.number is not None:
        return ("thread", node.principal_id.int, node.repo, node.number)
    return (node.id.int,)


def fold(ranked: Iterable[Scored]) -> list[tuple[Scored, tuple[Scored, ...]]]:
    """(representative, others) in ranked order; the best-ranked row represents its entity even if older."""
    groups: dict[tuple[Any, ...], list[Scored]] = {}
    for row in ranked:
        groups.setdefault(fold_key(row.candidate.node), []).append(row)
    return [(rows[0], tuple(rows[1:])) for rows in groups.values()]


def latest_editions(pool: Iterable[Candidate]) -> frozenset[UUID]:
    """The newest of those files of which the pool holds an older edition, too."""
    groups: dict[tuple[Any, ...], list[Attributes]] = {}
    for candidate in pool:
        if candidate.node.type in VERSIONED:
            groups.setdefault(fold_key(candidate.node), []).append(candidate.node)
    latest: set[UUID] = set()
    for nodes in groups.values():
        newest = max(node.updated_at for node in nodes)
        if any(node.updated_at < newest for node in nodes):
            latest |= {node.id for node in nodes if node.updated_at == newest}
    return frozenset(latest)


def version_marks(rows: Sequence[Scored]) -> dict[UUID, Literal["latest", "superseded"]]:
    """Which rows of one entity are the latest: only editions of a file, and only where their times differ."""
    if any(row.candidate.node.type not in VERSIONED for row in rows):
        return {}
    times: dict[UUID, datetime] = {row.candidate.node.id: row.candidate.node.updated_at for row in rows}
    newest = max(times.values())
    if len(set(times.values())) < 2:
        return {}
    return {node_id: "latest" if at == newest else "superseded" for node_id, at in times.items()}
