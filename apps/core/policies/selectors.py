"""Reads of stored policies."""

import json
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.core.db import cursors
from apps.core.models import StoredPolicy
from apps.core.schemas import StrictModel

from .kinds import kind_named

# Two probes of one index: the workspace's newest in effect, then the default's.
_CURRENT = """
    SELECT {columns} FROM (
      (SELECT * FROM core_storedpolicy WHERE kind = %(kind)s AND workspace_id = %(workspace)s::uuid
         AND effective_from <= statement_timestamp() ORDER BY effective_from DESC LIMIT 1)
      UNION ALL
      (SELECT * FROM core_storedpolicy WHERE kind = %(kind)s AND workspace_id IS NULL
         AND effective_from <= statement_timestamp() ORDER BY effective_from DESC LIMIT 1)
    ) newest ORDER BY workspace_id NULLS LAST LIMIT 1
"""


class PolicyMissing(LookupError):
    """No version of this kind rules: the migration that writes its default has not run."""


def current_policy(workspace_id: UUID | None, kind: str) -> StoredPolicy:
    """The version in effect now, by the database's clock: the newest of the workspace, else of the default. In any
    session; one read. Raises `PolicyMissing`."""
    names = _columns()
    found = _probe(", ".join(names), workspace_id, kind)
    row = StoredPolicy.from_db(connection.alias, names, found)
    row.document = json.loads(row.document)
    return row


def current_policy_id(workspace_id: UUID | None, kind: str) -> UUID:
    """Which version is in effect now. A version never changes, so what was read of one may be kept by its id."""
    return UUID(str(_probe("id", workspace_id, kind)[0]))


def _probe(columns: str, workspace_id: UUID | None, kind: str) -> tuple[Any, ...]:
    values = {"kind": kind, "workspace": workspace_id}
    found: tuple[Any, ...] | None = cursors.run(
        _CURRENT.format(columns=columns), values, binary=False
    ).fetchone()
    if found is None:
        raise PolicyMissing(kind)
    return found


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
