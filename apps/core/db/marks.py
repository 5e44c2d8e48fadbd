"""Marks: which roles, tables, views and functions this bootstrap made.

A mark is the comment `<name> <oid> <checksum>`, written in the transaction that makes what it marks. A same-named one
that somebody else made has none, and one that a restore brought back names another oid: neither is taken for ours.
`provision_roles --adopt` is how an operator says that they are. The checksum is that of the declaration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import sql

from apps.core import canonical
from apps.core.db.roles import ROLES, Role

Kind = Literal["ROLE", "TABLE", "VIEW", "FUNCTION"]

# Kind, name, oid, how SQL names it, mark. Overloads of a function are several.
EXISTING = """
  SELECT 'ROLE', rolname, oid, quote_ident(rolname), shobj_description(oid, 'pg_authid')
  FROM pg_roles WHERE rolname = ANY (%(roles)s)
  UNION ALL
  SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relname, oid, 'public.' || quote_ident(relname),
         obj_description(oid, 'pg_class')
  FROM pg_class WHERE relnamespace = to_regnamespace('public') AND relkind IN ('r', 'p', 'v')
    AND relname = ANY (%(relations)s)
  UNION ALL
  SELECT 'FUNCTION', proname, oid, oid::regprocedure::text, obj_description(oid, 'pg_proc')
  FROM pg_proc WHERE pronamespace = to_regnamespace('public') AND proname = ANY (%(functions)s)
"""
AS_SQL = {
    "ROLE": ("'{}'::regrole", "{}"),
    "TABLE": ("'public.{}'::regclass", "public.{}"),
    "VIEW": ("'public.{}'::regclass", "public.{}"),
    "FUNCTION": ("'public.{}'::regproc", "public.{}"),
}


@dataclass(frozen=True, slots=True)
class Existing:
    """Something in the database that is named like ours. `identity`: how SQL names it."""

    kind: Kind
    name: str
    oid: int
    identity: str
    mark: str | None

    def __str__(self) -> str:
        return f"{self.kind.lower()} {self.identity}"

    @property
    def ours(self) -> bool:
        return bool(self.mark) and str(self.mark).split()[:-1] == [self.name, str(self.oid)]

    def current(self, checksums: Mapping[str, str]) -> bool:
        return self.mark == f"{self.name} {self.oid} {checksums.get(self.name)}"


def role_checksum(role: Role) -> str:
    return canonical.checksum([role.name, role.login, *role.member_of])


def table_checksum(columns: Iterable[str | None]) -> str:
    return canonical.checksum(sorted(map(str, columns)))


def code_checksum(text: str) -> str:
    return canonical.checksum(text)


def mark_sql(kind: Kind, name: str, checksum: str) -> str:
    """Mark the one thing of that name as it is now. The name needs no quotes."""
    oid, named = (form.format(name) for form in AS_SQL[kind])
    return (
        f"DO $do$ BEGIN EXECUTE format('COMMENT ON {kind} {named} IS %L', "
        f"'{name} ' || {oid}::oid || ' {checksum}'); END $do$"
    )


def refuse_strangers_sql(function: str) -> str:
    """Stop a migration that would replace a function which has no mark of ours."""
    return (
        "DO $do$ BEGIN IF EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'public'::regnamespace "
        f"AND proname = '{function}' "
        "AND split_part(coalesce(obj_description(oid, 'pg_proc'), ''), ' ', 2) <> oid::text) "
        f"THEN RAISE EXCEPTION 'function {function} is there, but not made by this bootstrap' "
        "USING HINT = 'Look at it; provision_roles --adopt takes it.'; END IF; END $do$"
    )


def role_checksums() -> dict[str, str]:
    return {role.name: role_checksum(role) for role in ROLES}


def existing(cursor: Any, names: Mapping[Kind, Iterable[str]]) -> list[Existing]:
    """What the database has under these names, in the catalogues' order of kind."""
    relations = [*names.get("TABLE", ()), *names.get("VIEW", ())]
    values = {
        "roles": list(names.get("ROLE", ())),
        "relations": relations,
        "functions": list(names.get("FUNCTION", ())),
    }
    cursor.execute(EXISTING, values)
    return [Existing(*row) for row in cursor.fetchall()]


def comment(cursor: Any, found: Iterable[Existing], checksums: Mapping[str, str]) -> None:
    """Write the marks of these anew, in one statement. `cursor` is of who may comment on them."""
    statements = list(_comments(found, checksums))
    if statements:
        cursor.execute(sql.SQL("; ").join(statements).as_string(None))


def _comments(found: Iterable[Existing], checksums: Mapping[str, str]) -> Iterator[sql.Composed]:
    for one in found:
        mark = f"{one.name} {one.oid} {checksums[one.name]}"
        target = sql.SQL("COMMENT ON " + one.kind + " " + one.identity)
        yield target + sql.SQL(" IS {}").format(sql.Literal(mark))
