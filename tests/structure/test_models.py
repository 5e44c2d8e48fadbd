"""Walks every model: what it declares, and that the database has it so."""

import os
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from apps.core.db.roles import LIBRARY_TABLES, declaration, managed_models
from apps.core.db.rowpolicy import OwnerPolicy, Unowned
from apps.core.models import Declared
from apps.operations.erasure.rules import is_owned, rule_of, rules

pytestmark = pytest.mark.django_db

MODELS = sorted(managed_models(), key=lambda model: model._meta.label)
OURS = [model for model in MODELS if issubclass(model, Declared) or hasattr(model, "row_policy")]
OWNED = [model for model in OURS if is_owned(model)]
ERASURE = re.compile(r"delete|cascade|keep: .{5,}")


def label(model: Any) -> str:
    return str(model._meta.label)


@pytest.mark.parametrize("model", MODELS, ids=label)
def test_every_table_has_a_policy_or_is_declared_unowned(model) -> None:
    assert declaration(model)
    if model not in OURS:
        owner = model._meta.auto_created or model
        name = f"{owner._meta.app_label}.{model._meta.model_name}"
        assert name in LIBRARY_TABLES or model._meta.label_lower in LIBRARY_TABLES


@pytest.mark.parametrize("model", OURS, ids=label)
def test_every_model_says_how_long_and_how_it_goes(model) -> None:
    assert len(model.retention) > 3
    assert ERASURE.fullmatch(model.erasure), model.erasure
    assert isinstance(getattr(model, "export_columns", ()), tuple)
    fields = model._meta.get_fields()
    names = {field.name for field in fields} | {getattr(field, "attname", field.name) for field in fields}
    assert set(getattr(model, "export_columns", ())) <= names
    assert set(getattr(model, "raw_text", ())) <= names


@pytest.mark.parametrize("model", OWNED, ids=label)
def test_owned_rows_are_exported_or_raw_and_erased(model) -> None:
    assert rule_of(model) is not None, "rows of principals may not be kept"
    assert not isinstance(model.row_policy, Unowned)


@pytest.mark.parametrize("model", [m for m in OURS if isinstance(m.row_policy, OwnerPolicy)], ids=label)
def test_rows_under_an_owners_policy_have_an_owner_to_erasure(model) -> None:
    assert is_owned(model)


def test_deletion_goes_from_what_refers_to_what_is_referred_to() -> None:
    order = {rule.label: place for place, rule in enumerate(rules())}
    assert max(order, key=lambda name: order[name]) == "accounts.principal"
    for model in OWNED:
        for field in model._meta.local_fields:
            target = field.related_model
            if target in OWNED and target is not model:
                assert order[model._meta.label_lower] < order[target._meta.label_lower], field


def test_the_owners_list_of_erasable_tables_is_the_registry(admin_connection) -> None:
    query = (
        "SELECT name, label, owner_column, key_column, rule FROM operations_erasabletable ORDER BY position"
    )
    listed = admin_connection.execute(query).fetchall()
    assert listed == [(r.table, r.label, r.owner_column, r.key, r.rule) for r in rules()]


# Policies.


def policy_faults(connection: "psycopg.Connection[Any]") -> list[str]:
    """Where pg_policies and the flags of a database differ from what the models declare."""
    found = {
        (table, name): (command, tuple(roles), permissive)
        for table, name, command, roles, permissive in connection.execute(
            "SELECT tablename, policyname, cmd, roles::text[], permissive FROM pg_policies "
            "WHERE schemaname = 'public'"
        )
    }
    flags = {
        name: (enabled, forced)
        for name, enabled, forced in connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        )
    }
    return [*_missing(found, flags), *(f"{t}: {n} is not declared" for t, n in found.keys() - _declared())]


def _declared() -> set[tuple[str, str]]:
    return {
        (model._meta.db_table, policy.name)
        for model in OURS
        for policy in model.row_policy.policies(model._meta.db_table)
    }


def _missing(found: dict, flags: dict) -> Iterator[str]:
    for model in OURS:
        table = model._meta.db_table
        policies = model.row_policy.policies(table)
        if policies and flags.get(table) != (True, True):
            yield f"{table}: row security is not enabled and forced"
        for policy in policies:
            wanted = (policy.command, (policy.role,), "PERMISSIVE")
            if found.get((table, policy.name)) != wanted:
                yield f"{table}: {policy.name} is missing or another"


def test_the_policies_of_the_database_are_those_declared(admin_connection) -> None:
    assert policy_faults(admin_connection) == []


