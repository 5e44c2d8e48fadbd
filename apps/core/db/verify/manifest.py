"""What models and migrations declare beyond columns: functions, views, triggers, keys bound to owners, checks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from django.apps import apps
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import CheckConstraint, Model

from apps.core import canonical
from apps.core.db import marks
from apps.core.db.operations import (
    AddCheck,
    AddOwnerForeignKey,
    AddTrigger,
    ApplyRowPolicy,
    BindOwner,
    DefineFunction,
    DefineView,
)
from apps.core.db.roles import expected_rights, managed_models
from apps.core.db.rowpolicy import OwnerPolicy

Named = tuple[str, str]
"""A table, and the name of something on it."""


@dataclass(frozen=True, slots=True)
class Key:
    """A foreign key over several columns. `cleared`: the columns that SET NULL clears."""

    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]
    on_delete: str = "NO ACTION"
    cleared: tuple[str, ...] = ()

    def __str__(self) -> str:
        cleared = f" ({', '.join(self.cleared)})" if self.cleared else ""
        return (
            f"({', '.join(self.columns)}) to {self.target} ({', '.join(self.target_columns)}) "
            f"ON DELETE {self.on_delete}{cleared}"
        )


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK, as SQL of ours or as Django's constraint."""

    model: type[Model]
    declared: str | CheckConstraint

    def digest(self) -> str:
        """Names the declaration."""
        text = self.declared if isinstance(self.declared, str) else repr(self.declared.condition)
        return canonical.checksum(text)


@dataclass
class Manifest:
    """The last definition of each function and view, and every trigger, key and check, by name."""

    functions: dict[str, DefineFunction] = field(default_factory=dict)
    views: dict[str, DefineView] = field(default_factory=dict)
    triggers: dict[Named, AddTrigger] = field(default_factory=dict)
    keys: dict[Named, Key] = field(default_factory=dict)
    checks: dict[Named, Check] = field(default_factory=dict)

    def checksums(self) -> dict[str, str]:
        """Of each table, view and function that a mark stands for, by name."""
        tables = {entry.table: marks.table_checksum(entry.columns) for entry in expected_rights()}
        code: list[DefineFunction | DefineView] = [*self.functions.values(), *self.views.values()]
        return tables | {operation.name: operation.checksum() for operation in code}

    def names(self) -> dict[marks.Kind, list[str]]:
        tables = [entry.table for entry in expected_rights()]
        return {"TABLE": tables, "VIEW": list(self.views), "FUNCTION": list(self.functions)}


def _migrations() -> Iterator[Migration]:
    loader = MigrationLoader(None)
    seen = set()
    for leaf in loader.graph.leaf_nodes():
        for key in loader.graph.forwards_plan(leaf):
            if key not in seen:
                seen.add(key)
                yield loader.graph.nodes[key]


def _operations() -> Iterator[Operation]:
    for migration in _migrations():
        for operation in migration.operations:
            yield operation
            yield from getattr(operation, "database_operations", ())


def _table(app: str, model: str) -> str:
    return str(apps.get_model(app, model)._meta.db_table)


def _owner_key(app: str, model: str) -> tuple[Named, Key]:
    table = _table(app, model)
    wide = any(field.column == "workspace_id" for field in apps.get_model(app, model)._meta.local_fields)
    before = ("workspace_id",) if wide else ()
    return (table, f"{table}_owner_fk"), Key((*before, "principal_id"), "accounts_principal", (*before, "id"))


def _reference(operation: AddOwnerForeignKey) -> tuple[Named, Key]:
    model, target = apps.get_model(operation.app, operation.model), apps.get_model(operation.to)
    table, column = model._meta.db_table, str(model._meta.get_field(operation.field).column)
    return (table, operation.constraint(table, column)), Key(
        ("principal_id", column, *operation.also),
        target._meta.db_table,
        ("principal_id", str(target._meta.pk.column), *operation.also),
        operation.on_delete,
        (column,) if operation.on_delete == "SET NULL" else (),
    )


@lru_cache
def manifest() -> Manifest:
    found = Manifest()
    for operation in _operations():
        match operation:
            case DefineFunction():
                found.functions[operation.name] = operation
            case DefineView():
                found.views[operation.name] = operation
            case AddTrigger():
                found.triggers[_table(operation.app, operation.model), operation.name] = operation
            case BindOwner():
                found.keys.update([_owner_key(operation.app, operation.model)])
            case ApplyRowPolicy(bind_owner=True, previous=None) if isinstance(operation.policy, OwnerPolicy):
                found.keys.update([_owner_key(operation.app, operation.model)])
            case AddOwnerForeignKey():
                found.keys.update([_reference(operation)])
            case AddCheck():
                model = apps.get_model(operation.app, operation.model)
                found.checks[model._meta.db_table, operation.name] = Check(model, operation.condition)
    for model in managed_models():
        for constraint in model._meta.constraints:
            if isinstance(constraint, CheckConstraint):
                found.checks[model._meta.db_table, constraint.name] = Check(model, constraint)
    return found
