"""Families `functions_and_views` and `foreign_objects`: code that runs with other rights, and strangers' objects."""

from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.operations import SEARCH_PATH, DefineFunction
from apps.core.db.rowpolicy import OWNER
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import manifest

VOLATILITY = {"i": "IMMUTABLE", "s": "STABLE", "v": "VOLATILE"}
# Objects of an extension come and go with it; they are not ours to own.
NOT_EXTENSION = (
    "NOT EXISTS (SELECT FROM pg_depend d "
    "WHERE d.classid = '{}'::regclass AND d.objid = {}.oid AND d.deptype = 'e')"
)


def functions_and_views(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        f"""
        SELECT p.proname, p.prosecdef, p.provolatile, p.prosrc, coalesce(p.proconfig, '{{}}'),
               ARRAY(SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                     FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                     WHERE a.grantee <> p.proowner ORDER BY 1)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND {NOT_EXTENSION.format("pg_proc", "p")}
        """
    )
    found = {name: rest for name, *rest in cursor.fetchall()}
    declared = manifest().functions
    for name in sorted(found.keys() - declared.keys()):
        definer = found[name][0]
        yield Difference("functions_and_views", f"function {name}", "none", "a function", loosens=definer)
    for name, operation in sorted(declared.items()):
        if name not in found:
            yield Difference("functions_and_views", f"function {name}", "the function", "none", loosens=False)
        else:
            yield from _function(operation, *found[name])
    yield from _views(cursor)


def _function(
    declared: DefineFunction,
    definer: bool,
    volatility: str,
    source: str,
    config: list[str],
    executors: list[str],
) -> Iterator[Difference]:
    where = f"function {declared.name}"
    if more := sorted(set(executors) - set(declared.execute)):
        yield Difference("functions_and_views", where, "no EXECUTE for " + ", ".join(more), "EXECUTE")
    if less := sorted(set(declared.execute) - set(executors)):
        yield Difference(
            "functions_and_views", where, "EXECUTE for " + ", ".join(less), "none", loosens=False
        )
    if definer != declared.security_definer:
        yield Difference(
            "functions_and_views", where, f"definer {declared.security_definer}", f"definer {definer}"
        )
    if config != [f"search_path={SEARCH_PATH}"]:
        yield Difference("functions_and_views", where, f"search_path {SEARCH_PATH}", "another")
    if VOLATILITY[volatility] != declared.volatility:
        yield Difference("functions_and_views", where, declared.volatility, VOLATILITY[volatility])
    if source != declared.body:
        yield Difference("functions_and_views", where, "the declared body", "another body")


def _views(cursor: CursorWrapper) -> Iterator[Difference]:
    declared = manifest().views
    cursor.execute(
        "SELECT relname, relkind = 'v', coalesce(reloptions, '{}') FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace AND (relkind = 'v' OR relname = ANY (%s))",
        [list(declared)],
    )
    found = {name: (is_view, options) for name, is_view, options in cursor.fetchall()}
    for name in sorted(found.keys() | declared.keys()):
        is_view, options = found.get(name, (None, []))
        where = f"view {name}"
        if is_view is None:
            yield Difference("functions_and_views", where, "the view", "none", loosens=False)
        elif not is_view:
            yield Difference("functions_and_views", where, "a view", "another kind of relation")
        elif not {"security_invoker=true", "security_invoker=on"} & set(options):
            yield Difference("functions_and_views", where, "security_invoker", "the owner's rights")
        elif name not in declared:
            yield Difference("functions_and_views", where, "none", "a view", loosens=False)


def foreign_objects(cursor: CursorWrapper) -> Iterator[Difference]:
    """Everything in our schema belongs to the owner; nothing copies rows to where expiry cannot reach."""
    cursor.execute(
        f"""
        SELECT 'relation ' || c.relname, pg_get_userbyid(c.relowner) FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
          AND {NOT_EXTENSION.format("pg_class", "c")} AND pg_get_userbyid(c.relowner) <> '{OWNER}'
        UNION ALL
        SELECT 'function ' || p.proname, pg_get_userbyid(p.proowner) FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND {NOT_EXTENSION.format("pg_proc", "p")}
          AND pg_get_userbyid(p.proowner) <> '{OWNER}'
        """
    )
    for name, owner in cursor.fetchall():
        yield Difference("foreign_objects", name, f"owned by {OWNER}", f"owned by {owner}")
    yield from _triggers(cursor)
    yield from _copies(cursor)


def _triggers(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        "SELECT c.relname, t.tgname, t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace"
    )
    found = {(table, name): enabled for table, name, enabled in cursor.fetchall()}
    declared = manifest().triggers
    for table, name in sorted(found.keys() - declared):
        yield Difference("foreign_objects", f"trigger {name} on {table}", "none", "a trigger")
    for table, name in sorted(declared):
        if found.get((table, name), "missing") not in {"O", "A"}:
            yield Difference(
                "foreign_objects", f"trigger {name} on {table}", "enabled", "missing or disabled"
            )


def _copies(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT 'rule ' || r.rulename || ' on ' || c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
        UNION ALL SELECT 'child ' || inhrelid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
        UNION ALL SELECT 'publication ' || pubname || ' of ' || tablename FROM pg_publication_tables
        WHERE schemaname = 'public'
        """
    )
    for (name,) in cursor.fetchall():
        yield Difference("foreign_objects", name, "none", "there")