@pytest.fixture
def broken() -> Iterator["psycopg.Connection[Any]"]:
    """The administrator in a transaction that is rolled back, to break things in."""
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize(("table", "policy"), sorted(_declared()), ids="/".join)
def test_with_any_one_policy_dropped_the_comparison_fails(broken, table, policy) -> None:
    assert policy_faults(broken) == []
    broken.execute(sql.SQL("DROP POLICY {} ON {}").format(sql.Identifier(policy), sql.Identifier(table)))
    assert policy_faults(broken) == [f"{table}: {policy} is missing or another"]
    broken.rollback()


def test_with_row_security_off_or_a_policy_too_many_it_fails_too(broken) -> None:
    table = OWNED[0]._meta.db_table
    for change in (
        f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY',
        f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY',
        f'CREATE POLICY everyone ON "{table}" FOR SELECT TO memory_api USING (true)',
    ):
        broken.execute(change)
        assert len(policy_faults(broken)) == 1
        broken.rollback()


# Keys.


def constraints(connection: "psycopg.Connection[Any]", table: str) -> list[tuple[str, str]]:
    """Type and definition of every constraint of a table."""
    return connection.execute(
        "SELECT contype::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass",
        [f'"{table}"'],
    ).fetchall()


# Rows without a key to their owner, and why nothing of them can outlive it.
UNBOUND = {
    "graph.Term": "written in the transaction that writes a node, which is bound",
    "graph.Posting": "written in the transaction that writes a node, which is bound",
}
BOUND = [m for m in OWNED if isinstance(m.row_policy, OwnerPolicy) and m._meta.label not in UNBOUND]


@pytest.mark.parametrize("model", BOUND, ids=label)
def test_owned_rows_are_bound_to_their_owner(model, admin_connection) -> None:
    keys = [
        definition for kind, definition in constraints(admin_connection, model._meta.db_table) if kind == "f"
    ]
    assert any(
        definition.startswith(("FOREIGN KEY (workspace_id, principal_id)", "FOREIGN KEY (principal_id)"))
        and "REFERENCES accounts_principal" in definition
        for definition in keys
    ) or any(definition.startswith("FOREIGN KEY (principal_id, ") for definition in keys), keys


@pytest.mark.parametrize("model", OWNED, ids=label)
def test_references_between_owned_rows_name_the_owner(model, admin_connection) -> None:
    """A one-column key would ignore row policies and so point to another owner's row."""
    keys = [
        definition for kind, definition in constraints(admin_connection, model._meta.db_table) if kind == "f"
    ]
    for field in model._meta.local_fields:
        target = field.related_model
        if target not in OWNED or target._meta.label_lower == "accounts.principal":
            continue
        column = field.column
        with_owner = re.compile(rf"FOREIGN KEY \(principal_id, .*\b{column}\b.*\) REFERENCES ")
        assert any(with_owner.match(definition) for definition in keys), f"{field} has no key over the owner"
        plain = f"FOREIGN KEY ({column}) REFERENCES "
        assert not any(definition.startswith(plain) for definition in keys), f"{field} has a plain key, too"


@pytest.mark.parametrize("model", OWNED, ids=label)
def test_unique_keys_of_owned_rows_begin_with_the_owner(model, admin_connection) -> None:
    """A unique violation on a hidden row would tell that it exists."""
    if model._meta.label_lower.startswith("accounts."):
        pytest.skip("made by staff; the digest of a token is of 256 random bits")
    query = (
        "SELECT i.indisprimary, array(SELECT a.attname::text FROM unnest(i.indkey::int[]) WITH ORDINALITY k (n, o) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n ORDER BY k.o) "
        "FROM pg_index i WHERE i.indisunique AND i.indrelid = %s::regclass"
    )
    bound = {field.column for field in model._meta.local_fields if field.related_model in OWNED}
    pk = model._meta.pk
    for primary, columns in admin_connection.execute(query, [f'"{model._meta.db_table}"']):
        if primary and columns == [getattr(pk, "column", None)]:
            continue  # a random uuid
        assert "principal_id" in columns or bound & set(columns), columns


# Migrations.


def test_every_app_has_one_head() -> None:
    loader = MigrationLoader(None)
    apps = {app for app, _ in loader.graph.leaf_nodes()}
    assert {app: len(loader.graph.leaf_nodes(app)) for app in apps} == dict.fromkeys(apps, 1)


def test_no_change_of_a_model_lacks_its_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_migrations_are_named_by_meaning() -> None:
    loader = MigrationLoader(None)
    ours = {model._meta.app_label for model in OURS}
    for app, name in loader.disk_migrations:
        if app in ours:
            assert not re.fullmatch(r"\d{4}_(auto_.*|initial|.*_and_more|alter_.*)", name), f"{app}.{name}"
