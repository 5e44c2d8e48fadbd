"""What deletes a row must find the rows that point to it by an index, not by reading all of an owner's."""

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

# A column of a foreign key that is neither first in an index nor second behind the principal.
UNINDEXED = """
WITH columns AS (
  SELECT c.conrelid, c.conname, a.attnum FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) AS k(attnum)
  JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
  WHERE c.contype = 'f' AND a.attname NOT IN ('principal_id', 'workspace_id')),
indexed AS (
  SELECT i.indrelid, i.indkey[0] AS first, i.indkey[1] AS second, p.attnum AS principal FROM pg_index i
  LEFT JOIN pg_attribute p ON p.attrelid = i.indrelid AND p.attname = 'principal_id')
SELECT conname FROM columns GROUP BY conname, conrelid HAVING NOT bool_or(EXISTS (
  SELECT FROM indexed WHERE indrelid = conrelid AND (first = attnum OR (first = principal AND second = attnum))))
ORDER BY conname
"""
FEW = ("learning_activation_proposal_", "learning_ranking_profile_", "learning_transition_", "observations_")
"""Tables that hold a few rows a principal or run, written by people."""


def test_every_foreign_key_is_found_by_an_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(UNINDEXED)
        names = [name for (name,) in cursor.fetchall()]
    assert [name for name in names if not name.startswith(FEW)] == []
    assert all(any(name.startswith(few) for name in names) for few in FEW), "an exception that is none"
