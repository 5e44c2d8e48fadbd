"""What evidence is bound to: the release, and checksums of structure, rights and names of settings, as they are now."""

from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from sys import modules

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps.core import canonical

COLUMNS = """
  SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
"""
CONSTRAINTS = """
  SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
  WHERE connamespace = 'public'::regnamespace
"""
FUNCTIONS = "SELECT oid::regprocedure::text, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
TABLE_RIGHTS = """
  SELECT relname, relacl::text, relrowsecurity, relforcerowsecurity FROM pg_class
  WHERE relnamespace = 'public'::regnamespace
"""
COLUMN_RIGHTS = (
    "SELECT attrelid::regclass::text, attname, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL"
)
FUNCTION_RIGHTS = """
  SELECT oid::regprocedure::text, proacl::text, prosecdef FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace
"""
POLICIES = """
  SELECT tablename, policyname, cmd, roles::text, qual, with_check FROM pg_policies WHERE schemaname = 'public'
"""
ROLES = """
  SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles
  WHERE rolname LIKE 'memory\\_%'
"""
MEMBERSHIPS = "SELECT roleid::regrole::text, member::regrole::text, admin_option FROM pg_auth_members"


@dataclass(frozen=True, slots=True)
class Bindings:
    """`release` is empty where the build is unknown, and then nothing that is bound to one is current."""

    release: str
    schema_sha256: str
    roles_sha256: str
    settings_sha256: str

    def document(self) -> dict[str, str]:
        return asdict(self)


def bindings() -> Bindings:
    """As this process and its database have them now; in any session."""
    return Bindings(
        release=settings.RELEASE,
        schema_sha256=canonical.checksum(
            [migrations_of_release(), _digest(COLUMNS), _digest(CONSTRAINTS), _digest(FUNCTIONS)]
        ),
        roles_sha256=canonical.checksum(
            [
                _digest(sql)
                for sql in (TABLE_RIGHTS, COLUMN_RIGHTS, FUNCTION_RIGHTS, POLICIES, ROLES, MEMBERSHIPS)
            ]
        ),
        settings_sha256=canonical.checksum(sorted({name for name in dir(settings) if name.isupper()})),
    )


@cache
def migrations_of_release() -> str:
    """Checksum over names and bytes of the migrations of this build; they do not change while a process lives."""
    loader = MigrationLoader(None)
    found = {}
    for (app, name), migration in loader.disk_migrations.items():
        path = modules[type(migration).__module__].__file__
        found[f"{app}.{name}"] = sha256(Path(path).read_bytes()).hexdigest() if path else ""
    return canonical.checksum(found)


def _digest(sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT md5(coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE \"C\"), '')) "
            f"FROM (SELECT row_to_json(found)::text AS line FROM ({sql}) found) lines"
        )
        return str(cursor.fetchone()[0])
