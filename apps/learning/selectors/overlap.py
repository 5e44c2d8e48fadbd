"""What an evaluation has seen, which a holdout that is to confirm it must not share."""

import json
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from apps.learning.identity import named_group_id, query_group_id
from apps.learning.models import EvaluatedQuery, EvaluationResult, JudgedQuery


@dataclass(frozen=True, slots=True)
class Seen:
    """Receipts that an evaluation stands on; groups and keyed identities of the queries that gave it pairs."""

    request_ids: frozenset[str]
    group_ids: frozenset[str]
    query_identities: frozenset[str]


_IDENTITIES = """
SELECT r.query_identity FROM learning_evaluated_query q
CROSS JOIN LATERAL unnest(q.receipt_ids) AS used (receipt_id)
JOIN retrieval_receipt r ON r.principal_id = q.principal_id AND r.id = used.receipt_id
WHERE q.evaluation_id = %(evaluation)s
UNION
SELECT p.query_identity FROM learning_evaluated_query q
CROSS JOIN LATERAL unnest(q.receipt_ids) AS used (receipt_id)
JOIN retrieval_prme_receipt p ON p.principal_id = q.principal_id AND p.request_id = used.receipt_id
WHERE q.evaluation_id = %(evaluation)s
"""


def seen_by(evaluation_id: UUID) -> Seen:
    """In the session of the evaluation's principal."""
    report = EvaluationResult.objects.values_list("report", flat=True).get(evaluation_id=evaluation_id)
    groups = EvaluatedQuery.objects.filter(evaluation_id=evaluation_id).values_list("group_id", flat=True)
    with connection.cursor() as cursor:
        cursor.execute(_IDENTITIES, {"evaluation": evaluation_id})
        identities = frozenset(identity for (identity,) in cursor.fetchall())
    return Seen(frozenset(json.loads(report)["receipt_checksums"]), frozenset(groups), identities)


def shares_queries(query_set_id: UUID, seen: Seen) -> bool:
    """Whether a query set has a query or a group that was seen."""
    rows = JudgedQuery.objects.filter(query_set_id=query_set_id).values_list("query_identity", "group_name")
    return any(
        identity in seen.query_identities
        or query_group_id(identity) in seen.group_ids
        or (name is not None and named_group_id(name) in seen.group_ids)
        for identity, name in rows
    )
