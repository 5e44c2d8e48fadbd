"""From a request to every candidate with its score; `retrieve` makes an answer of it, `explain` a reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.retrieval.candidates import Attributes, Candidate, Candidates, generate
from apps.retrieval.candidates.statistics import Statistics
from apps.retrieval.features import Scale, features, scale_of
from apps.retrieval.policy import PolicyInForce, in_force
from apps.retrieval.schemas import RetrievalRequest, Weights
from apps.retrieval.scoring import Scored, applied_weights, inherit, score_pool
from apps.retrieval.sessions import neighbours
from apps.retrieval.wording import analysed

LEAST_UNVERIFIED_CONFIDENCE = 0.30
HIDDEN_BY_DEFAULT = frozenset({"hypothetical", "deprecated"})


@dataclass(frozen=True, slots=True)
class Rules:
    """Under which policy and weights a request is ranked."""

    ruling: PolicyInForce
    weights: Weights


@dataclass(frozen=True, slots=True)
class Ranked:
    """Every candidate that was scored, best first.

    Attributes:
        refused: why a candidate of a channel got no score, by node.
        scale: of min-max, so that other rows can be measured by it.
        analysis: version of the query analysis that was asked.
        errors: stable codes by name of an extension that failed.
    """

    found: Candidates
    rows: list[Scored]
    refused: Mapping[UUID, str]
    scale: Scale
    analysis: str | None = None
    errors: dict[str, str] = field(default_factory=dict)


def rules(multipliers: Mapping[str, float] | None = None, policy: PolicyInForce | None = None) -> Rules:
    """Those of the caller's workspace, or of another policy. Raises InvalidRequest for a multiplier out of range."""
    ruling = policy or in_force(current_principal().workspace_id)
    return Rules(ruling, applied_weights(ruling.document, multipliers))


def rank(
    request: RetrievalRequest, by: Rules, *, scale: Scale | None = None, known: Statistics | None = None
) -> Ranked:
    """Candidates, features, scores and neighbours, in the session of a principal."""
    policy = by.ruling.document
    found = generate(request, depth=policy.candidates_per_channel, known=known)
    refused: dict[UUID, str] = {}
    pool: list[Candidate] = []
    for candidate in found.pool:
        reason = refusal(candidate.node, request)
        if reason is None:
            pool.append(candidate)
        else:
            refused[candidate.node.id] = reason
    measured = scale or scale_of(pool)
    table = features(pool, at=request.reference_time, recency_per_day=policy.recency_per_day, scale=measured)
    read = analysed(request.query, request.reference_time, pool, policy)
    rows = score_pool(pool, table, policy, by.weights, read.wording)
    beside = neighbours(session_cursor(), rows, found.restriction, policy.session)
    if beside:
        admitted = [pair for pair in beside if refusal(pair[1].node, request) is None]
        rows = inherit(rows, admitted, policy)
    errors = {"query_analysis": read.error} if read.error else {}
    return Ranked(found, rows, refused, measured, read.version, errors)


def refusal(node: Attributes, request: RetrievalRequest) -> str | None:
    """The reason for which a node's standing keeps it out of an answer; None where it does not."""
    if request.epistemic_mode == "explicit":
        return None
    if node.withdrawn is not None:
        return node.withdrawn
    if node.epistemic in HIDDEN_BY_DEFAULT:
        return f"epistemic_{node.epistemic}"
    if node.epistemic == "conditional" and not condition_holds(node, request.reference_time):
        return "epistemic_conditional"
    if node.epistemic == "unverified" and node.confidence <= LEAST_UNVERIFIED_CONFIDENCE:
        return "epistemic_unverified"
    return None


def condition_holds(node: Attributes, at: datetime) -> bool:
    """Whether the condition that is stored with a node, its validity, is met. Without one none is known to be."""
    if node.valid_from is None and node.valid_to is None:
        return False
    return (node.valid_from is None or node.valid_from <= at) and (
        node.valid_to is None or at < node.valid_to
    )


def source_key(node: Attributes) -> tuple[Any, ...]:
    """What rows of one source share."""
    if node.repo is None:
        return (node.id,)
    return (node.principal_id, node.repo, node.type, str(node.identity))
