"""The roles of the database and what they may do, as data. `provision` makes them, `verify` compares."""

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.models import Model

from apps.core.db.rowpolicy import API, APP, MAINTENANCE, MONITOR, OWNER, STAFF, Rights, RowPolicy, Unowned

PROBE = "memory_probe"


@dataclass(frozen=True, slots=True)
class Role:
    """A role: whether it signs in, and the roles that it may become (never by inheritance)."""

    name: str
    login: bool
    member_of: tuple[str, ...] = ()
    purpose: str = ""


ROLES: tuple[Role, ...] = (
    Role(OWNER, login=True, purpose="owns the schema; migrate and verify_roles"),
    Role(API, login=False, purpose="a principal's session"),
    Role(STAFF, login=False, purpose="a staff user's session"),
    Role(MAINTENANCE, login=False, purpose="runs the maintenance functions, reads no rows"),
    Role(MONITOR, login=False, purpose="runs the status functions, reads no rows"),
    Role(APP, login=True, member_of=(API, STAFF, MAINTENANCE, MONITOR), purpose="web, workers, beat"),
    Role(PROBE, login=True, member_of=(MONITOR,), purpose="monitors"),
)
LOGINS = tuple(role.name for role in ROLES if role.login)
SESSION_ROLES = (API, STAFF, MAINTENANCE, MONITOR)

# Tables of libraries: they carry no declaration of ours, so it stands here. Keys are "app_label.model".
LIBRARY_TABLES: dict[str, Unowned] = {
    "auth.permission": Unowned("names of permissions", app="r", api="r", staff="r"),
    "auth.group": Unowned("groups of staff", app="r", staff="rawd"),
    "auth.group_permissions": Unowned("rights of groups", app="r", staff="rawd"),
    "auth.user": Unowned("staff sign-in", app="raw", staff="rawd"),
    "auth.user_groups": Unowned("staff in groups", app="raw", staff="rawd"),
    "auth.user_user_permissions": Unowned("rights of staff", app="r", staff="rawd"),
    "contenttypes.contenttype": Unowned("names of models", app="r", api="r", staff="r"),
    "sessions.session": Unowned("staff sessions", app="rawd", staff="rawd"),
    "admin.logentry": Unowned("Django's own log, unused: the audit log is ours", staff="rad"),
    "django_celery_beat.solarschedule": Unowned("schedule", app="rawd", staff="r"),
    "django_celery_beat.intervalschedule": Unowned("schedule", app="rawd", staff="r"),
    "django_celery_beat.clockedschedule": Unowned("schedule", app="rawd", staff="r"),
    "django_celery_beat.crontabschedule": Unowned("schedule", app="rawd", staff="r"),
    "django_celery_beat.periodictasks": Unowned("schedule", app="rawd", staff="raw"),
    "django_celery_beat.periodictask": Unowned("schedule with staff overrides", app="rawd", staff="raw"),
    "guardian.userobjectpermission": Unowned("guardian's generic grants, unused: ours are direct", staff="r"),
    "guardian.groupobjectpermission": Unowned(
        "guardian's generic grants, unused: ours are direct", staff="r"
    ),
    "axes.accessattempt": Unowned("lock-out of sign-in", app="rawd", staff="rd"),
    "axes.accesslog": Unowned("sign-ins", app="rawd", staff="r"),
    "axes.accessfailurelog": Unowned("failed sign-ins", app="rawd", staff="r"),
    "axes.accessattemptexpiration": Unowned("lock-out of sign-in", app="rawd", staff="rd"),
    "otp_totp.totpdevice": Unowned("second factors of staff", app="rawd", staff="rawd"),
    "otp_static.staticdevice": Unowned("recovery codes of staff", app="rawd", staff="rawd"),
    "otp_static.statictoken": Unowned("recovery codes of staff", app="rawd", staff="rawd"),
}
# Not a model: Django's own record of migrations.
MIGRATIONS_TABLE = "django_migrations"
MIGRATIONS_RIGHTS: Rights = {APP: frozenset({"SELECT"}), STAFF: frozenset({"SELECT"})}


class Undeclared(LookupError):
    """A model says neither who owns its rows nor that nobody does."""


def declaration(model: type[Model]) -> RowPolicy:
    """The row policy that a model declares. Raises Undeclared."""
    found = getattr(model, "row_policy", None) or LIBRARY_TABLES.get(model._meta.label_lower)
    owner: Any = model._meta.auto_created
    if found is None and owner:
        found = LIBRARY_TABLES.get(f"{owner._meta.app_label}.{model._meta.model_name}")
    if found is None:
        raise Undeclared(f"{model._meta.label} declares no row_policy")
    return found


def managed_models() -> list[type[Model]]:
    """Every model with a table of its own, through tables of many-to-many fields included."""
    models = apps.get_models(include_auto_created=True)
    return [model for model in models if model._meta.managed and not model._meta.proxy]


@dataclass(frozen=True, slots=True)
class TableRights:
    """Rights on one table; `closed` are the columns that SELECT of memory_staff leaves out."""

    table: str
    rights: Rights
    columns: tuple[str, ...]
    closed: tuple[str, ...]

    def staff_columns(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column not in self.closed)


def _column(model: type[Model], name: str) -> str:
    field: Any = model._meta.get_field(name)
    return str(field.column)


def expected_rights() -> list[TableRights]:
    """What each role may do on each table, from the declarations."""
    found = []
    for model in managed_models():
        meta = model._meta
        columns = tuple(str(field.column) for field in meta.local_concrete_fields)
        closed = tuple(_column(model, name) for name in getattr(model, "raw_text", ()))
        found.append(TableRights(meta.db_table, declaration(model).rights(), columns, closed))
    found.append(TableRights(MIGRATIONS_TABLE, MIGRATIONS_RIGHTS, ("id", "app", "name", "applied"), ()))
    return found
