"""What each schema version of a PRME receipt may claim."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from apps.retrieval.prme import InvalidReceipt, LaterVersionClaim, PrmeError, read_label_record, read_receipt
from apps.retrieval.prme.versions import ADJUSTMENT_KINDS, PACKING_MANDATORY
from tests.support.prme import EXPLICIT, SCORING, dump, make_receipt, make_record, node_id

FEATURES = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.2, 0.3, 0.4, 0.5, 0.6, 0.7), (0.1, 0.1, 1.0, 1.0, 1.0, 1.0))
Document = dict[str, Any]
Change = Callable[[Document], None]


def packing(**values: Any) -> Change:
    return lambda document: document["packing"].update(values)


def scoring(**values: Any) -> Change:
    def change(document: Document) -> None:
        document["scoring"].update(values)
        for provenance in document.get("score_provenance", {}).values():
            provenance["weights"].update(values)

    return change


def root(**values: Any) -> Change:
    return lambda document: document.update(values)


def adjustment(kind: str, coefficient: float = 1.0) -> Change:
    """An adjustment that leaves the score as it is."""

    def change(document: Document) -> None:
        first = document["candidates"][0]
        provenance = document["score_provenance"][first["node_id"]]
        value = first["score"] if kind == "neural_rank_assignment" else coefficient
        operation = {
            "kind": kind,
            "coefficient": value,
            "neural_score": 0.5 if kind == "neural_blend" else None,
            "source_node_id": first["node_id"],
        }
        provenance["adjustments"].append(operation)

    return change


# The version that a claim needs, and the claim, made with the neutral value where there is one.
CLAIMS: list[tuple[str, int, Change]] = [
    ("execution", 3, root(execution={"schema_version": 1, "parameters": {}, "features": {}})),
    *((name, since, packing(**{name: EXPLICIT[name]})) for name, since in PACKING_MANDATORY.items()),
    ("ordering score", 4, packing(multipath_ordering="score")),
    ("ordering balanced", 5, packing(multipath_ordering="balanced")),
    ("guidance", 6, packing(context_guidance_mode="temporal")),
    ("format compact", 7, packing(context_format="compact")),
    ("episodes", 8, packing(episode_context_top_k=2)),
    ("current update", 9, scoring(current_update_multiplier=1.3)),
    ("current update, neutral", 9, scoring(current_update_multiplier=1.0)),
    ("projection", 10, packing(evidence_projection_top_k=1)),
    ("augmentation", 11, packing(evidence_augmentation_top_k=1)),
    ("anchor policy", 12, packing(evidence_augmentation_anchor_policy="non_entity")),
    ("format reader", 14, packing(context_format="reader")),
    ("citations", 14, packing(context_format="reader", context_citations=True)),
    ("rank fusion", 15, scoring(fusion="rrf", rrf_k=60)),
    ("rank fusion constant", 15, scoring(rrf_k=60)),
    ("relevance", 16, lambda d: d["candidates"][0].update(semantic_relevance=0.95)),
    ("fusion decay", 17, packing(session_context_rank_fusion_score_decay=0.6)),
    ("skipped floor", 18, root(min_score=0.1, min_score_skipped=True)),
    ("recency boost", 19, scoring(fusion="rrf", rrf_k=60, rrf_recency_boost=0.25)),
    ("recency time", 20, scoring(recency_time="event_time")),
    ("session packing", 21, packing(session_context_packing="adjacent")),
    ("folding", 22, packing(context_format="reader", fold_repeated_text=True)),
    *((kind, since, adjustment(kind)) for kind, since in ADJUSTMENT_KINDS.items()),
]


@pytest.mark.parametrize("version", range(1, 15))
def test_a_plain_receipt_of_each_weighted_version_is_read(version: int) -> None:
    receipt = read_receipt(dump(make_receipt(FEATURES, version=version)))
    document = receipt.document
    assert document.schema_version == version
    assert (document.packing.multipath_ordering, document.packing.context_guidance_mode) == ("density", "off")
    assert document.packing.context_format == "auditable"
    assert document.scoring.current_update_multiplier == (1.3 if version >= 9 else 1.0)


@pytest.mark.parametrize("version", range(1, 15))
def test_a_version_refuses_every_later_claim(version: int) -> None:
    later = [(name, since, change) for name, since, change in CLAIMS if since > version]
    assert later
    for name, _since, change in later:
        document = make_receipt(FEATURES, version=version)
        if version == 1 and name in ADJUSTMENT_KINDS:
            continue
        change(document)
        with pytest.raises(PrmeError):
            read_receipt(dump(document))


@pytest.mark.parametrize(
    ("since", "change"), [(since, change) for name, since, change in CLAIMS if since <= 14 and since > 1]
)
def test_a_claim_is_accepted_from_its_version_on(since: int, change: Change) -> None:
    document = make_receipt(FEATURES, version=since)
    change(document)
    if document["score_provenance"][node_id(0)]["adjustments"][:1]:
        operation = document["score_provenance"][node_id(0)]["adjustments"][0]
        if operation["kind"] == "neural_blend":
            operation["coefficient"] = 1.0
    assert read_receipt(dump(document)).document.schema_version == since


@pytest.mark.parametrize("version", range(4, 15))
def test_a_version_refuses_the_lack_of_what_it_makes_explicit(version: int) -> None:
    for name, since in PACKING_MANDATORY.items():
        if since <= version:
            document = make_receipt(FEATURES, version=version)
            del document["packing"][name]
            with pytest.raises(InvalidReceipt):
                read_receipt(dump(document))


def test_applied_weights_follow_the_version_too() -> None:
    document = make_receipt(FEATURES, version=9)
    del document["score_provenance"][node_id(1)]["weights"]["current_update_multiplier"]
    with pytest.raises(InvalidReceipt) as lacking:
        read_receipt(dump(document))
    assert lacking.value.pointer.startswith("/score_provenance/")
    document = make_receipt(FEATURES, version=8)
    document["score_provenance"][node_id(1)]["weights"]["current_update_multiplier"] = 1.0
    with pytest.raises(LaterVersionClaim):
        read_receipt(dump(document))


def test_version_1_has_no_provenance() -> None:
    for name in ("score_provenance", "ranking_policy"):
        document = make_receipt(FEATURES, version=1)
        document[name] = make_receipt(FEATURES, version=2)[name]
        with pytest.raises(LaterVersionClaim):
            read_receipt(dump(document))
    for name in ("score_provenance", "ranking_policy"):
        document = make_receipt(FEATURES, version=2)
        del document[name]
        with pytest.raises(InvalidReceipt):
            read_receipt(dump(document))


@pytest.mark.parametrize("version", [0, 23, -1, 2.0, "2", True, None])
def test_unknown_versions_are_refused(version: object) -> None:
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(make_receipt(FEATURES) | {"schema_version": version}))


def fused(version: int, **options: Any) -> Document:
    """A rank-fused receipt of versions 15 to 19, 21 or 22."""
    document = make_receipt(FEATURES, version=14)
    document["schema_version"] = version
    settings = {"fusion": "rrf", "rrf_k": 60, **options}
    scoring(**settings)(document)
    for rank, candidate in enumerate(document["candidates"], start=1):
        provenance = document["score_provenance"][candidate["node_id"]]
        fusion: Document = {
            "semantic_rank": rank,
            "lexical_rank": rank,
            "epistemic_factor": 1.0,
            "node_type_factor": 1.0,
            "temporal_factor": 1.0,
        }
        if "rrf_tie_break" in options:
            fusion["tie_break"] = 0.0
        provenance |= {"formula_version": 2, "rank_fusion": fusion}
        document["score_provenance"][candidate["node_id"]] = provenance
        score = round((1 / (60 + rank) + 1 / (60 + rank)) * 61 / 2 * 1.0, 10)
        candidate["score"] = candidate["trace"]["composite_score"] = score
        provenance["trace"]["composite_score"] = score
        if version >= 16:
            candidate["semantic_relevance"] = candidate["trace"]["semantic_similarity"]
    return document


def test_rank_fused_versions_are_read() -> None:
    documents = [fused(15), fused(16), fused(17), fused(18), fused(19, rrf_tie_break="event_time"), fused(21)]
    packing(session_context_rank_fusion_score_decay=0.6)(documents[2])
    for candidate in documents[3]["candidates"]:
        candidate["trace"]["semantic_similarity"] = 0.0
        documents[3]["score_provenance"][candidate["node_id"]]["trace"]["semantic_similarity"] = 0.0
        candidate["semantic_relevance"] = 0.0
    root(min_score=0.1, min_score_skipped=True)(documents[3])
    # A field that is left out when unset stands where PRME writes it; order does not matter to reading.
    packing(session_context_packing="adjacent")(documents[5])
    for document in documents:
        assert read_receipt(dump(document)).document.is_rank_fused


@pytest.mark.parametrize("version", [15, 16, 17, 18, 19])
def test_fused_versions_record_rank_fusion_only(version: int) -> None:
    document = make_receipt(FEATURES, version=14) | {"schema_version": version}
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(document))


@pytest.mark.parametrize("version", [17, 18, 19, 20, 21, 22])
def test_a_version_has_the_feature_that_it_exists_for(version: int) -> None:
    document = make_receipt(FEATURES, version=14) | {"schema_version": version}
    if version < 20:
        document = fused(version)
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(document))


def test_min_score_compares_the_recorded_relevance() -> None:
    document = fused(16)
    assert read_receipt(dump(document | {"min_score": 0.05}))
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(document | {"min_score": 0.5}))
    below = copy.deepcopy(document)
    below["candidates"][0]["semantic_relevance"] = 0.1
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(below))


@pytest.mark.parametrize(
    ("kind", "coefficient"),
    [
        ("current_update", 0.99),
        ("current_update", 2.01),
        ("neural_blend", 1.01),
        ("neural_blend", -0.01),
        ("neural_rank_assignment", -0.1),
        ("evidence_projection", 0.0),
        ("evidence_augmentation", 1.01),
    ],
)
def test_coefficients_out_of_bounds_are_refused(kind: str, coefficient: float) -> None:
    document = make_receipt(FEATURES, version=13)
    adjustment(kind)(document)
    document["score_provenance"][node_id(0)]["adjustments"][0]["coefficient"] = coefficient
    with pytest.raises(InvalidReceipt):
        read_receipt(dump(document))


@pytest.mark.parametrize(
    "change",
    [
        root(request_id="not-a-uuid"),
        root(request_id="0000000000000000000000000000000A"),
        root(reference_time="2026-11-01T00:00:00"),
        root(scopes=["elsewhere"]),
        root(query="a\0b"),
        root(retrieval_mode="fast"),
        scoring(w_semantic=0.26),
        scoring(fusion="weighted"),
        packing(token_budget="4096"),
        packing(token_budget=4096.5),
        packing(fold_repeated_text=False),
        lambda d: d["candidates"][0].update(has_content=True),
        lambda d: d["candidates"][0].update(in_context=1),
        lambda d: d["candidates"][0].update(trace=d["candidates"][1]["trace"]),
        lambda d: d["score_provenance"].pop(node_id(2)),
        lambda d: d["score_provenance"].update({node_id(9): d["score_provenance"][node_id(0)]}),
    ],
)
def test_malformed_receipts_are_refused(change: Change) -> None:
    document = make_receipt(FEATURES)
    change(document)
    with pytest.raises(PrmeError):
        read_receipt(dump(document))


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"{", b'{"a":1}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_document_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidReceipt):
        read_receipt(raw)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {}},
        {"labels": {node_id(0): 1}},
        {"labels": {"x": True}},
        {"surface": "page"},
        {"method": "guess"},
        {"feedback_id": "1"},
        {"recorded_at": "2026-11-01T00:00:00"},
        {"receipt_checksum": "abc"},
        {"grade": 3},
    ],
)
def test_malformed_label_records_are_refused(change: Document) -> None:
    receipt = make_receipt(FEATURES)
    assert read_label_record(make_record(receipt, {0: True}))
    with pytest.raises(PrmeError):
        read_label_record(dump(json.loads(make_record(receipt, {0: True})) | change))


def test_weights_of_the_fixture_are_those_of_the_reference() -> None:
    assert abs(sum(value for name, value in SCORING.items() if name in WEIGHTED) - 1) < 1e-12


WEIGHTED = ("w_semantic", "w_lexical", "w_graph", "w_recency", "w_salience", "w_confidence")
