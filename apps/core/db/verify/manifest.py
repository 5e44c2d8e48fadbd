"""What the migrations declare beyond Django's state: functions, triggers, owner foreign keys, views."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from django.apps import apps
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from apps.core.db.operations import (
    AddCheck,
    AddOwnerForeignKey,
    AddTrigger,
    BindOwner,
    DefineFunction,
    DefineView,
)


@dataclass
class Manifest:
    """The last definition of each function and view, and every trigger, check and foreign key, by name."""

    functions: dict[str, DefineFunction] = field(default_factory=dict)
    triggers: set[tuple[str, str]] = field(default_factory=set)
    foreign_keys: dict[tuple[str, str], AddOwnerForeignKey] = field(default_factory=dict)
    owner_keys: set[tuple[str, str]] = field(default_factory=set)
    checks: dict[tuple[str, str], AddCheck] = field(default_factory=dict)
    views: dict[str, DefineView] = field(default_factory=dict)


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


@lru_cache
def manifest() -> Manifest:
    found = Manifest()
    for operation in _operations():
        match operation:
            case DefineFunction():
                found.functions[operation.name] = operation
            case AddTrigger():
                table = apps.get_model(operation.app, operation.model)._meta.db_table
                found.triggers.add((table, operation.name))
            case DefineView():
                found.views[operation.name] = operation
            case BindOwner():
                table = apps.get_model(operation.app, operation.model)._meta.db_table
                found.owner_keys.add((table, f"{table}_owner_fk"))
            case AddCheck():
                table = apps.get_model(operation.app, operation.model)._meta.db_table
                found.checks[table, operation.name] = operation
            case AddOwnerForeignKey():
                model = apps.get_model(operation.app, operation.model)
                column = str(model._meta.get_field(operation.field).column)
                name = operation.constraint(model._meta.db_table, column)
                found.foreign_keys[model._meta.db_table, name] = operation
    return found
