"""Evidence that is due is found by its age, before a hold is asked for each row of it.

The condition on holds names columns of the row alone, so the planner asked it of every row, due or not.
"""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction

FORMER = import_module("apps.learning.migrations.0004_lifetime_of_evidence")
HOLD_KINDS, PRINCIPAL_SPACE = FORMER.HOLD_KINDS, FORMER.TRACES.PRINCIPAL_SPACE

UNUSED = (
    " AND NOT EXISTS (SELECT FROM public.learning_holdout h "
    "WHERE h.principal_id = aged.principal_id AND h.{column} = aged.id)"
)
HOLDOUTS = ("learning_holdout", "requested_at", "")
EVALUATIONS = ("learning_evaluation", "requested_at", UNUSED.format(column="evaluation_id"))
QUERY_SETS = ("learning_query_set", "created_at", UNUSED.format(column="query_set_id"))
KINDS = (HOLDOUTS, EVALUATIONS, QUERY_SETS)


def due(kind, space="space.id", until="space.until", more=""):
    """Rows of the kind in that workspace, as old as that and oldest first, that no hold covers and nothing stands on.

    OFFSET 0 keeps the age before the holds.
    """
    table, at, free = kind
    return f"""
      SELECT aged.id, aged.principal_id, aged.at FROM (
        SELECT old.id, old.principal_id, old.{at} AS at FROM public.{table} old
        WHERE old.workspace_id = {space} AND old.{at} <= {until}{more}
        ORDER BY old.{at} OFFSET 0) aged
      WHERE NOT public.operations_held(ARRAY['traces.principal'], ARRAY[aged.principal_id]){free}
    """


def any_due(kind):
    return f"(SELECT due.principal_id FROM ({due(kind, more=' AND old.principal_id <> ALL (passed)')}) due LIMIT 1)"


def delete_due(kind, counter):
    own = due(kind, "own_space", "until", " AND old.principal_id = owner")
    return f"""
      DELETE FROM public.{kind[0]} gone WHERE gone.id IN (SELECT due.id FROM ({own}) due LIMIT most);
      GET DIAGNOSTICS {counter} = ROW_COUNT;
    """


# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows. Holdouts go
# before what they stand on.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 1000));
  owner uuid;
  own_space uuid;
  until timestamptz;
  passed uuid[] := '{{}}';
BEGIN
  holdouts := 0; evaluations := 0; query_sets := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT found.principal_id, space.id, space.until INTO owner, own_space, until
    FROM {FORMER.SPACE.format(till=FORMER.TILL)} CROSS JOIN LATERAL (
      {" UNION ALL ".join(any_due(kind) for kind in KINDS)}) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({PRINCIPAL_SPACE}, hashtext(owner::text));
      {delete_due(HOLDOUTS, "holdouts")}
      {delete_due(EVALUATIONS, "evaluations")}
      {delete_due(QUERY_SETS, "query_sets")}
      EXIT WHEN holdouts + evaluations + query_sets > 0;
    EXCEPTION
      WHEN query_canceled OR lock_not_available OR deadlock_detected OR admin_shutdown THEN RAISE;
      WHEN OTHERS THEN holdouts := 0; evaluations := 0; query_sets := 0; failed := failed + 1;
    END;
  END LOOP;
  RETURN NEXT;
END
"""


def late(kind):
    return (
        f"SELECT '{kind[0]}' AS kind, space.until - due.at AS age "
        f"FROM {FORMER.SPACE.format(till='statement_timestamp()')} CROSS JOIN LATERAL ({due(kind)}) due"
    )


STATUS = f"""
  SELECT count(*) FILTER (WHERE late.kind = 'learning_evaluation'),
    count(*) FILTER (WHERE late.kind = 'learning_holdout'),
    count(*) FILTER (WHERE late.kind = 'learning_query_set'),
    coalesce(max(extract(epoch FROM late.age))::float8, 0)
  FROM ({" UNION ALL ".join(late(kind) for kind in (EVALUATIONS, HOLDOUTS, QUERY_SETS))}) late
"""


def expire(body, previous=None):
    return DefineFunction(
        "learning_expire",
        "batch int, cutoff timestamptz",
        "TABLE (holdouts bigint, evaluations bigint, query_sets bigint, failed bigint)",
        body,
        language="plpgsql",
        execute=("memory_maintenance",),
        previous=previous,
    )


def status(body, previous=None):
    return DefineFunction(
        "learning_status",
        "",
        "TABLE (expired_evaluations bigint, expired_holdouts bigint, expired_query_sets bigint, "
        "oldest_overdue_seconds float8)",
        body,
        volatility="STABLE",
        execute=("memory_monitor",),
        previous=previous,
    )


class Migration(migrations.Migration):
    dependencies = [("learning", "0008_evaluations_of_imported_receipts")]

    operations = [
        expire(EXPIRE, expire(FORMER.EXPIRE).sql()),
        status(STATUS, status(FORMER.STATUS).sql()),
    ]
