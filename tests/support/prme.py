"""PRME receipts made for tests: small, valid, and open to be spoiled."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from apps.retrieval.prme.documents import ScoreTrace, ScoringWeights
from apps.retrieval.prme.replay import weighted_score
from apps.retrieval.prme.versions import PACKING_MANDATORY

SCORING: dict[str, Any] = {
    "w_semantic": 0.25,
    "w_lexical": 0.2,
    "w_graph": 0.2,
    "w_recency": 0.1,
    "w_salience": 0.1,
    "w_confidence": 0.15,
    "w_epistemic": 0.05,
    "w_paths": 0.0,
    "recency_lambda": 0.02,
    "temporal_boost": 0.15,
    "node_type_boost": {"fact": 1.15},
    "relevance_floor": 0.35,
}
PACKING: dict[str, Any] = {
    "token_budget": 4096,
    "tokenizer": "cl100k_base",
    "min_fidelity": "reference",
    "overhead_tokens": 100,
    "chars_per_token": 4.2,
    "graph_max_candidates": 150,
    "vector_k": 500,
    "lexical_k": 500,
    "graph_max_hops": 3,
    "cross_scope_top_n": 5,
    "cross_scope_token_budget": 512,
    "session_context_window": 3,
    "session_context_top_k": 20,
    "session_context_score_decay": 0.85,
    "aggregation_k_multiplier": 3.0,
    "aggregation_k_max": 2000,
}
# Neutral values of the settings that a version makes explicit.
EXPLICIT: dict[str, Any] = {
    "multipath_ordering": "density",
    "context_guidance_mode": "off",
    "context_format": "auditable",
    "context_citations": False,
    "episode_context_top_k": 0,
    "episode_context_local_k": 8,
    "episode_context_score_decay": 0.95,
    "evidence_projection_top_k": 0,
    "evidence_projection_max_sources": 1,
    "evidence_projection_score_decay": 1.0,
    "evidence_augmentation_top_k": 0,
    "evidence_augmentation_max_sources": 1,
    "evidence_augmentation_score_decay": 0.99,
    "evidence_augmentation_anchor_policy": "all",
}


def make_receipt(
    features: Sequence[Sequence[float]],
    *,
    version: int = 2,
    request: int = 1,
    query: str = "a question",
    scopes: Sequence[str] | None = ("project",),
    owner: str = "owner",
) -> dict[str, Any]:
    """A weighted receipt of version 1 to 14 whose candidate i has the six features `features[i]`.

    Candidates stand in their order; `node_id(i)` names them.
    """
    scoring = SCORING | ({"current_update_multiplier": 1.3} if version >= 9 else {})
    packing = PACKING | {
        name: EXPLICIT[name] for name, since in PACKING_MANDATORY.items() if since <= version
    }
    rows = [_row(index, row, scoring) for index, row in enumerate(features)]
    rows.sort(key=lambda row: (-row["score"], -row["trace"]["path_score"], row["node_id"]))
    receipt: dict[str, Any] = {
        "schema_version": version,
        "request_id": str(uuid.UUID(int=request)),
        "user_id": owner,
        "query": query,
        "reference_time": "2026-11-01T00:00:00Z",
        "scopes": None if scopes is None else list(scopes),
        "scoring": scoring,
        "packing": packing,
        "context_sha256": "0" * 64,
        "min_score": None,
        "result_limit": None,
        "retrieval_mode": "default",
        "time_from": None,
        "time_to": None,
        "candidates": rows,
    }
    if version >= 2:
        receipt["score_provenance"] = {row["node_id"]: _provenance(row, scoring) for row in rows}
        receipt["ranking_policy"] = "score_path_id"
    if version >= 3:
        receipt["execution"] = {"schema_version": 1, "parameters": {}, "features": {"python": "3.11"}}
    return receipt


def node_id(index: int) -> str:
    return str(uuid.UUID(int=0xA000 + index))


def _row(index: int, features: Sequence[float], scoring: dict[str, Any]) -> dict[str, Any]:
    names = ("semantic_similarity", "lexical_relevance", "graph_proximity", "recency_factor", "salience")
    trace = dict(zip((*names, "confidence"), map(float, features), strict=True)) | {
        "epistemic_weight": 0.9,
        "path_score": 1 / 3,
        "temporal_affinity": 0.0,
        "node_type_boost": 1.0,
        "composite_score": 0.0,
    }
    weights = ScoringWeights.model_validate(scoring)
    trace["composite_score"] = weighted_score(ScoreTrace.model_validate(trace), weights)
    return {
        "node_id": node_id(index),
        "scope": "project",
        "content_sha256": "0" * 64,
        "score": trace["composite_score"],
        "trace": trace,
        "reranker_score": None,
        "representation": None,
        "token_cost": 0,
        "in_context": False,
        "has_content": False,
    }


def _provenance(row: dict[str, Any], scoring: dict[str, Any]) -> dict[str, Any]:
    return {
        "formula_version": 1,
        "base_node_id": row["node_id"],
        "trace": dict(row["trace"]),
        "weights": dict(scoring),
        "adjustments": [],
    }


def make_record(receipt: dict[str, Any], labels: dict[int, bool], *, feedback: int = 1, **more: Any) -> bytes:
    """A label record on a receipt; `labels` maps candidate indexes to labels."""
    record = {
        "feedback_id": str(uuid.UUID(int=feedback)),
        "request_id": receipt["request_id"],
        "labels": {node_id(index): label for index, label in labels.items()},
        "surface": "results",
        "method": "explicit_user",
        "schema_version": 1,
        "user_id": receipt["user_id"],
        "recorded_at": "2026-11-01T00:00:00Z",
        "receipt_checksum": hashlib.sha256(dump(receipt)).hexdigest(),
    }
    return dump(record | more)


def dump(document: Any) -> bytes:
    """Compact JSON, as PRME writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
