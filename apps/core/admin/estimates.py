"""How many rows, out of the planner's statistics: no page counts."""

import json
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, models


def estimated_rows(rows: models.QuerySet[Any]) -> int | None:
    """Rows that PostgreSQL expects the query to give, in one EXPLAIN. None where it cannot be said."""
    try:
        query, params = rows.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return 0
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + query, params)
        plan = cursor.fetchone()[0]
    document = json.loads(plan) if isinstance(plan, str) else plan
    return int(document[0]["Plan"]["Plan Rows"])
