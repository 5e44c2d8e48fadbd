"""The restrictions of a request as SQL. They apply in every channel, before every cap."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.graph.models.indexes import CorpusKind
from apps.graph.models.nodes import LIVE
from apps.retrieval.schemas import RetrievalRequest

KIND_CORPORA = {
    "episodic": CorpusKind.CLAIMS,
    "structural": CorpusKind.CODE,
    "passage": CorpusKind.PASSAGES,
}
DEFAULT_KINDS = ("episodic", "passage")
"""Code nodes are found only by whoever asks for them."""

PASSAGE_FIELDS = ("repository", "path_prefix", "state", "milestone", "assignee")


PASSAGE = " CROSS JOIN LATERAL (SELECT * FROM graph_passage WHERE node_id = n.id OFFSET 0) p"
"""SQL that looks up the passage p of a node n by its key, and cannot be planned otherwise."""


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

    def eligible(self) -> str:
        """SQL on n and p: live, of a kind that was asked for, and under every condition.

        For channels that find a node by what it is; those of an index find only what is live and of their kind.
        """
        kinds = ", ".join(f"'{name}'" for name, corpus in KIND_CORPORA.items() if corpus in self.kinds)
        return " AND ".join((LIVE, f"n.kind IN ({kinds or 'NULL'})", *self.node, *self.passage))

    @property
    def filtered(self) -> bool:
        """Whether a row has to be looked at to know if it may be an answer."""
        return bool(self.node or self.passage)

    def join(self, node: str, *, looked_up: bool) -> str:
        """SQL that joins n (by `node`, a join itself) and, where needed, p, and applies the conditions.

        looked_up: row by row, as n is; else as the planner likes.
        """
        if not self.filtered:
            return ""
        passage = (
            "" if not self.passage else PASSAGE if looked_up else " JOIN graph_passage p ON p.node_id = n.id"
        )
        conditions = " AND ".join((*self.node, *self.passage))
        return f" {node}{passage} WHERE {conditions}"


def restriction(request: RetrievalRequest, identity: PrincipalIdentity) -> Restriction:
    """The restriction of a request made by that principal."""
    own = (identity.principal_id,) if request.corpus == "all" else ()
    shared = (identity.shared_principal_id,) if identity.shared_principal_id else ()
    kinds = request.filters.kinds or DEFAULT_KINDS
    of_node, of_passage, values = conditions(request)
    if of_passage:
        kinds = tuple(kind for kind in kinds if kind == "passage")
    return Restriction(
        owners=tuple(dict.fromkeys((*own, *shared))),
        kinds=tuple(KIND_CORPORA[kind] for kind in kinds),
        node=tuple(of_node.values()),
        passage=tuple(of_passage.values()),
        values=values,
    )


def conditions(request: RetrievalRequest) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """What the request asks of a node and of a passage, by the name of the filter, and the values."""
    of_node, values = _node_conditions(request)
    of_passage: dict[str, str] = {}
    for name in PASSAGE_FIELDS:
        value = getattr(request.filters, name)
        if value is not None:
            values[f"f_{name}"] = value
            of_passage[name] = _PASSAGE_SQL[name]
    if request.filters.types:
        values["f_types"] = list(request.filters.types)
        of_passage["types"] = "p.type = ANY(%(f_types)s)"
    if request.filters.labels:
        values["f_labels"] = list(request.filters.labels)
        of_passage["labels"] = "p.labels @> %(f_labels)s::varchar[]"
    return of_node, of_passage, values


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


def _node_conditions(request: RetrievalRequest) -> tuple[dict[str, str], dict[str, Any]]:
    filters = request.filters
    found: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, sql in _NODE_SQL.items():
        value: datetime | None = getattr(filters, name)
        if value is not None:
            values[f"f_{name}"] = value
            found[name] = sql
    if request.scopes is not None:
        values["f_scopes"] = list(request.scopes)
        found["scopes"] = "n.scope = ANY(%(f_scopes)s)"
    if request.outside:
        values["f_outside"] = list(request.outside)
        found["outside"] = "n.scope <> ALL(%(f_outside)s)"
    if request.only:
        values["f_only"] = list(request.only)
        found["only"] = "n.id = ANY(%(f_only)s)"
    if filters.kinds:
        values["f_kinds"] = list(filters.kinds)
        found["kinds"] = "n.kind = ANY(%(f_kinds)s)"
    if filters.subkinds:
        values["f_subkinds"] = list(filters.subkinds)
        found["subkinds"] = "n.subkind = ANY(%(f_subkinds)s)"
    return found, values
