"""Family `policies`: row security as declared on every table, and references bound to their owner, checks."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import declaration, managed_models
from apps.core.db.rowpolicy import Policy
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import manifest

ACTIONS = {"CASCADE": "c", "SET NULL": "n", "NO ACTION": "a", "RESTRICT": "r"}


def policies(cursor: CursorWrapper) -> Iterator[Difference]:
    declared = {
        model._meta.db_table: declaration(model).policies(model._meta.db_table) for model in managed_models()
    }
    yield from _row_security(cursor, declared)
    yield from _compare(cursor, declared)
    yield from _foreign_keys(cursor)
    yield from _checks(cursor)


def _row_security(cursor: CursorWrapper, declared: dict[str, tuple[Policy, ...]]) -> Iterator[Difference]:
    cursor.execute(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    state = {name: (enabled, forced) for name, enabled, forced in cursor.fetchall()}
    for table, wanted in sorted(declared.items()):
        if table not in state:
            yield Difference("policies", f"table {table}", "the table", "none", loosens=False)
        elif wanted:
            for on, word in zip(state[table], ("ENABLE", "FORCE"), strict=True):
                if not on:
                    yield Difference("policies", f"table {table}", f"{word} ROW LEVEL SECURITY", "off")


def _compare(cursor: CursorWrapper, declared: dict[str, tuple[Policy, ...]]) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT c.relname, p.polname, p.polcmd, p.polpermissive,
               ARRAY(SELECT r::regrole::text FROM unnest(p.polroles) r),
               obj_description(p.oid, 'pg_policy'),
               md5(coalesce(pg_get_expr(p.polqual, p.polrelid), '') || '|' ||
                   coalesce(pg_get_expr(p.polwithcheck, p.polrelid), ''))
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = 'public'::regnamespace
        """
    )
    found = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    expected = {(table, policy.name): policy for table, wanted in declared.items() for policy in wanted}
    for key in sorted(found.keys() - expected.keys()):
        yield Difference("policies", f"policy {key[1]} on {key[0]}", "none", "a policy")
    for (table, name), policy in sorted(expected.items()):
        row = found.get((table, name))
        where = f"policy {name} on {table}"
        if row is None:
            # Without a policy nobody sees rows, but the owner's functions (expiry, erasure) would miss them.
            yield Difference("policies", where, "the policy", "none")
            continue
        yield from _one(where, policy, table, *row)


def _one(
    where: str,
    policy: Policy,
    table: str,
    command: str,
    permissive: bool,
    roles: list[str],
    note: str | None,
    text: str,
) -> Iterator[Difference]:
    letters = {"ALL": "*", "SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}
    if command != letters[policy.command] or not permissive:
        yield Difference("policies", where, f"FOR {policy.command}", f"command {command}")
    if roles != [policy.role]:
        yield Difference("policies", where, f"TO {policy.role}", "TO " + ", ".join(roles))
    if note != f"{policy.digest(table)} {text}":
        yield Difference("policies", where, "the declared USING and WITH CHECK", "another text")


def _foreign_keys(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        "SELECT c.relname, k.conname, k.convalidated, k.confdeltype, cardinality(k.conkey) FROM pg_constraint k "
        "JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'f' AND c.relnamespace = 'public'::regnamespace"
    )
    found = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    declared = {
        key: (2 + len(operation.also), operation.on_delete)
        for key, operation in manifest().foreign_keys.items()
    }
    declared |= dict.fromkeys(manifest().owner_keys, (2, "NO ACTION"))
    for (table, name), (width, on_delete) in sorted(declared.items()):
        where = f"foreign key {name} on {table}"
        row = found.get((table, name))
        if row is None:
            yield Difference("policies", where, "the key", "none")
            continue
        validated, action, columns = row
        if not validated:
            yield Difference("policies", where, "validated", "not validated")
        if columns != width or action != ACTIONS[on_delete]:
            yield Difference("policies", where, f"{width} columns, {on_delete}", f"{columns}, {action}")


def _checks(cursor: CursorWrapper) -> Iterator[Difference]:
    """Those written in SQL: deadlines, and what may be kept at all. Django compares its own."""
    cursor.execute(
        "SELECT c.relname, k.conname, k.convalidated FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
        "WHERE k.contype = 'c' AND c.relnamespace = 'public'::regnamespace"
    )
    found = {(table, name): validated for table, name, validated in cursor.fetchall()}
    for table, name in sorted(manifest().checks):
        where = f"check {name} on {table}"
        if (table, name) not in found:
            yield Difference("policies", where, "the check", "none")
        elif not found[table, name]:
            yield Difference("policies", where, "validated", "not validated")
