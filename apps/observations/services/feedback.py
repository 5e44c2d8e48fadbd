"""Feedback on a hit of an observation. It restarts no clock and says nothing of what it did not find."""

import json
from typing import Literal

import structlog
from django.db import Error as StorageError
from django.db import connection

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.observations.admission import standing_of
from apps.observations.schemas import FeedbackRequest
from apps.observations.standing import LIMITS

log = structlog.get_logger(__name__)

Reason = Literal["observation_unavailable", "observation_or_hit_unavailable_retry"]
UNAVAILABLE: Reason = "observation_unavailable"
NOT_THERE: Reason = "observation_or_hit_unavailable_retry"

# One statement, so that not yet written, expired, foreign, invented and not a hit of it are one case.
RECORD = """
  INSERT INTO observations_observation_feedback AS known
    (id, workspace_id, principal_id, observation_id, hit_id, helpful, cited, withdrawn_at, created_at, updated_at)
  SELECT %(id)s, o.workspace_id, o.principal_id, o.id, %(hit)s, %(helpful)s, %(cited)s,
         CASE WHEN %(withdrawn)s THEN statement_timestamp() END, statement_timestamp(), statement_timestamp()
  FROM observations_observation o
  WHERE o.id = %(observation)s AND o.snapshot -> 'hits' @> %(wanted)s::jsonb
  ON CONFLICT (principal_id, observation_id, hit_id) DO UPDATE SET
    helpful = excluded.helpful, cited = coalesce(excluded.cited, known.cited),
    withdrawn_at = excluded.withdrawn_at, updated_at = excluded.updated_at
  RETURNING true
"""


def give_feedback(*, caller: PrincipalIdentity, given: FeedbackRequest) -> Reason | None:
    """Store it; None when it was, else why not. Outside of any session."""
    if standing_of(caller) is None:
        return UNAVAILABLE
    try:
        with principal_session(caller, limits=LIMITS):
            return None if _record(given) else NOT_THERE
    except StorageError:
        log.error("observation_feedback_not_stored")
        return UNAVAILABLE


def _record(given: FeedbackRequest) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            RECORD,
            {
                "id": uuid7(),
                "observation": given.observation_id,
                "hit": given.hit_id,
                "wanted": json.dumps([{"id": str(given.hit_id)}]),
                "helpful": given.helpful,
                "cited": given.cited,
                "withdrawn": given.withdrawn,
            },
        )
        return cursor.fetchone() is not None
