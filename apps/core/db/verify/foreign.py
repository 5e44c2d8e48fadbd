"""Family `foreign_objects`: what this bootstrap did not make, and copies that expiry cannot reach."""

from collections.abc import Iterator
from typing import Any

from django.db.backends.utils import CursorWrapper

from apps.core.db import marks
from apps.core.db.operations import AddTrigger
from apps.core.db.roles import ROLES
from apps.core.db.rowpolicy import OWNER
from apps.core.db.verify.code import NOT_EXTENSION
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import manifest

BITS = {"ROW": 1, "BEFORE": 2, "INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}
"""Of `pg_trigger.tgtype`."""
ENABLED = {"O", "A"}


def foreign_objects(cursor: CursorWrapper) -> Iterator[Difference]:
    """Everything in our schema belongs to the owner and was made by us; nothing copies rows elsewhere."""
    yield from _owners(cursor)
    yield from made_by_others(cursor)
    yield from _shadows(cursor)
    yield from _triggers(cursor)
    yield from _copies(cursor)


def _owners(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        f"""
        SELECT 'relation ' || c.relname, pg_get_userbyid(c.relowner) FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
          AND {NOT_EXTENSION.format("pg_class", "c")} AND pg_get_userbyid(c.relowner) <> '{OWNER}'
        UNION ALL
        SELECT 'function ' || p.proname, pg_get_userbyid(p.proowner) FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND {NOT_EXTENSION.format("pg_proc", "p")}
          AND pg_get_userbyid(p.proowner) <> '{OWNER}'
        UNION ALL SELECT 'schema public', pg_get_userbyid(nspowner) FROM pg_namespace
        WHERE nspname = 'public' AND pg_get_userbyid(nspowner) <> '{OWNER}'
        UNION ALL SELECT 'database', pg_get_userbyid(datdba) FROM pg_database
        WHERE datname = current_database() AND pg_get_userbyid(datdba) <> '{OWNER}'
        """
    )
    for name, owner in cursor.fetchall():
        yield Difference("foreign_objects", name, f"owned by {OWNER}", f"owned by {owner}")


def made_by_others(cursor: Any) -> Iterator[Difference]:
    """Roles and objects that are named like ours and carry no mark of their making, or that of another one."""
    checksums = marks.role_checksums() | manifest().checksums()
    names = {**manifest().names(), "ROLE": [role.name for role in ROLES]}
    found = marks.existing(cursor, names)
    known = {one.name for one in found if one.ours}
    for one in found:
        if not one.ours:
            if one.kind == "FUNCTION" and one.name in known:
                continue  # an overload, which the family of functions names
            mark = "a mark of another one" if one.mark else "no mark"
            yield Difference("foreign_objects", str(one), "made by this bootstrap", mark)
        elif not one.current(checksums):
            yield Difference(
                "foreign_objects", str(one), "marked with this release's manifest", "another's", loosens=False
            )


def _shadows(cursor: CursorWrapper) -> Iterator[Difference]:
    """A relation of another schema with the name of ours: a search path decides which one is meant."""
    names = [name for kind, named in manifest().names().items() if kind != "FUNCTION" for name in named]
    cursor.execute(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('public', 'information_schema') "
        "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = ANY (%s)",
        [names],
    )
    for (name,) in cursor.fetchall():
        yield Difference("foreign_objects", f"relation {name}", "none", "there")


def _type_of(trigger: AddTrigger) -> int:
    timing, *events = trigger.when.split()
    words = [timing, trigger.each, *(word for word in events if word in BITS)]
    return sum(BITS.get(word, 0) for word in words)


def _triggers(cursor: CursorWrapper) -> Iterator[Difference]:
    """Ours, and those by which PostgreSQL keeps foreign keys: switched off, a key cascades no more."""
    cursor.execute(
        """
        SELECT c.relname, t.tgname, t.tgenabled, t.tgtype, p.proname, k.conname
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
        LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint
        WHERE c.relnamespace = 'public'::regnamespace AND (NOT t.tgisinternal OR t.tgenabled NOT IN ('O', 'A'))
        """
    )
    found, declared = {}, manifest().triggers
    for table, name, enabled, kind, function, key in cursor.fetchall():
        if key is not None:
            yield Difference("foreign_objects", f"trigger of key {key} on {table}", "enabled", "disabled")
        else:
            found[table, name] = enabled, kind, function
    for table, name in sorted(found.keys() - declared.keys()):
        yield Difference("foreign_objects", f"trigger {name} on {table}", "none", "a trigger")
    for (table, name), trigger in sorted(declared.items(), key=lambda item: item[0]):
        enabled, kind, function = found.get((table, name), (None, 0, ""))
        if enabled not in ENABLED:
            yield Difference(
                "foreign_objects",
                f"trigger {name} on {table}",
                "enabled",
                "none" if enabled is None else "disabled",
            )
        elif (kind, function) != (_type_of(trigger), trigger.function):
            wanted = f"{trigger.when} FOR EACH {trigger.each} EXECUTE {trigger.function}"
            yield Difference("foreign_objects", f"trigger {name} on {table}", wanted, "another trigger")


def _copies(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        f"""
        SELECT 'rule ' || r.rulename || ' on ' || c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'public'::regnamespace AND r.rulename <> '_RETURN'
        UNION ALL SELECT 'child ' || inhrelid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
        UNION ALL SELECT 'materialized view ' || oid::regclass::text FROM pg_class c
        WHERE c.relkind = 'm' AND {NOT_EXTENSION.format("pg_class", "c")}
        UNION ALL SELECT 'publication ' || pubname || ' of all tables' FROM pg_publication WHERE puballtables
        UNION ALL SELECT 'publication ' || t.pubname || ' of ' || t.tablename
        FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname AND NOT p.puballtables
        WHERE t.schemaname = 'public'
        """
    )
    for (name,) in cursor.fetchall():
        yield Difference("foreign_objects", name, "none", "there")
