"""Functions, triggers and views."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from apps.core.db import marks
from apps.core.db.operations.base import ModelOperation, run

SEARCH_PATH = "pg_catalog, pg_temp"


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

    def checksum(self) -> str:
        return marks.code_checksum(self.sql())

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, marks.refuse_strangers_sql(self.name))
        run(schema_editor, self.sql())
        run(schema_editor, marks.mark_sql("FUNCTION", self.name, self.checksum()))
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

    def checksum(self) -> str:
        return marks.code_checksum(self.body)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        run(schema_editor, f"CREATE VIEW public.{self.name} WITH (security_invoker = true) AS {self.body}")
        run(schema_editor, marks.mark_sql("VIEW", self.name, self.checksum()))
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
