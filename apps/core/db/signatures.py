"""Signs the policies and CHECKs of our tables, so that an altered one is told from the declared one.

PostgreSQL rewrites a condition when it stores it, and once more when a dump is read back. The comment on a policy or
check names its declaration and the digests of all forms that the condition takes. They come from the declaration alone,
in a table of the transaction's own: what stands on the real table has no part in them.
"""

import hashlib
from collections import defaultdict
from dataclasses import replace

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from apps.core.db.roles import declaration, managed_models
from apps.core.db.rowpolicy import Policy
from apps.core.db.verify.manifest import Check, manifest

FORMS = 4
"""Rewriting settles after the second at most; a condition that never did would have no sign."""
SIGNED = """
  SELECT c.relname, k.conname, coalesce(split_part(obj_description(k.oid, 'pg_constraint'), ' ', 1), '')
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
  WHERE k.contype = 'c' AND c.relnamespace = 'public'::regnamespace
"""
SCRATCH = "core_check_scratch"
WRITTEN = f"""
  SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint
  WHERE conrelid = 'pg_temp.{SCRATCH}'::regclass AND conname = %s
"""


COMPLETE = "all"
"""Ends the note on a policy whose forms are all named; the migration that makes it names the first alone."""
NOTES = """
  SELECT c.relname, p.polname, coalesce(obj_description(p.oid, 'pg_policy'), '')
  FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = 'public'::regnamespace
"""
WRITTEN_POLICY = """
  SELECT pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid),
         md5(coalesce(pg_get_expr(polqual, polrelid), '') || '|' || coalesce(pg_get_expr(polwithcheck, polrelid), ''))
  FROM pg_policy WHERE polrelid = 'pg_temp."{}"'::regclass
"""


def sign_policies() -> None:
    """Name all forms of each policy that a migration of ours signed. Run by the owner after migrating; idempotent."""
    declared = {
        (model._meta.db_table, policy.name): policy
        for model in managed_models()
        for policy in declaration(model).policies(model._meta.db_table)
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(NOTES)
        waiting: dict[str, list[Policy]] = defaultdict(list)
        for table, name, note in cursor.fetchall():
            policy = declared.get((table, name))
            if (
                policy is not None
                and note.split()[:1] == [policy.digest(table)]
                and COMPLETE not in note.split()
            ):
                waiting[table].append(policy)
        for table, policies in waiting.items():
            # Of the same name: a policy may name its table, and stands on the one that is found first.
            cursor.execute(f'CREATE TEMPORARY TABLE "{table}" (LIKE public."{table}") ON COMMIT DROP')
            for policy in policies:
                note = " ".join([policy.digest(table), *_policy_forms(cursor, table, policy), COMPLETE])
                cursor.execute(f'COMMENT ON POLICY "{policy.name}" ON public."{table}" IS \'{note}\'')
            cursor.execute(f'DROP TABLE pg_temp."{table}"')


def _policy_forms(cursor: CursorWrapper, table: str, policy: Policy) -> list[str]:
    digests: list[str] = []
    for _ in range(FORMS):
        cursor.execute(policy.sql(table), None)
        cursor.execute(WRITTEN_POLICY.format(table), None)
        using, check, digest = cursor.fetchone()
        cursor.execute(f'DROP POLICY "{policy.name}" ON pg_temp."{table}"')
        if digest in digests:
            break
        digests.append(digest)
        policy = replace(policy, using=using, check=check)
    return digests


def form_digest(expression: str) -> str:
    return hashlib.sha256(expression.encode()).hexdigest()[:32]


def sign_checks() -> None:
    """Sign what has no sign of the present declaration. Run by the owner after migrating; idempotent."""
    declared = manifest().checks
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(SIGNED)
        waiting: dict[str, list[tuple[str, Check]]] = defaultdict(list)
        for table, name, digest in cursor.fetchall():
            check = declared.get((table, name))
            if check is not None and digest != check.digest():
                waiting[table].append((name, check))
        for table, checks in waiting.items():
            _sign(cursor, table, checks)


def _sign(cursor: CursorWrapper, table: str, checks: list[tuple[str, Check]]) -> None:
    cursor.execute(f'CREATE TEMPORARY TABLE {SCRATCH} (LIKE public."{table}") ON COMMIT DROP')
    for name, check in checks:
        sign = " ".join([check.digest(), *_forms(cursor, name, _clause(name, check))])
        cursor.execute(
            sql.SQL("COMMENT ON CONSTRAINT {} ON public.{} IS {}")
            .format(sql.Identifier(name), sql.Identifier(table), sql.Literal(sign))
            .as_string(None)
        )
    cursor.execute(f"DROP TABLE {SCRATCH}")


def _clause(name: str, check: Check) -> str:
    if isinstance(check.declared, str):
        return f'CONSTRAINT "{name}" CHECK ({check.declared})'
    return str(check.declared.constraint_sql(check.model, connection.schema_editor()))


def _forms(cursor: CursorWrapper, name: str, clause: str) -> list[str]:
    """Digests of the condition as PostgreSQL writes it, and as it writes what it wrote."""
    digests: list[str] = []
    for _ in range(FORMS):
        cursor.execute(f"ALTER TABLE {SCRATCH} ADD {clause}", None)
        cursor.execute(WRITTEN, [name])
        (condition,) = cursor.fetchone()
        cursor.execute(f'ALTER TABLE {SCRATCH} DROP CONSTRAINT "{name}"')
        digest = form_digest(condition)
        if digest in digests:
            return digests
        digests.append(digest)
        clause = f'CONSTRAINT "{name}" CHECK ({condition})'
    return digests
