"""Signs the CHECKs of our tables, so that an altered one is told from the declared one.

PostgreSQL rewrites a condition when it stores it, and once more when a dump is read back. The comment on a check
names its declaration and the digests of all forms that the condition takes. They come from the declaration alone, in a
table of the transaction's own: what stands on the real table has no part in them.
"""

import hashlib
from collections import defaultdict

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

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
