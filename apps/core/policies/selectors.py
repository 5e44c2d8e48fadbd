"""Reads of stored policies."""

import json
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.core.db import cursors
from apps.core.models import StoredPolicy
from apps.core.schemas import StrictModel

from .kinds import kind_named

# Of each kind two probes of one index: the workspace's newest in effect, then the default's.
_CURRENT = """
    SELECT {columns} FROM unnest(%(kinds)s::text[]) WITH ORDINALITY AS asked(kind, place) CROSS JOIN LATERAL (
      SELECT * FROM (
        (SELECT * FROM core_storedpolicy WHERE kind = asked.kind AND workspace_id = %(workspace)s::uuid
           AND effective_from <= statement_timestamp() ORDER BY effective_from DESC LIMIT 1)
        UNION ALL
        (SELECT * FROM core_storedpolicy WHERE kind = asked.kind AND workspace_id IS NULL
           AND effective_from <= statement_timestamp() ORDER BY effective_from DESC LIMIT 1)
      ) newest ORDER BY workspace_id NULLS LAST LIMIT 1) policy
    ORDER BY asked.place
"""
MAX_KEPT = 1024
"""Versions that a process remembers."""


class PolicyMissing(LookupError):
    """No version of this kind rules: the migration that writes its default has not run."""


@dataclass(frozen=True, slots=True)
class Version:
    """A stored version, as it is kept: its document is the model that is registered for its kind."""

    id: UUID
    kind: str
    version: int
    hash: str
    document: StrictModel


def current_policy(workspace_id: UUID | None, kind: str) -> StoredPolicy:
    """The version in effect now, by the database's clock: the newest of the workspace, else of the default. In any
    session; one read. Raises `PolicyMissing`."""
    names = _columns()
    columns = ", ".join(f"policy.{name}" for name in names)
    values = {"kinds": [kind], "workspace": workspace_id}
    found = cursors.run(_CURRENT.format(columns=columns), values, binary=False).fetchone()
    if found is None:
        raise PolicyMissing(kind)
    row = StoredPolicy.from_db(connection.alias, names, found)
    row.document = json.loads(row.document)
    return row


def ids_in_effect(workspace_id: UUID | None, *kinds: str) -> cursors.Question[tuple[UUID, ...]]:
    """Which versions of these kinds are in effect, to be asked together with other things; in the order of the kinds.

    The answer raises `PolicyMissing`. A version never changes: what it says is `version_of` its id.
    """

    def read(rows: cursors.Rows) -> tuple[UUID, ...]:
        found: dict[str, UUID] = dict(rows)
        for kind in kinds:
            if kind not in found:
                raise PolicyMissing(kind)
        return tuple(found[kind] for kind in kinds)

    values = {"kinds": list(kinds), "workspace": workspace_id}
    return cursors.Question(_CURRENT.format(columns="policy.kind, policy.id"), values, read)


def version_in_effect(workspace_id: UUID | None, kind: str) -> Version:
    """The version in effect now, in any session; one indexed read of its id. Raises `PolicyMissing`."""
    found = ids_in_effect(workspace_id, kind)
    cursors.ask(found)
    return version_of(found.answer[0])


@lru_cache(maxsize=MAX_KEPT)
def version_of(policy_id: UUID) -> Version:
    """A version by its id, read once a process. The id must come from a row or a read of the caller's own session:
    what is kept asks for no right to see it."""
    row = StoredPolicy.objects.get(pk=policy_id)
    return Version(row.id, row.kind, row.version, row.hash, document_of(row))


@lru_cache(maxsize=1)
def _columns() -> tuple[str, ...]:
    return tuple(field.attname for field in StoredPolicy._meta.concrete_fields)


def document_of(row: StoredPolicy) -> StrictModel:
    """The document of a version as the model that is registered for its kind."""
    return read_document(row.kind, row.document)


def read_document(kind: str, document: object) -> StrictModel:
    return _validated(kind_named(kind).model, json.dumps(document))


@lru_cache(maxsize=256)
def _validated(model: type[StrictModel], document: str) -> StrictModel:
    """Documents cannot be changed, so that one of each is enough."""
    return model.model_validate_json(document)


def newest_version(workspace_id: UUID | None, kind: str) -> StoredPolicy | None:
    """The last version published for the workspace (or default), in effect or still to come."""
    return policy_versions(workspace_id, kind).first()


def policy_versions(workspace_id: UUID | None, kind: str) -> QuerySet[StoredPolicy]:
    """All versions of the workspace (None: of the default), newest first."""
    found = StoredPolicy.objects.filter(kind=kind)
    found = found.filter(workspace_id=workspace_id) if workspace_id else found.filter(workspace=None)
    return found.order_by("-version")


def followed(workspace_id: UUID | None, kind: str) -> StoredPolicy:
    """What a next version follows: the newest of the workspace, else the default in effect."""
    return newest_version(workspace_id, kind) or current_policy(None, kind)
