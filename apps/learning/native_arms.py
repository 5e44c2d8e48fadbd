"""Arms of a holdout out of native receipts, and trials out of judged queries."""

import hashlib
from collections.abc import Sequence

from apps.core import canonical
from apps.learning.exceptions import PairMismatch
from apps.learning.identity import query_group_id
from apps.learning.models import JudgedQuery
from apps.learning.pairs import Arm
from apps.learning.schemas import HoldoutTrial, RankingMultipliers
from apps.learning.scorer import FEATURES
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.schemas import Row

UNJUDGED = -1
_LONGEST_NAME = 512
# What tells the arms apart, what is compared by itself, and where the words of the query live.
_NOT_FIXED = {"query", "query_identity", "scopes"}


def arm_of(receipt: ReceiptDocument, *, owner: str, checksum: str, order: Sequence[str]) -> Arm:
    """A receipt as one arm; `order` names the document of each row. Raises PairMismatch for rank fusion."""
    if receipt.policy.formula != "weighted":
        raise PairMismatch("multipliers were fitted for the weighted formula")
    features = receipt.features.model_dump(mode="json")
    policy = receipt.policy.model_dump(mode="json")
    packing = policy.pop("packing")
    request = receipt.request.model_dump(mode="json", exclude=_NOT_FIXED)
    return Arm(
        request_id=receipt.receipt_id,
        checksum=checksum,
        owner=owner,
        scopes=receipt.request.scopes,
        query_identity=receipt.request.query_identity,
        fixed=request | {"packing": packing, "corpus digest": receipt.corpus.digest},
        policy=policy,
        features=features,
        features_sha256=canonical.checksum(features),
        multipliers=_multipliers(receipt),
        order=tuple(order),
    )


def _multipliers(receipt: ReceiptDocument) -> RankingMultipliers:
    vectors = {weights.multipliers for weights in receipt.weights}
    if len(vectors) != 1:
        raise PairMismatch("a receipt has more than one set of multipliers")
    return RankingMultipliers(**dict(zip(FEATURES, vectors.pop(), strict=True)))


def node_order(receipt: ReceiptDocument) -> tuple[str, ...]:
    """Rows by their node ids: each its own document."""
    return tuple(candidate.node_id for candidate in receipt.candidates)


def judged_order(receipt: ReceiptDocument, documents: Sequence[int], query: JudgedQuery) -> tuple[str, ...]:
    """Rows by the judged document that each is a part of; a row that nobody judged goes by its node id.

    `documents` are places among the query's judgments, one a row, UNJUDGED for none. Raises PairMismatch.
    """
    nodes = node_order(receipt)
    if len(nodes) != len(documents) or any(place >= len(query.identities) for place in documents):
        raise PairMismatch("the documents of a receipt are not those of its rows")
    names = document_names(query)
    return tuple(
        node if place == UNJUDGED else names[place] for node, place in zip(nodes, documents, strict=True)
    )


def documents_of(rows: Sequence[Row], query: JudgedQuery) -> list[int]:
    """Of each row the place of its document among the query's judgments, or UNJUDGED."""
    places = {key: place for place, key in enumerate(zip(query.repos, query.identities, strict=True))}
    return [places.get(_key(row), UNJUDGED) for row in rows]


def _key(row: Row) -> tuple[str, str]:
    provenance = row.provenance
    if provenance.repo is None:
        return "", ""
    return provenance.repo, canonical.dumps(provenance.identity).decode()


def document_names(query: JudgedQuery) -> list[str]:
    """A name for each judged document: repository and identity, or their hash where that is long."""
    return [_name(repo, identity) for repo, identity in zip(query.repos, query.identities, strict=True)]


def _name(repo: str, identity: str) -> str:
    name = f"{repo} {identity}"
    return name if len(name) <= _LONGEST_NAME else hashlib.sha256(name.encode()).hexdigest()


def group_of(query: JudgedQuery) -> str:
    """The caller's name of the query's group; without one, spellings of the query are a group by themselves."""
    return str(query.group_name) if query.group_name is not None else query_group_id(query.query_identity)


def trial_of(query: JudgedQuery, *, baseline_request_id: str, candidate_request_id: str) -> HoldoutTrial:
    """A judged query answered under both arms; graded where some grade is above 1."""
    judged = zip(document_names(query), query.grades, strict=True)
    grades = {name: grade for name, grade in judged if grade}
    return HoldoutTrial(
        group_id=group_of(query),
        baseline_request_id=baseline_request_id,
        candidate_request_id=candidate_request_id,
        relevant_node_ids=tuple(grades),
        grades=grades if any(grade > 1 for grade in grades.values()) else None,
        slices=() if query.slice is None else (query.slice,),
    )
