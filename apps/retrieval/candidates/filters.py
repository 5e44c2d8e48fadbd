"""The restrictions of a request as SQL. They apply in every channel, before every cap."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.graph.models.indexes import CorpusKind
from apps.retrieval.schemas import RetrievalRequest

KIND_CORPORA = {
    "episodic": CorpusKind.CLAIMS,
    "structural": CorpusKind.CODE,
    "passage": CorpusKind.PASSAGES,
}
DEFAULT_KINDS = ("episodic", "passage")
"""Code nodes are found only by whoever asks for them."""

PASSAGE_FIELDS = ("repository", "path_prefix", "state", "milestone", "assignee")


@dataclass(frozen=True, slots=True)
class Restriction:
    """Whose rows, of which corpora, under which conditions.

    `node` and `passage` are SQL on the aliases n (graph_node) and p (graph_passage), with named parameters.
    """

    owners: tuple[UUID, ...]
    kinds: tuple[CorpusKind, ...]
    node: tuple[str, ...] = ()
    passage: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def filtered(self) -> bool:
        """Whether a row has to be looked at to know if it may be an answer."""
        return bool(self.node or self.passage)

    def join(self, on: str) -> str:
        """SQL that joins n (by `on`) and, where needed, p, and applies the conditions."""
        if not self.filtered:
            return ""
        passage = " JOIN graph_passage p ON p.node_id = n.id" if self.passage else ""
        conditions = " AND ".join((*self.node, *self.passage))
        return f" JOIN graph_node n ON {on}{passage} WHERE {conditions}"


def restriction(request: RetrievalRequest, identity: PrincipalIdentity) -> Restriction:
    """The restriction of a request made by that principal."""
    own = (identity.principal_id,) if request.corpus == "all" else ()
    shared = (identity.shared_principal_id,) if identity.shared_principal_id else ()
    filters = request.filters
    kinds = filters.kinds or DEFAULT_KINDS
    node, values = _node_conditions(request)
    passage: list[str] = []
    for name in PASSAGE_FIELDS:
        value = getattr(filters, name)
        if value is None:
            continue
        values[f"f_{name}"] = value
        passage.append(_PASSAGE_SQL[name])
    if filters.types:
        values["f_types"] = list(filters.types)
        passage.append("p.type = ANY(%(f_types)s)")
    if filters.labels:
        values["f_labels"] = list(filters.labels)
        passage.append("p.labels @> %(f_labels)s::varchar[]")
    if passage:
        kinds = tuple(kind for kind in kinds if kind == "passage")
    return Restriction(
        owners=tuple(dict.fromkeys((*own, *shared))),
        kinds=tuple(KIND_CORPORA[kind] for kind in kinds),
        node=tuple(node),
        passage=tuple(passage),
        values=values,
    )


_PASSAGE_SQL = {
    "repository": "p.repo = %(f_repository)s",
    "path_prefix": "starts_with(p.path, %(f_path_prefix)s) AND p.type IN ('doc', 'wiki_doc')",
    "state": "p.state = %(f_state)s",
    "milestone": "p.milestone = %(f_milestone)s",
    "assignee": "p.assignee = %(f_assignee)s",
}
_NODE_SQL = {
    "since": "coalesce(n.event_at, n.updated_at) >= %(f_since)s",
    "until": "coalesce(n.event_at, n.updated_at) < %(f_until)s",
    "valid_since": "(n.valid_to IS NULL OR n.valid_to > %(f_valid_since)s)",
    "valid_until": "(n.valid_from IS NULL OR n.valid_from < %(f_valid_until)s)",
    "known_at": "n.created_at <= %(f_known_at)s",
}


def _node_conditions(request: RetrievalRequest) -> tuple[list[str], dict[str, Any]]:
    filters = request.filters
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for name, sql in _NODE_SQL.items():
        value: datetime | None = getattr(filters, name)
        if value is not None:
            values[f"f_{name}"] = value
            conditions.append(sql)
    if request.scopes is not None:
        values["f_scopes"] = list(request.scopes)
        conditions.append("n.scope = ANY(%(f_scopes)s)")
    if filters.kinds:
        values["f_kinds"] = list(filters.kinds)
        conditions.append("n.kind = ANY(%(f_kinds)s)")
    if filters.subkinds:
        values["f_subkinds"] = list(filters.subkinds)
        conditions.append("n.subkind = ANY(%(f_subkinds)s)")
    return conditions, values
