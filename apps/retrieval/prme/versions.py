"""What each schema version of a PRME receipt adds, and what it therefore must not or must carry.

A version's canonical bytes leave out whatever came later, so the presence of a later field is refused even
with a neutral value: PRME itself would compute another checksum.
"""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from apps.retrieval.prme.documents import ReceiptDocument
from apps.retrieval.prme.exceptions import InvalidReceipt, LaterVersionClaim

# Field -> first version. The mandatory ones are written by every version from then on.
RECEIPT_MANDATORY: Mapping[str, int] = {"score_provenance": 2, "ranking_policy": 2, "execution": 3}
RECEIPT_OPTIONAL: Mapping[str, int] = {"min_score_skipped": 18}
SCORING_MANDATORY: Mapping[str, int] = {"current_update_multiplier": 9}
SCORING_OPTIONAL: Mapping[str, int] = {
    "fusion": 15,
    "rrf_k": 15,
    "rrf_recency_boost": 19,
    "rrf_tie_break": 19,
    "recency_time": 20,
}
PACKING_MANDATORY: Mapping[str, int] = {
    "multipath_ordering": 4,
    "context_guidance_mode": 6,
    "context_format": 7,
    "episode_context_top_k": 8,
    "episode_context_local_k": 8,
    "episode_context_score_decay": 8,
    "evidence_projection_top_k": 10,
    "evidence_projection_max_sources": 10,
    "evidence_projection_score_decay": 10,
    "evidence_augmentation_top_k": 11,
    "evidence_augmentation_max_sources": 11,
    "evidence_augmentation_score_decay": 11,
    "evidence_augmentation_anchor_policy": 12,
    "context_citations": 14,
}
PACKING_OPTIONAL: Mapping[str, int] = {
    "session_context_rank_fusion_score_decay": 17,
    "session_context_packing": 21,
    "fold_repeated_text": 22,
}
PACKING_VALUES: Mapping[tuple[str, str], int] = {
    ("multipath_ordering", "balanced"): 5,
    ("context_format", "reader"): 14,
}
ADJUSTMENT_KINDS: Mapping[str, int] = {
    "neural_blend": 2,
    "session_decay": 2,
    "episode_decay": 8,
    "current_update": 9,
    "evidence_projection": 10,
    "evidence_augmentation": 11,
    "neural_rank_assignment": 13,
}
RANK_FUSION_ONLY = range(15, 20)
WEIGHTED_ONLY = 20


def check_version(receipt: ReceiptDocument) -> None:
    """Refuse what the receipt's schema version cannot hold, and the lack of what it always holds.

    Raises LaterVersionClaim or InvalidReceipt.
    """
    version = receipt.schema_version
    _check_fields(receipt, version, "", RECEIPT_MANDATORY, RECEIPT_OPTIONAL)
    for name in RECEIPT_MANDATORY:
        if name in receipt.model_fields_set and getattr(receipt, name) is None:
            raise InvalidReceipt(f"{name} is null", pointer=f"/{name}")
    _check_packing(receipt)
    for pointer, document in _scoring_documents(receipt):
        _check_fields(document, version, pointer, SCORING_MANDATORY, SCORING_OPTIONAL)
    _check_adjustments(receipt)
    _check_formula(receipt)
    _check_relevance(receipt)
    _check_scoring_options(receipt)
    _check_features_that_name_a_version(receipt)


def _check_fields(
    document: BaseModel,
    version: int,
    pointer: str,
    mandatory: Mapping[str, int],
    optional: Mapping[str, int],
) -> None:
    present = document.model_fields_set
    for name, since in (*mandatory.items(), *optional.items()):
        if since > version and name in present:
            raise LaterVersionClaim(f"{name} is of version {since}", pointer=f"{pointer}/{name}")
    for name, since in mandatory.items():
        if since <= version and name not in present:
            raise InvalidReceipt(f"{name} is explicit from version {since}", pointer=f"{pointer}/{name}")


def _check_packing(receipt: ReceiptDocument) -> None:
    _check_fields(receipt.packing, receipt.schema_version, "/packing", PACKING_MANDATORY, PACKING_OPTIONAL)
    for (name, value), since in PACKING_VALUES.items():
        if receipt.schema_version < since and getattr(receipt.packing, name) == value:
            raise LaterVersionClaim(f"this {name} is of version {since}", pointer=f"/packing/{name}")


def _scoring_documents(receipt: ReceiptDocument) -> Iterator[tuple[str, BaseModel]]:
    yield "/scoring", receipt.scoring
    for node_id, provenance in (receipt.score_provenance or {}).items():
        yield f"/score_provenance/{node_id}/weights", provenance.weights


