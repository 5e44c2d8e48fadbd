"""The registry of what an erasure deletes, from the models' declarations, in the order of deletion.

A model whose rows are made anew by the deletion of others (statistics kept by a trigger) names those in
`erasure_after = ("graph.node",)`, and is deleted behind them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final, Literal

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import connection, models

from apps.core.db.roles import managed_models

DELETE: Final = "delete"
CASCADE: Final = "cascade"
KEEP: Final = "keep: "
PRINCIPAL: Final = "accounts.principal"


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """One table with rows of principals. `key` is its uuid key, empty where it has none of its own."""

    table: str
    label: str
    owner_column: str
    key: str
    rule: Literal["delete", "cascade"]


class UndeclaredErasure(LookupError):
    """A model with rows of principals says nothing of their erasure, or keeps them."""


def is_owned(model: type[models.Model]) -> bool:
    """Whether rows of the model belong to a principal."""
    return bool(_owner_column(model))


def rule_of(model: type[models.Model]) -> ErasureRule | None:
    """The rule of a model; None where rows have no owner or are kept. Raises UndeclaredErasure."""
    declared = getattr(model, "erasure", None)
    owner = _owner_column(model)
    if not owner:
        return None
    if declared not in (DELETE, CASCADE):
        raise UndeclaredErasure(f"{model._meta.label} has an owner and declares erasure {declared!r}")
    key = model._meta.pk
    column = key.column if isinstance(key, models.UUIDField) else ""
    return ErasureRule(model._meta.db_table, model._meta.label_lower, owner, column or "", declared)


def _owner_column(model: type[models.Model]) -> str:
    if model._meta.label_lower == PRINCIPAL:
        return str(model._meta.pk.column)
    try:
        field = model._meta.get_field("principal")
    except FieldDoesNotExist:
        return ""
    target = getattr(field, "related_model", None)
    if getattr(getattr(target, "_meta", None), "label_lower", "") != PRINCIPAL:
        return ""
    return str(getattr(field, "column", ""))


def rules(among: Iterable[type[models.Model]] | None = None) -> list[ErasureRule]:
    """All rules in the order of deletion: what refers comes before what it refers to, the principal last."""
    candidates = list(managed_models() if among is None else among)
    owned = {model: rule for model in candidates if (rule := rule_of(model)) is not None}
    return [owned[model] for model in _in_order(list(owned)) if model in owned]


def _in_order(owned: list[type[models.Model]]) -> Iterator[type[models.Model]]:
    graph: TopologicalSorter[type[models.Model]] = TopologicalSorter()
    # By name first, so that the order does not change from one process to the next.
    for model in sorted(owned, key=lambda found: found._meta.label):
        graph.add(model, *(apps.get_model(label) for label in getattr(model, "erasure_after", ())))
        for field in model._meta.local_fields:
            target = field.related_model
            if target in owned and target is not model:
                graph.add(target, model)
    try:
        yield from graph.static_order()
    except CycleError as error:
        names = ", ".join(model._meta.label for model in error.args[1])
        raise UndeclaredErasure(f"These models refer to each other in a circle: {names}") from error


def write_table() -> None:
    """Make the table of erasable tables equal to the registry. As the owner, after every migrate."""
    found = rules()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('public.operations_erasabletable') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("DELETE FROM operations_erasabletable")
        cursor.executemany(
            "INSERT INTO operations_erasabletable (name, label, owner_column, key_column, rule, position) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (rule.table, rule.label, rule.owner_column, rule.key, rule.rule, position)
                for position, rule in enumerate(found)
            ],
        )
