"""Family `policies`: row security as declared on every table, and references bound to their owner, checks."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import declaration, managed_models
from apps.core.db.rowpolicy import Policy
from apps.core.db.signatures import form_digest
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import Key, manifest

ACTIONS = {"c": "CASCADE", "n": "SET NULL", "a": "NO ACTION", "r": "RESTRICT", "d": "SET DEFAULT"}
COMMANDS = {"*": "ALL", "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}


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
    """One difference a policy, with all that is other about it."""
    digest, *forms = (note or "").split() or [""]
    as_declared = digest == policy.digest(table) and text in forms
    aspects = [
        (f"FOR {policy.command}", f"FOR {COMMANDS[command]}"),
        ("PERMISSIVE", "PERMISSIVE" if permissive else "RESTRICTIVE"),
        (f"TO {policy.role}", "TO " + ", ".join(roles)),
        (
            "the declared USING and WITH CHECK",
            "the declared USING and WITH CHECK" if as_declared else "another text",
        ),
    ]
    other = [(wanted, found) for wanted, found in aspects if wanted != found]
    if other:
        expected, found = (", ".join(words) for words in zip(*other, strict=True))
        yield Difference("policies", where, expected, found)


def _foreign_keys(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT c.relname, k.conname, k.convalidated, t.relname, k.confdeltype, k.condeferrable,
               ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (no, at)
                     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.no ORDER BY u.at),
               ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (no, at)
                     JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.no ORDER BY u.at),
               ARRAY(SELECT a.attname::text FROM unnest(k.confdelsetcols) u (no)
                     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.no)
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
        WHERE k.contype = 'f' AND c.relnamespace = 'public'::regnamespace
        """
    )
    found = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    for (table, name), wanted in sorted(manifest().keys.items()):
        where = f"foreign key {name} on {table}"
        row = found.get((table, name))
        if row is None:
            yield Difference("policies", where, "the key", "none")
            continue
        validated, target, action, deferrable, columns, target_columns, cleared = row
        have = Key(tuple(columns), target, tuple(target_columns), ACTIONS[action], tuple(cleared))
        if not validated:
            yield Difference("policies", where, "validated", "not validated")
        if have != wanted or deferrable:
            yield Difference("policies", where, str(wanted), f"{have}{' DEFERRABLE' * deferrable}")


def _checks(cursor: CursorWrapper) -> Iterator[Difference]:
    """Deadlines, what may be kept at all, and which words a column may hold."""
    cursor.execute(
        "SELECT c.relname, k.conname, k.convalidated, pg_get_expr(k.conbin, k.conrelid), "
        "coalesce(obj_description(k.oid, 'pg_constraint'), '') "
        "FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid "
        "WHERE k.contype = 'c' AND c.relnamespace = 'public'::regnamespace"
    )
    found = {(table, name): rest for table, name, *rest in cursor.fetchall()}
    for (table, name), check in sorted(manifest().checks.items(), key=lambda item: item[0]):
        where = f"check {name} on {table}"
        if (table, name) not in found:
            yield Difference("policies", where, "the check", "none")
            continue
        validated, expression, signed = found[table, name]
        digest, *forms = signed.split() or [""]
        if not validated:
            yield Difference("policies", where, "validated", "not validated")
        elif digest != check.digest() or form_digest(expression) not in forms:
            yield Difference("policies", where, "the declared condition", "another condition")