def _check_adjustments(receipt: ReceiptDocument) -> None:
    for node_id, provenance in (receipt.score_provenance or {}).items():
        for index, adjustment in enumerate(provenance.adjustments):
            since = ADJUSTMENT_KINDS[adjustment.kind]
            if receipt.schema_version < since:
                raise LaterVersionClaim(
                    f"{adjustment.kind} is of version {since}",
                    pointer=f"/score_provenance/{node_id}/adjustments/{index}/kind",
                )


def _check_formula(receipt: ReceiptDocument) -> None:
    version, fused = receipt.schema_version, receipt.is_rank_fused
    if fused and version < RANK_FUSION_ONLY.start:
        raise LaterVersionClaim("rank fusion is of version 15", pointer="/scoring")
    if fused and version == WEIGHTED_ONLY:
        raise InvalidReceipt("version 20 records the weighted formula only", pointer="/scoring")
    if not fused and version in RANK_FUSION_ONLY:
        raise InvalidReceipt(f"version {version} records rank fusion only", pointer="/scoring")
    if fused and (receipt.scoring.fusion is None or any(p.formula_version != 2 for p in receipt.provenances)):
        raise InvalidReceipt("one receipt holds scores of one formula", pointer="/score_provenance")


def _check_relevance(receipt: ReceiptDocument) -> None:
    """Relevance per candidate and what `min_score` did with it (versions 16 and 18)."""
    version, relevances = receipt.schema_version, [c.semantic_relevance for c in receipt.candidates]
    recorded = [value for value in relevances if value is not None]
    if recorded and version < 16:
        raise LaterVersionClaim("semantic_relevance is of version 16", pointer="/candidates")
    if not receipt.is_rank_fused:
        if recorded or receipt.min_score_skipped:
            raise InvalidReceipt("semantic relevance belongs to rank fusion", pointer="/candidates")
        return
    if version >= 16 and len(recorded) != len(relevances):
        raise InvalidReceipt("every candidate records its semantic relevance", pointer="/candidates")
    if receipt.min_score_skipped:
        if receipt.min_score is None or receipt.min_score <= 0:
            raise InvalidReceipt("only a positive min_score is skipped", pointer="/min_score_skipped")
        if any(recorded):
            raise InvalidReceipt("min_score is skipped only without a cosine", pointer="/min_score_skipped")
    elif receipt.min_score is not None and any(value < receipt.min_score for value in recorded):
        raise InvalidReceipt("a candidate is below min_score", pointer="/min_score")


def _check_scoring_options(receipt: ReceiptDocument) -> None:
    """Settings of the whole pool are the same in every provenance as in `scoring`."""
    scoring = receipt.scoring
    for node_id, provenance in (receipt.score_provenance or {}).items():
        pointer = f"/score_provenance/{node_id}/weights"
        if provenance.weights.fusion_options != scoring.fusion_options:
            raise InvalidReceipt("rank fusion options differ from the receipt's", pointer=pointer)
        if provenance.weights.recency_time != scoring.recency_time:
            raise InvalidReceipt("recency_time differs from the receipt's", pointer=pointer)
    fusions = [p.rank_fusion for p in receipt.provenances if p.rank_fusion is not None]
    boosted = {fusion.recency_boost_factor is not None for fusion in fusions}
    if len(boosted) > 1:
        raise InvalidReceipt("a recency boost covers the whole pool or none", pointer="/score_provenance")


def _check_features_that_name_a_version(receipt: ReceiptDocument) -> None:
    """Versions 17 to 22 exist for one feature each, and say so by having it."""
    decay = receipt.packing.session_context_rank_fusion_score_decay
    if decay is not None:
        if not receipt.is_rank_fused:
            raise InvalidReceipt("a rank fusion decay needs rank fusion", pointer="/packing")
        decays = (a for p in receipt.provenances for a in p.adjustments if a.kind == "session_decay")
        if any(adjustment.coefficient != decay for adjustment in decays):
            raise InvalidReceipt("session_decay differs from the setting", pointer="/score_provenance")
    named = {
        17: ("session_context_rank_fusion_score_decay", decay is not None),
        18: ("min_score_skipped", receipt.min_score_skipped),
        19: ("rrf_recency_boost or rrf_tie_break", receipt.scoring.fusion_options != (None, None)),
        20: ("recency_time", receipt.scoring.recency_time is not None),
        21: ("session_context_packing", receipt.packing.session_context_packing is not None),
        22: ("fold_repeated_text", receipt.packing.fold_repeated_text),
    }
    name, is_set = named.get(receipt.schema_version, ("", True))
    if not is_set:
        raise InvalidReceipt(f"version {receipt.schema_version} records {name}")
