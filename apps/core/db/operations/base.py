"""What the operations have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model


class SqlOperation(Operation, ABC):
    """SQL both ways, which leaves Django's state alone: a subclass says the statements, each executed literally."""

    reduces_to_sql = True
    reversible = True

    @abstractmethod
    def forwards(self, state: ProjectState) -> Iterable[str]:
        """The statements that do it; `state` is the one after it."""

    @abstractmethod
    def backwards(self, state: ProjectState) -> Iterable[str]:
        """The statements that take it back; `state` is the one after it, which is where a reversal begins."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _execute(schema_editor, self.forwards(to_state))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _execute(schema_editor, self.backwards(from_state))


class ModelOperation(SqlOperation):
    """An operation on the table of `app`.`model`."""

    def __init__(self, app: str, model: str) -> None:
        self.app, self.model = app, model

    def state_model(self, state: ProjectState) -> type[Model]:
        return state.apps.get_model(self.app, self.model)

    def table(self, state: ProjectState) -> str:
        return self.state_model(state)._meta.db_table


def _execute(schema_editor: BaseDatabaseSchemaEditor, statements: Iterable[str]) -> None:
    for statement in statements:
        schema_editor.execute(statement, None)  # without parameters `%` means itself
