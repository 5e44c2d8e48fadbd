"""Keys that bind rows to their owner, and checks that Django would write as something else."""

import hashlib
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from apps.core.db.operations.base import ModelOperation, run


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

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        more = {"also": self.also} if self.also else {}
        return ("AddOwnerForeignKey", [self.app, self.model, self.field, self.to, self.on_delete], more)

    def constraint(self, table: str, column: str) -> str:
        name = f"{table}_{column}_owner_fk"
        return (
            name
            if len(name) <= 63
            else f"{table[:40]}_{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8]}_owner_fk"
        )

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(to_state)
        column = to_state.apps.get_model(self.app, self.model)._meta.get_field(self.field).column
        target_model = to_state.apps.get_model(self.to)
        target, key = target_model._meta.db_table, target_model._meta.pk.column
        action = f"SET NULL ({column})" if self.on_delete == "SET NULL" else self.on_delete
        more = "".join(f', "{name}"' for name in self.also)
        run(
            schema_editor,
            f'ALTER TABLE "{table}" ADD CONSTRAINT "{self.constraint(table, column)}" '
            f'FOREIGN KEY (principal_id, "{column}"{more}) REFERENCES "{target}" (principal_id, "{key}"{more}) '
            f"ON DELETE {action}",
        )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(from_state)
        column = from_state.apps.get_model(self.app, self.model)._meta.get_field(self.field).column
        run(schema_editor, f'ALTER TABLE "{table}" DROP CONSTRAINT "{self.constraint(table, column)}"')

    def describe(self) -> str:
        return f"Bind {self.app}.{self.model}.{self.field} to {self.to} of the same owner"


class BindOwner(ModelOperation):
    """The foreign key to the owner, for owned rows whose policy is written out (`ApplyRowPolicy` adds it to others).

    It is what erasure stands on: no row in flight outlives its principal.
    """

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return ("BindOwner", [self.app, self.model], {})

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(to_state)
        run(
            schema_editor,
            f'ALTER TABLE "{table}" ADD CONSTRAINT "{table}_owner_fk" '
            "FOREIGN KEY (workspace_id, principal_id) REFERENCES accounts_principal (workspace_id, id)",
        )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(from_state)
        run(schema_editor, f'ALTER TABLE "{table}" DROP CONSTRAINT "{table}_owner_fk"')

    def describe(self) -> str:
        return f"Bind {self.app}.{self.model} to its owner"


class AddCheck(ModelOperation):
    """A CHECK in SQL, where Django's own would say something else (it writes 2160 hours as 90 calendar days)."""

    def __init__(self, app: str, model: str, name: str, condition: str) -> None:
        super().__init__(app, model)
        self.name, self.condition = name, condition

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return ("AddCheck", [self.app, self.model, self.name, self.condition], {})

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(
            schema_editor,
            f'ALTER TABLE "{self.table(to_state)}" ADD CONSTRAINT "{self.name}" CHECK ({self.condition})',
        )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, f'ALTER TABLE "{self.table(from_state)}" DROP CONSTRAINT "{self.name}"')

    def describe(self) -> str:
        return f"Add check {self.name} to {self.app}.{self.model}"
