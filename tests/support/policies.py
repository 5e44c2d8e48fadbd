"""A stand-in policy kind, for what every kind must hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from psycopg.types.json import Jsonb
from pydantic import Field

from apps.core.db.sessions import staff_session
from apps.core.ids import uuid7
from apps.core.policies import (
    Change,
    Kind,
    current_policy,
    newest_version,
    policy_hash,
    publish_policy,
    register_kind,
    stored_document,
    unregister_kind,
)
from apps.core.problems import StateConflict
from apps.core.schemas import StrictModel

NAME = "trial"


class Days(StrictModel):
    trace: Annotated[int, Field(ge=1, le=90)] = 90
    text: Annotated[int, Field(ge=1, le=90)] = 30


class Trial(StrictModel):
    half_life_s: Annotated[float, Field(gt=0)] = 3600.0
    weights: list[float] = [0.5, 0.5]
    retention_days: Days = Days()


DEFAULT = stored_document(Trial())


def refuse_zero_weights(change: Change) -> None:
    if change.changes("/weights") and not any(change.after.weights):  # type: ignore[attr-defined]
        raise StateConflict("Some weight has to be there", code="policy_fixed")


@contextmanager
def trial_kind(owner: Any) -> Iterator[Kind]:
    """A kind of the suite's own, with the default that its migration would have written. `owner` is a connection."""
    found = Kind(
        name=NAME,
        model=Trial,
        default=Trial(),
        permission="manage_profiles",
        field_permissions={"/retention_days": "review_retention"},
        refusal=refuse_zero_weights,
        preview=lambda change: {"changed": len(change.fields)},
    )
    owner.execute("DELETE FROM core_storedpolicy WHERE kind = %s", [NAME])
    insert_default(owner)
    register_kind(found)
    try:
        yield found
    finally:
        unregister_kind(NAME)
        owner.execute("DELETE FROM core_storedpolicy WHERE kind = %s AND workspace_id IS NULL", [NAME])


def insert_default(owner: Any) -> None:
    owner.execute(
        "INSERT INTO core_storedpolicy (id, kind, version, document, reason, hash) VALUES (%s, %s, 1, %s, '', %s)",
        [uuid7(), NAME, Jsonb(DEFAULT), policy_hash(NAME, DEFAULT)],
    )


def publish(user, workspace, document=None, **more):
    with staff_session(user):
        return publish_within(workspace, document, **more)


def publish_within(workspace, document=None, *, if_match="newest", reason="for the test", **more):
    workspace_id = workspace.pk if workspace else None
    if if_match == "newest":
        newest = newest_version(workspace_id, NAME) or current_policy(None, NAME)
        if_match = newest.hash
    return publish_policy(
        workspace_id=workspace_id,
        kind=NAME,
        document=DEFAULT | (document or {}),
        if_match=if_match,
        reason=reason,
        **more,
    )
