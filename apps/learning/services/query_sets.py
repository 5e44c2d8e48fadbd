"""Making query sets. A set is made once and never changed; the same content has the same hash in any order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.core import canonical, clock, idempotency
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.core.problems import InvalidRequest
from apps.core.schemas import pointer
from apps.core.text import refused_by
from apps.learning.models import JudgedQuery, QuerySet
from apps.learning.requests import QuerySetRequest, SetJudgment, SetQuery
from apps.retrieval.identity import keyed_query_identity
from apps.retrieval.services import hash_key

TOOL = "learning.query_sets"
_AT_ONCE = 1000


def create_query_set(*, idempotency_key: str, request: QuerySetRequest) -> UUID:
    """A query set by the API, once a key; its id. Raises InvalidRequest, StateConflict (idempotency_conflict)."""

    def run(set_id: UUID) -> idempotency.Made[UUID]:
        make_query_set(
            name=request.name,
            queries=request.queries,
            judgments=request.judgments,
            source="api",
            set_id=set_id,
        )
        return idempotency.Made(set_id)

    payload = request.model_dump(mode="json", exclude={"idempotency_key"})
    return idempotency.once(
        tool=TOOL, key=idempotency_key, payload=payload, run=run, again=lambda set_id: set_id
    ).answer


def make_query_set(
    *,
    name: str,
    queries: Sequence[SetQuery],
    judgments: Sequence[SetJudgment],
    source: str,
    set_id: UUID | None = None,
) -> QuerySet:
    """Store a set for the session's principal, in one transaction of the caller.

    Raises InvalidRequest, with the pointer into `{name, queries, judgments}`: a repeated id or judgment, a judgment of
    no query of the set, a query without a relevant document, a query in two groups, a text that may not be kept.
    """
    owner = current_principal()
    if refused_by(name) is not None:
        raise InvalidRequest("This name may not be kept", pointer="/name")
    _check_names(queries)
    judged = _judgments_by_query(queries, judgments)
    identities = _identities(queries, hash_key())
    made = QuerySet.objects.create(
        id=set_id or uuid7(),
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        name=name,
        source=source,
        created_at=clock.now(),
        num_queries=len(queries),
        num_judgments=len(judgments),
        content_sha256=content_sha256(queries, judgments),
    )
    in_order = sorted(range(len(queries)), key=lambda index: queries[index].id)
    rows = [
        _row(made, position, queries[index], judged[queries[index].id], identities[index])
        for position, index in enumerate(in_order)
    ]
    JudgedQuery.objects.bulk_create(rows, batch_size=_AT_ONCE)
    return made


def content_sha256(queries: Sequence[SetQuery], judgments: Sequence[SetJudgment]) -> str:
    """SHA-256 over canonical JSON of queries by id and judgments by query and document."""
    shown = [query.model_dump(mode="json") for query in sorted(queries, key=lambda query: query.id)]
    ranked = sorted(judgments, key=lambda each: (each.query, each.repo, identity_text(each.identity)))
    return canonical.checksum(
        {"queries": shown, "judgments": [each.model_dump(mode="json") for each in ranked]}
    )


def identity_text(identity: Any) -> str:
    """A document's identity as one text: canonical JSON, so that 12 and "12" differ."""
    return canonical.dumps(identity).decode()


def _check_names(queries: Sequence[SetQuery]) -> None:
    seen: set[str] = set()
    for index, query in enumerate(queries):
        if query.id in seen:
            raise InvalidRequest("This id is there twice", pointer=pointer("queries", index, "id"))
        seen.add(query.id)
        if refused_by(query.text) is not None:
            raise InvalidRequest("This text may not be kept", pointer=pointer("queries", index, "text"))


def _judgments_by_query(
    queries: Sequence[SetQuery], judgments: Sequence[SetJudgment]
) -> Mapping[str, list[SetJudgment]]:
    names = {query.id for query in queries}
    found: defaultdict[str, list[SetJudgment]] = defaultdict(list)
    seen: set[tuple[str, str, str]] = set()
    for index, judgment in enumerate(judgments):
        key = (judgment.query, judgment.repo, identity_text(judgment.identity))
        if judgment.query not in names:
            raise InvalidRequest("There is no such query", pointer=pointer("judgments", index, "query"))
        if key in seen:
            raise InvalidRequest("This is judged twice", pointer=pointer("judgments", index))
        seen.add(key)
        found[judgment.query].append(judgment)
    for index, query in enumerate(queries):
        if not any(judgment.grade for judgment in found[query.id]):
            raise InvalidRequest("Nothing is relevant to this query", pointer=pointer("queries", index))
    return found


def _identities(queries: Sequence[SetQuery], key: bytes) -> list[str]:
    """Keyed identity of each query; the spellings of one query are of one group."""
    groups: dict[str, str | None] = {}
    identities = []
    for index, query in enumerate(queries):
        identity = keyed_query_identity(query.text, key)
        if groups.setdefault(identity, query.group) != query.group:
            raise InvalidRequest("One query is in two groups", pointer=pointer("queries", index, "group"))
        identities.append(identity)
    return identities


def _row(
    made: QuerySet, position: int, query: SetQuery, judgments: Sequence[SetJudgment], identity: str
) -> JudgedQuery:
    ranked = sorted(judgments, key=lambda each: (each.repo, identity_text(each.identity)))
    return JudgedQuery(
        workspace_id=made.workspace_id,
        principal_id=made.principal_id,
        query_set=made,
        position=position,
        name=query.id,
        text=query.text,
        query_identity=identity,
        group_name=query.group,
        slice=query.slice,
        repos=[each.repo for each in ranked],
        identities=[identity_text(each.identity) for each in ranked],
        grades=[each.grade for each in ranked],
    )
