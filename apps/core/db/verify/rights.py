"""Family `rights`: what each role and PUBLIC may do with tables, columns, schemas, the database."""

from collections import defaultdict
from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import ROLES, expected_rights
from apps.core.db.rowpolicy import APP, OWNER, STAFF
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import manifest

# Rights that a right of ours implies nothing about, and that every owner grants itself (MAINTAIN: since 17).
IGNORED = {"MAINTAIN"}


def rights(cursor: CursorWrapper) -> Iterator[Difference]:
    yield from _tables(cursor)
    yield from _columns(cursor)
    yield from _schemas(cursor)
    yield from _database(cursor)
    yield from _sequences(cursor)
    yield from _defaults(cursor)
    yield from _large_objects(cursor)


def _tables(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT c.relname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND a.grantee <> c.relowner
        """
    )
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, grantee, privilege in cursor.fetchall():
        found[table, grantee].add(privilege)
    expected = {(view.name, role): {"SELECT"} for view in manifest().views.values() for role in view.select}
    for entry in expected_rights():
        for role, privileges in entry.rights.items():
            kept = set(privileges) - ({"SELECT"} if role == STAFF and entry.closed else set())
            if kept:
                expected[entry.table, role] = kept
    yield from _compare(found, expected, "table or view")


def _columns(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT c.relname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
               a.privilege_type || ' ' || t.attname
        FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid CROSS JOIN LATERAL aclexplode(t.attacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT t.attisdropped
        """
    )
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, grantee, privilege in cursor.fetchall():
        found[table, grantee].add(privilege)
    expected = {
        (entry.table, STAFF): {f"SELECT {column}" for column in entry.staff_columns()}
        for entry in expected_rights()
        if entry.closed and "SELECT" in entry.rights.get(STAFF, frozenset())
    }
    yield from _compare(found, expected, "columns of")


def _compare(
    found: dict[tuple[str, str], set[str]], expected: dict[tuple[str, str], set[str]], kind: str
) -> Iterator[Difference]:
    for table, role in sorted(found.keys() | expected.keys()):
        have = found.get((table, role), set()) - IGNORED
        want = expected.get((table, role), set())
        if more := sorted(have - want):
            yield Difference("rights", f"{kind} {table}, {role}", "no " + ", ".join(more), "granted")
        if less := sorted(want - have):
            yield Difference(
                "rights", f"{kind} {table}, {role}", ", ".join(less), "not granted", loosens=False
            )


def _schemas(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT n.nspname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a
        WHERE a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND n.nspname !~ '^pg_'
          AND n.nspname <> 'information_schema'
        """
    )
    for schema, grantee in cursor.fetchall():
        if grantee != OWNER:
            yield Difference("rights", f"schema {schema}, {grantee}", "no CREATE", "CREATE")


def _database(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_database d CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
        WHERE d.datname = current_database() AND a.grantee <> d.datdba
        """
    )
    logins = {role.name for role in ROLES if role.login}
    connecting = set()
    for grantee, privilege in cursor.fetchall():
        if privilege == "CONNECT" and grantee in logins:
            connecting.add(grantee)
        elif privilege != "CONNECT" or grantee == "PUBLIC":
            yield Difference("rights", f"database, {grantee}", f"no {privilege}", privilege)
    if APP not in connecting:
        yield Difference("rights", f"database, {APP}", "CONNECT", "not granted", loosens=False)


def _sequences(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT c.relname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S' AND a.grantee <> c.relowner
        """
    )
    for sequence, grantee, privilege in cursor.fetchall():
        yield Difference("rights", f"sequence {sequence}, {grantee}", f"no {privilege}", privilege)


def _defaults(cursor: CursorWrapper) -> Iterator[Difference]:
    """Default privileges would give a new table rights that nobody declared."""
    cursor.execute(
        """
        SELECT d.defaclrole::regrole::text, d.defaclobjtype,
               CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_default_acl d CROSS JOIN LATERAL aclexplode(d.defaclacl) a WHERE a.grantee <> d.defaclrole
        """
    )
    for owner, kind, grantee, privilege in cursor.fetchall():
        yield Difference(
            "rights", f"default privileges of {owner} ({kind}), {grantee}", f"no {privilege}", privilege
        )


def _large_objects(cursor: CursorWrapper) -> Iterator[Difference]:
    """Nothing of ours is one; a grant on one is a way past every policy."""
    cursor.execute(
        """
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_largeobject_metadata l CROSS JOIN LATERAL aclexplode(l.lomacl) a WHERE a.grantee <> l.lomowner
        """
    )
    for grantee, privilege in cursor.fetchall():
        yield Difference("rights", f"large objects, {grantee}", f"no {privilege}", privilege)
