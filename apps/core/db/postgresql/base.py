"""Django's PostgreSQL backend, whose migrations mark each table as made here, in the transaction that makes it."""

from django.db.backends.postgresql import base, schema
from django.db.models import Model

from apps.core.db import marks


class SchemaEditor(schema.DatabaseSchemaEditor):
    def create_model(self, model: type[Model]) -> None:
        super().create_model(model)
        table = model._meta.db_table
        checksum = marks.table_checksum(field.column for field in model._meta.local_concrete_fields)
        self.execute(marks.mark_sql("TABLE", table, checksum), None)


class DatabaseWrapper(base.DatabaseWrapper):
    SchemaEditorClass = SchemaEditor
