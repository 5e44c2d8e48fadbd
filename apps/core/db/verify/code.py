"""Family `functions_and_views`: code that runs with other rights than those of who calls it."""

from collections.abc import Iterator
from typing import Any

from django.db.backends.utils import CursorWrapper

from apps.core.db.operations import SEARCH_PATH, DefineFunction
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
        SELECT n.nspname, p.proname, p.oid::regprocedure::text, p.prosecdef, p.provolatile, p.prosrc,
               coalesce(p.proconfig, '{{}}'),
               ARRAY(SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                     FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                     WHERE a.grantee <> p.proowner ORDER BY 1)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND {NOT_EXTENSION.format("pg_proc", "p")}
        ORDER BY n.nspname <> 'public',
                 split_part(coalesce(obj_description(p.oid, 'pg_proc'), ''), ' ', 2) <> p.oid::text, p.oid
        """
    )
    declared = manifest().functions
    found: dict[str, list[Any]] = {}
    for schema, name, signature, definer, *rest in cursor.fetchall():
        # The one with our mark is compared; another one of the name is nobody's.
        if schema == "public" and name in declared and name not in found:
            found[name] = [definer, *rest]
        else:
            yield Difference(
                "functions_and_views", f"function {signature}", "none", "a function", loosens=definer
            )
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
