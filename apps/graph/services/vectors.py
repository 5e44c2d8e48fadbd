"""Vectors follow the rows: found missing, made outside any transaction, stored if the text is still the same."""

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection
from pgvector import HalfVector

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.graph.digests import passage_text
from apps.graph.embedders import EmbedderFailed, Vectors, has_substance
from apps.graph.embedders.active import Registered, active
from apps.graph.embedders.base import MAX_CHARACTERS
from apps.graph.locks import lock_owner
from apps.graph.models.indexes import CorpusKind

from .postings import change_statistics

logger = logging.getLogger(__name__)

BATCH = 200
RETRY_AFTER_S = (15, 45, 120, 360, 900)
"""Seconds before each further try; after the last the row stays `failed`, visible, until its text changes."""

_MISSING = """
SELECT n.id, n.digest, n.label, n.body,
       (SELECT coalesce(string_agg(e.name, ' ' ORDER BY e.entity_key), '') FROM graph_entity e
        WHERE e.principal_id = n.principal_id AND e.node_id = n.id), coalesce(v.tries, 0)
FROM graph_node n LEFT JOIN graph_vector v
  ON v.principal_id = n.principal_id AND v.embedder_id = %(embedder)s AND v.node_id = n.id
WHERE n.principal_id = %(owner)s AND n.kind <> 'structural'
  AND n.archived_at IS NULL AND n.superseded_at IS NULL
  AND (v.node_id IS NULL OR v.state = 'failed' AND v.tries <= %(tries)s AND v.next_try_at <= %(now)s)
ORDER BY n.node_no LIMIT %(batch)s
"""

# The digest in the join drops what was deleted or reworded while its vector was made.
_STORE = """
WITH stored AS (
  INSERT INTO graph_vector AS v
    (principal_id, embedder_id, node_id, vec, state, text_sha256, tries, next_try_at, error)
  SELECT %(owner)s, %(embedder)s, n.id, g.vec::halfvec, g.state, decode(g.sha256, 'hex'), g.tries,
         g.next_try_at, g.error
  FROM unnest(%(ids)s::uuid[], %(digests)s::text[], %(vecs)s::text[], %(states)s::text[], %(sha256s)s::text[],
              %(tries)s::int[], %(next)s::timestamptz[], %(errors)s::text[])
       AS g(id, digest, vec, state, sha256, tries, next_try_at, error)
  JOIN graph_node n ON n.id = g.id AND n.digest = g.digest
  WHERE n.principal_id = %(owner)s
  ON CONFLICT (principal_id, embedder_id, node_id) DO UPDATE SET vec = excluded.vec, state = excluded.state,
    text_sha256 = excluded.text_sha256, tries = excluded.tries, next_try_at = excluded.next_try_at,
    error = excluded.error
  RETURNING v.node_id, v.state)
SELECT n.kind, count(*) FROM stored s JOIN graph_node n ON n.id = s.node_id
WHERE s.state = 'ready' GROUP BY n.kind
"""
_CORPUS = {"episodic": CorpusKind.CLAIMS, "passage": CorpusKind.PASSAGES}


class Missing(NamedTuple):
    """A live node that has no vector yet, or whose last try failed and is due again."""

    id: UUID
    digest: str
    label: str
    body: str
    entities: str
    tries: int

    def text(self) -> str:
        """What is embedded: label, body, entity names."""
        parts = [passage_text(self.label, self.body), self.entities]
        return " ".join(part for part in parts if part)[:MAX_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Backfill:
    """What one run did; `more` says that another may find work at once."""

    ready: int = 0
    empty: int = 0
    failed: int = 0
    more: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    node: Missing
    state: str
    vector: Vectors | None = None
    error: str | None = None


def embed_missing(
    *, principal: PrincipalIdentity | UUID, batch: int = BATCH, space: Registered | None = None
) -> Backfill:
    """Give vectors to up to `batch` rows of a principal; outside of any session, for it may use the network.

    `space` is the active one unless another is being filled beside it.
    """
    space = space or active()
    if space is None:
        return Backfill(error="embedder_not_active")
    with principal_session(principal) as identity:
        missing = find_missing(identity.principal_id, space.id, batch)
    if not missing:
        return Backfill()
    made = _make(space, missing)
    with principal_session(identity):
        _store(identity.principal_id, space, made)
    counts = Counter(one.state for one in made)
    error = next((one.error for one in made if one.error), None)
    more = len(missing) == batch and not counts["failed"]
    return Backfill(counts["ready"], counts["empty"], counts["failed"], more, error)


def find_missing(owner: UUID, embedder_id: int, batch: int) -> list[Missing]:
    """Rows of the session's principal without a vector in that space, oldest first."""
    values: dict[str, Any] = {
        "owner": owner,
        "embedder": embedder_id,
        "batch": batch,
        "now": clock.now(),
        "tries": len(RETRY_AFTER_S),
    }
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, values)
        return [Missing(*row) for row in cursor.fetchall()]


def _make(space: Registered, missing: Sequence[Missing]) -> list[_Made]:
    texts = [(node, node.text()) for node in missing]
    made = [_Made(node, "empty") for node, text in texts if not has_substance(text)]
    full = [(node, text) for node, text in texts if has_substance(text)]
    try:
        vectors = space.embedder().embed_passages([text for _, text in full])
    except EmbedderFailed as failure:
        logger.warning("embedding_failed code=%s rows=%d", failure.code, len(full))
        return made + [_Made(node, "failed", error=failure.code) for node, _ in full]
    return made + [_Made(node, "ready", vector) for (node, _), vector in zip(full, vectors, strict=True)]


def _store(owner: UUID, space: Registered, made: Sequence[_Made]) -> None:
    lock_owner(owner)
    now = clock.now()
    failed = [one.state == "failed" for one in made]
    tries = [one.node.tries + has_failed for one, has_failed in zip(made, failed, strict=True)]
    values: dict[str, Any] = {
        "owner": owner,
        "embedder": space.id,
        "ids": [one.node.id for one in made],
        "digests": [one.node.digest for one in made],
        "vecs": [None if one.vector is None else _text(one.vector) for one in made],
        "states": [one.state for one in made],
        "sha256s": [hashlib.sha256(one.node.text().encode()).hexdigest() for one in made],
        "tries": tries,
        "next": [
            now + timedelta(seconds=RETRY_AFTER_S[tried - 1])
            if has_failed and tried <= len(RETRY_AFTER_S)
            else None
            for tried, has_failed in zip(tries, failed, strict=True)
        ],
        "errors": [one.error for one in made],
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORE, values)
        counts = cursor.fetchall() if space.is_active else []
        for kind, count in counts:
            change_statistics(owner, _CORPUS[kind], vectors=count)


def _text(vector: Vectors) -> str:
    return str(HalfVector(vector.astype(np.float32)).to_text())
