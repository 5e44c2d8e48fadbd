"""Family `rights`: what each role and PUBLIC may do with tables, columns, schemas, the database."""

from collections import defaultdict
from collections.abc import Iterator

from django.db.backends.utils import CursorWrapper

from apps.core.db.roles import LOGINS, PROBE, ROLES, SESSION_ROLES, expected_rights
from apps.core.db.rowpolicy import APP, OWNER, STAFF
from apps.core.db.verify.code import NOT_EXTENSION
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.manifest import manifest

USE_PUBLIC = {APP, PROBE, *SESSION_ROLES}
"""The roles that may use the schema `public`; the owner has it."""


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
    # A relation that is not there is another family's to tell.
    cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    there = {name for (name,) in cursor.fetchall()}
    expected = {key: rights for key, rights in expected.items() if key[0] in there}
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
        have = found.get((table, role), set())
        want = expected.get((table, role), set())
        if more := sorted(have - want):
            yield Difference("rights", f"{kind} {table}, {role}", "no " + ", ".join(more), "granted")
        if less := sorted(want - have):
            yield Difference(
                "rights", f"{kind} {table}, {role}", ", ".join(less), "not granted", loosens=False
            )


def _schemas(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        f"""
        SELECT n.nspname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type,
               n.nspname = 'public' AND a.grantee = n.nspowner
        FROM pg_namespace n
        CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
        LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
          AND (n.nspname = 'public' OR r.rolsuper IS NOT true)
          AND {NOT_EXTENSION.format("pg_namespace", "n")}
        """
    )
    missing = set(USE_PUBLIC)
    ours = {role.name for role in ROLES}
    for schema, grantee, privilege, owns in sorted(cursor.fetchall()):
        if owns or (schema == "public" and privilege == "USAGE" and grantee in USE_PUBLIC):
            missing.discard(grantee)  # who owns it is looked at with the objects
        elif grantee == OWNER or (schema != "public" and grantee not in ours and privilege == "USAGE"):
            continue
        else:
            yield Difference("rights", f"schema {schema}, {grantee}", f"no {privilege}", privilege)
    for role in sorted(missing):
        yield Difference("rights", f"schema public, {role}", "USAGE", "not granted", loosens=False)


def _database(cursor: CursorWrapper) -> Iterator[Difference]:
    cursor.execute(
        """
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_database d CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
        WHERE d.datname = current_database() AND a.grantee <> d.datdba
        """
    )
    for grantee, privilege in cursor.fetchall():
        if privilege != "CONNECT" or grantee == "PUBLIC":
            yield Difference("rights", f"database, {grantee}", f"no {privilege}", privilege)
    cursor.execute(
        "SELECT r.rolname FROM pg_roles r JOIN pg_database d ON d.datname = current_database() "
        "WHERE r.rolname = ANY (%s) AND (r.rolname <> %s OR d.datdba = r.oid) "
        "AND NOT has_database_privilege(r.oid, d.oid, 'CONNECT')",
        [list(LOGINS), OWNER],
    )
    for (login,) in sorted(cursor.fetchall()):
        yield Difference("rights", f"database, {login}", "CONNECT", "not granted", loosens=False)


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
    """Default privileges would give a new object rights that nobody declared; a function gives PUBLIC its own."""
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
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_default_acl WHERE defaclrole = to_regrole(%s) AND defaclnamespace = 0 "
        "AND defaclobjtype = 'f')",
        [OWNER],
    )
    if not cursor.fetchone()[0]:
        yield Difference(
            "rights", f"default privileges of {OWNER} (f), PUBLIC", "no EXECUTE", "PostgreSQL's own default"
        )


def _large_objects(cursor: CursorWrapper) -> Iterator[Difference]:
    """Nothing of ours is one; one that a role of ours may read is a way past every policy."""
    cursor.execute(
        """
        SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, a.privilege_type
        FROM pg_largeobject_metadata l CROSS JOIN LATERAL aclexplode(l.lomacl) a WHERE a.grantee <> l.lomowner
        """
    )
    for grantee, privilege in cursor.fetchall():
        yield Difference("rights", f"large objects, {grantee}", f"no {privilege}", privilege)
    cursor.execute(
        "SELECT DISTINCT lomowner::regrole::text FROM pg_largeobject_metadata "
        "WHERE lomowner::regrole::text = ANY (%s)",
        [[role.name for role in ROLES]],
    )
    for (owner,) in cursor.fetchall():
        yield Difference("rights", f"large objects, {owner}", "none", "owned")
