"""Keys that bind rows to their owner, and checks that Django would write as something else."""

import hashlib
from collections.abc import Iterable

from django.db.migrations.state import ProjectState
from django.db.models import ForeignKey, Model

from apps.core.db.operations.base import ModelOperation


class AddOwnerForeignKey(ModelOperation):
    """A reference between owned rows: FOREIGN KEY (principal_id, x_id) REFERENCES target (principal_id, id).

    A one-column key would ignore row policies and so point to another owner's row.
    `field` is the model's field, `to` is "app.Model"; `on_delete` is SQL: CASCADE, SET NULL (of the column) or
    NO ACTION. `also` are columns that both tables have and that must be equal, too; the target needs a unique key
    over all of them.
    """

    def __init__(
        self,
        app: str,
        model: str,
        field: str,
        to: str,
        on_delete: str = "CASCADE",
        also: tuple[str, ...] = (),
    ) -> None:
        super().__init__(app, model)
        self.field, self.to, self.on_delete, self.also = field, to, on_delete, also

    def constraint(self, table: str, column: str) -> str:
        name = f"{table}_{column}_owner_fk"
        return (
            name
            if len(name) <= 63
            else f"{table[:40]}_{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8]}_owner_fk"
        )

    def _column(self, state: ProjectState) -> str:
        field = self.state_model(state)._meta.get_field(self.field)
        assert isinstance(field, ForeignKey)
        return str(field.column)

    def forwards(self, state: ProjectState) -> Iterable[str]:
        table, column = self.table(state), self._column(state)
        target_model = state.apps.get_model(self.to)
        target, key = target_model._meta.db_table, target_model._meta.pk.column
        action = f"SET NULL ({column})" if self.on_delete == "SET NULL" else self.on_delete
        more = "".join(f', "{name}"' for name in self.also)
        yield (
            f'ALTER TABLE "{table}" ADD CONSTRAINT "{self.constraint(table, column)}" '
            f'FOREIGN KEY (principal_id, "{column}"{more}) REFERENCES "{target}" (principal_id, "{key}"{more}) '
            f"ON DELETE {action}"
        )

    def backwards(self, state: ProjectState) -> Iterable[str]:
        table, column = self.table(state), self._column(state)
        yield f'ALTER TABLE "{table}" DROP CONSTRAINT "{self.constraint(table, column)}"'

    def describe(self) -> str:
        return f"Bind {self.app}.{self.model}.{self.field} to {self.to} of the same owner"


class BindOwner(ModelOperation):
    """The foreign key to the owner, for owned rows whose policy is written out (`ApplyRowPolicy` adds it to others).

    It is what erasure stands on: no row in flight outlives its principal.
    """

    def forwards(self, state: ProjectState) -> Iterable[str]:
        yield add_owner_key(self.state_model(state))

    def backwards(self, state: ProjectState) -> Iterable[str]:
        yield drop_owner_key(self.table(state))

    def describe(self) -> str:
        return f"Bind {self.app}.{self.model} to its owner"


class AddCheck(ModelOperation):
    """A CHECK in SQL, where Django's own would say something else (it writes 2160 hours as 90 calendar days)."""

    def __init__(self, app: str, model: str, name: str, condition: str) -> None:
        super().__init__(app, model)
        self.name, self.condition = name, condition

    def forwards(self, state: ProjectState) -> Iterable[str]:
        yield f'ALTER TABLE "{self.table(state)}" ADD CONSTRAINT "{self.name}" CHECK ({self.condition})'

    def backwards(self, state: ProjectState) -> Iterable[str]:
        yield f'ALTER TABLE "{self.table(state)}" DROP CONSTRAINT "{self.name}"'

    def describe(self) -> str:
        return f"Add check {self.name} to {self.app}.{self.model}"


def add_owner_key(model: type[Model]) -> str:
    """The owner exists, and its workspace is the row's, where rows have one: a foreign key over both."""
    table = model._meta.db_table
    wide = any(field.column == "workspace_id" for field in model._meta.local_fields)
    columns, target = ("workspace_id, principal_id", "workspace_id, id") if wide else ("principal_id", "id")
    return (
        f'ALTER TABLE "{table}" ADD CONSTRAINT "{table}_owner_fk" '
        f"FOREIGN KEY ({columns}) REFERENCES accounts_principal ({target})"
    )


def drop_owner_key(table: str, *, if_exists: bool = False) -> str:
    return f'ALTER TABLE "{table}" DROP CONSTRAINT {"IF EXISTS " if if_exists else ""}"{table}_owner_fk"'
