"""The migration operation that writes the default of a kind."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from apps.core import canonical
from apps.core.ids import uuid7


class PublishDefaultPolicy(Operation):
    """Append `document` as the next default version of `kind`, in effect at once.

    The document is written out in the migration, since the model may change later. Reversed, it takes back the last
    version of the default, if it still is this document.
    """

    reversible = True
    reduces_to_sql = False

    def __init__(self, kind: str, document: dict[str, Any], reason: str = "The platform's default.") -> None:
        self.kind, self.document, self.reason = kind, document, reason

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return ("PublishDefaultPolicy", [self.kind, self.document, self.reason], {})

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    @property
    def hash(self) -> str:
        return canonical.checksum({"kind": self.kind, "document": self.document})

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO core_storedpolicy (id, kind, version, document, reason, hash) "
                "SELECT %s, %s, coalesce(max(version), 0) + 1, %s::jsonb, %s, %s FROM core_storedpolicy "
                "WHERE kind = %s AND workspace_id IS NULL",
                [
                    uuid7(),
                    self.kind,
                    canonical.dumps(self.document).decode(),
                    self.reason,
                    self.hash,
                    self.kind,
                ],
            )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM core_storedpolicy p WHERE kind = %s AND workspace_id IS NULL AND hash = %s "
                "AND version = (SELECT max(version) FROM core_storedpolicy q "
                "WHERE q.kind = p.kind AND q.workspace_id IS NULL)",
                [self.kind, self.hash],
            )

    def describe(self) -> str:
        return f"Publish the default policy of kind {self.kind}"
