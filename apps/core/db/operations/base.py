"""What the operations have in common."""

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


def run(schema_editor: BaseDatabaseSchemaEditor, sql: str) -> None:
    """Execute literally: without parameters `%` means itself."""
    schema_editor.execute(sql, None)


class ModelOperation(Operation):
    """An operation on the table of `app`.`model` that leaves Django's state alone."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, app: str, model: str) -> None:
        self.app, self.model = app, model

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def table(self, state: ProjectState) -> str:
        return str(state.apps.get_model(self.app, self.model)._meta.db_table)
