"""Row security of a table, as its model declares it."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from apps.core.db.operations.base import ModelOperation, run
from apps.core.db.rowpolicy import OwnerPolicy, RowPolicy


class ApplyRowPolicy(ModelOperation):
    """Enable and force row security on a table and create its policies, as the model declares them.

    The declaration is written out in the migration, so that a change of policy shows in the diff.
    """

    def __init__(
        self,
        app: str,
        model: str,
        policy: RowPolicy,
        *,
        bind_owner: bool = True,
        previous: RowPolicy | None = None,
    ) -> None:
        """`bind_owner=False` leaves out the owner's foreign key: for rows written by the ten thousand, whose
        owner the policy alone fixes and whose erasure is a rule of its own.

        `previous` is the policy that a change takes the place of: a reversal brings it back, and the owner's
        foreign key is left as it is both ways.
        """
        super().__init__(app, model)
        self.policy, self.bind_owner, self.previous = policy, bind_owner, previous

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        more: dict[str, Any] = {} if self.bind_owner else {"bind_owner": False}
        if self.previous is not None:
            more["previous"] = self.previous
        return ("ApplyRowPolicy", [self.app, self.model, self.policy], more)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(to_state)
        drop_policies(schema_editor, table)
        run(schema_editor, f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY')
        run(schema_editor, f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY')
        self._create(schema_editor, table, self.policy)
        if self.bind_owner and self.previous is None and isinstance(self.policy, OwnerPolicy):
            self._bind_owner(schema_editor, table, to_state)

    def _create(self, schema_editor: BaseDatabaseSchemaEditor, table: str, declared: RowPolicy) -> None:
        for policy in declared.policies(table):
            run(schema_editor, policy.sql(table))
            sign_policy(schema_editor, table, policy.name, policy.digest(table))

    def _bind_owner(self, schema_editor: BaseDatabaseSchemaEditor, table: str, state: ProjectState) -> None:
        """The owner exists, and its workspace is the row's: a foreign key over both."""
        names = {f.column for f in state.apps.get_model(self.app, self.model)._meta.local_fields}
        columns = "workspace_id, principal_id" if "workspace_id" in names else "principal_id"
        target = "workspace_id, id" if "workspace_id" in names else "id"
        run(schema_editor, f'ALTER TABLE "{table}" DROP CONSTRAINT IF EXISTS "{table}_owner_fk"')
        run(
            schema_editor,
            f'ALTER TABLE "{table}" ADD CONSTRAINT "{table}_owner_fk" '
            f"FOREIGN KEY ({columns}) REFERENCES accounts_principal ({target})",
        )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table(from_state)
        drop_policies(schema_editor, table)
        if self.previous is not None:
            self._create(schema_editor, table, self.previous)
            return
        run(schema_editor, f'ALTER TABLE "{table}" DROP CONSTRAINT IF EXISTS "{table}_owner_fk"')
        # Row security stays on: without a policy the table is closed, which is the safe side.

    def describe(self) -> str:
        return f"Apply the row policy of {self.app}.{self.model}"


def drop_policies(schema_editor: BaseDatabaseSchemaEditor, table: str) -> None:
    run(
        schema_editor,
        f"""
        DO $do$ DECLARE found record; BEGIN
          FOR found IN SELECT polname FROM pg_policy WHERE polrelid = '"{table}"'::regclass LOOP
            EXECUTE format('DROP POLICY %I ON "{table}"', found.polname);
          END LOOP;
        END $do$
        """,
    )


def sign_policy(schema_editor: BaseDatabaseSchemaEditor, table: str, name: str, digest: str) -> None:
    """Note on the policy which declaration made it and how PostgreSQL wrote it down.

    PostgreSQL rewrites expressions, so a later ALTER POLICY is seen by comparing its own text with the note.
    """
    run(
        schema_editor,
        f"""
        DO $do$ BEGIN
          EXECUTE format('COMMENT ON POLICY %I ON "{table}" IS %L', '{name}', '{digest} ' || (
            SELECT md5(coalesce(pg_get_expr(polqual, polrelid), '') || '|' ||
                       coalesce(pg_get_expr(polwithcheck, polrelid), ''))
            FROM pg_policy WHERE polrelid = '"{table}"'::regclass AND polname = '{name}'));
        END $do$
        """,
    )
