"""Migration operations for what Django does not model: row policies, owner foreign keys, functions, triggers.

All are reversible, and all are data: `manifest` reads them back from the migrations to verify a database.
"""

import hashlib
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from apps.core.db.rowpolicy import OwnerPolicy, RowPolicy

SEARCH_PATH = "pg_catalog, pg_temp"


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


class DefineFunction(Operation):
    """Create or replace a function with a fixed search path and no right for PUBLIC.

    `previous` is the definition that a reversal brings back (None: the function is dropped).
    """

    reduces_to_sql = True
    reversible = True

    def __init__(
        self,
        name: str,
        args: str,
        returns: str,
        body: str,
        *,
        execute: tuple[str, ...] = (),
        security_definer: bool = True,
        volatility: str = "VOLATILE",
        language: str = "sql",
        previous: str | None = None,
    ) -> None:
        self.name, self.args, self.returns, self.body = name, args, returns, body
        self.execute, self.security_definer = execute, security_definer
        self.volatility, self.language, self.previous = volatility, language, previous

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        more = {
            "execute": self.execute,
            "security_definer": self.security_definer,
            "volatility": self.volatility,
            "language": self.language,
            "previous": self.previous,
        }
        return ("DefineFunction", [self.name, self.args, self.returns, self.body], more)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def sql(self) -> str:
        security = "SECURITY DEFINER" if self.security_definer else "SECURITY INVOKER"
        return (
            f"CREATE OR REPLACE FUNCTION public.{self.name}({self.args}) RETURNS {self.returns} "
            f"LANGUAGE {self.language} {self.volatility} {security} SET search_path = {SEARCH_PATH} "
            f"AS $function${self.body}$function$"
        )

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, self.sql())
        run(schema_editor, f"REVOKE ALL ON FUNCTION public.{self.name} FROM PUBLIC")
        if self.execute:
            run(schema_editor, f"GRANT EXECUTE ON FUNCTION public.{self.name} TO {', '.join(self.execute)}")

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, self.previous or f"DROP FUNCTION public.{self.name}")

    def describe(self) -> str:
        return f"Define function {self.name}"


class AddTrigger(ModelOperation):
    """A trigger of a table; `when` is e.g. "BEFORE UPDATE", `function` takes no arguments.

    `referencing` names transition tables, e.g. "OLD TABLE AS old_rows".
    """

    def __init__(
        self,
        app: str,
        model: str,
        name: str,
        when: str,
        function: str,
        each: str = "ROW",
        referencing: str = "",
    ) -> None:
        super().__init__(app, model)
        self.name, self.when, self.function, self.each = name, when, function, each
        self.referencing = referencing

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        more = {"referencing": self.referencing} if self.referencing else {}
        return ("AddTrigger", [self.app, self.model, self.name, self.when, self.function, self.each], more)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        transition = f"REFERENCING {self.referencing} " if self.referencing else ""
        run(
            schema_editor,
            f'CREATE TRIGGER "{self.name}" {self.when} ON "{self.table(to_state)}" {transition}'
            f"FOR EACH {self.each} EXECUTE FUNCTION public.{self.function}()",
        )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, f'DROP TRIGGER "{self.name}" ON "{self.table(from_state)}"')

    def describe(self) -> str:
        return f"Add trigger {self.name} to {self.app}.{self.model}"


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


class DefineView(Operation):
    """A view that reads with the rights of who asks; `select` lists the roles that may."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, name: str, body: str, *, select: tuple[str, ...]) -> None:
        self.name, self.body, self.select = name, body, select

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return ("DefineView", [self.name, self.body], {"select": self.select})

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, f"CREATE VIEW public.{self.name} WITH (security_invoker = true) AS {self.body}")
        run(schema_editor, f"GRANT SELECT ON public.{self.name} TO {', '.join(self.select)}")

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, f"DROP VIEW public.{self.name}")

    def describe(self) -> str:
        return f"Define view {self.name}"
