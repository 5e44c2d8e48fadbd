"""Inputs of evaluations built from arrays, as a loader of stored receipts would fill them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from apps.learning.bootstrap import Resampling
from apps.learning.evaluate import EvaluationInputs
from apps.learning.receipt_set import NO_GRADE, Formula, LabelSet, ReceiptSet, Surface
from apps.learning.scorer import FEATURES, WeightedScorer
from apps.retrieval.steps import RoundStep

WEIGHTS = (0.25, 0.2, 0.2, 0.1, 0.1, 0.15)


@dataclass
class Request:
    """One receipt of `len(features)` candidates and the labels on it: candidate → values given."""

    features: Sequence[Sequence[float]]
    labels: Mapping[int, Sequence[bool]]
    query: str = ""
    scopes: tuple[str, ...] | None = ("project",)
    formula: Formula = "weighted"
    contract: str = "native:1"
    surface: Surface = "results"
    grades: Mapping[int, int] = field(default_factory=dict)


def make_inputs(
    requests: Sequence[Request],
    *,
    query_groups: Mapping[str, str] | None = None,
    resampling: Resampling = "pcg64_multiply_shift",
    contract: str = "native:1",
) -> EvaluationInputs:
    """Inputs over requests named r0000, r0001, …; the i-th value of a label is on its i-th record."""
    receipts = _receipts(requests)
    labels = _labels(requests, receipts)
    return EvaluationInputs(
        owner="owner",
        receipts=receipts,
        labels=labels,
        query_groups=query_groups or {},
        input_checksum=hashlib.sha256(repr(list(requests)).encode()).hexdigest(),
        scorer_contract=contract,
        resampling=resampling,
    )


def _receipts(requests: Sequence[Request]) -> ReceiptSet:
    sizes = [len(request.features) for request in requests]
    rows = [row for request in requests for row in request.features]
    scorer = WeightedScorer(
        features=np.array(rows, dtype=np.float64).reshape(-1, len(FEATURES)).T.copy(),
        weights=np.array([WEIGHTS]),
        weight_row=np.zeros(len(rows), dtype=np.int64),
        steps=(RoundStep(None),),
    )
    total = sum(sizes)
    return ReceiptSet(
        request_ids=tuple(f"r{index:04}" for index in range(len(requests))),
        checksums=tuple(f"{index:064x}" for index in range(len(requests))),
        query_identities=tuple(request.query or f"query {i}" for i, request in enumerate(requests)),
        scopes=tuple(request.scopes for request in requests),
        formulas=tuple(request.formula for request in requests),
        contracts=tuple(request.contract for request in requests),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        recorded=scorer.scores(np.ones(len(FEATURES))),
        tie_group=np.zeros(total, dtype=np.int8),
        tie_path=np.zeros(total),
        id_rank=np.array([rank for size in sizes for rank in range(size)], dtype=np.int32),
        scorer=scorer,
    )


def _labels(requests: Sequence[Request], receipts: ReceiptSet) -> LabelSet:
    feedback_ids: list[str] = []
    of_receipt: list[int] = []
    surfaces: list[Surface] = []
    rows: list[tuple[int, int, bool, int]] = []
    for index, request in enumerate(requests):
        for turn in range(max((len(values) for values in request.labels.values()), default=0)):
            record = len(feedback_ids)
            feedback_ids.append(f"f{index:04}-{turn}")
            of_receipt.append(index)
            surfaces.append(request.surface)
            for candidate, values in request.labels.items():
                if turn < len(values):
                    row = int(receipts.offsets[index]) + candidate
                    rows.append((record, row, values[turn], request.grades.get(candidate, NO_GRADE)))
    return LabelSet(
        feedback_ids=tuple(feedback_ids),
        record_receipt=np.array(of_receipt, dtype=np.int64),
        record_surface=tuple(surfaces),
        label_record=np.array([row[0] for row in rows], dtype=np.int64),
        label_row=np.array([row[1] for row in rows], dtype=np.int64),
        label_value=np.array([row[2] for row in rows], dtype=bool),
        label_grade=np.array([row[3] for row in rows], dtype=np.int8),
    )


def lexical_requests(count: int, *, seed: int = 3, candidates: int = 6) -> list[Request]:
    """Requests whose relevant half is the half with the higher lexical feature, whatever the rest says."""
    random = np.random.default_rng(seed)
    requests = []
    for number in range(count):
        features = random.random((candidates, len(FEATURES)))
        middle = np.median(features[:, 1])
        labels = {index: [bool(features[index, 1] > middle)] for index in range(candidates)}
        requests.append(Request(features.tolist(), labels, query=f"question {number}"))
    return requests
