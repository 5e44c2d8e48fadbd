"""Functions, triggers and views."""

from collections.abc import Iterable

from django.db.migrations.state import ProjectState

from apps.core.db import marks
from apps.core.db.operations.base import ModelOperation, SqlOperation

SEARCH_PATH = "pg_catalog, pg_temp"


class DefineFunction(SqlOperation):
    """Create or replace a function with a fixed search path and no right for PUBLIC.

    `previous` is the definition that a reversal brings back (None: the function is dropped).
    """

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

    def sql(self) -> str:
        security = "SECURITY DEFINER" if self.security_definer else "SECURITY INVOKER"
        return (
            f"CREATE OR REPLACE FUNCTION public.{self.name}({self.args}) RETURNS {self.returns} "
            f"LANGUAGE {self.language} {self.volatility} {security} SET search_path = {SEARCH_PATH} "
            f"AS $function${self.body}$function$"
        )

    def checksum(self) -> str:
        return marks.code_checksum(self.sql())

    def forwards(self, state: ProjectState) -> Iterable[str]:
        yield marks.refuse_strangers_sql(self.name)
        yield self.sql()
        yield marks.mark_sql("FUNCTION", self.name, self.checksum())
        yield f"REVOKE ALL ON FUNCTION public.{self.name} FROM PUBLIC"
        if self.execute:
            yield f"GRANT EXECUTE ON FUNCTION public.{self.name} TO {', '.join(self.execute)}"

    def backwards(self, state: ProjectState) -> Iterable[str]:
        yield self.previous or f"DROP FUNCTION public.{self.name}"

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

    def forwards(self, state: ProjectState) -> Iterable[str]:
        transition = f"REFERENCING {self.referencing} " if self.referencing else ""
        yield (
            f'CREATE TRIGGER "{self.name}" {self.when} ON "{self.table(state)}" {transition}'
            f"FOR EACH {self.each} EXECUTE FUNCTION public.{self.function}()"
        )

    def backwards(self, state: ProjectState) -> Iterable[str]:
        yield f'DROP TRIGGER "{self.name}" ON "{self.table(state)}"'

    def describe(self) -> str:
        return f"Add trigger {self.name} to {self.app}.{self.model}"


class DefineView(SqlOperation):
    """A view that reads with the rights of who asks; `select` lists the roles that may."""

    def __init__(self, name: str, body: str, *, select: tuple[str, ...]) -> None:
        self.name, self.body, self.select = name, body, select

    def checksum(self) -> str:
        return marks.code_checksum(self.body)

    def forwards(self, state: ProjectState) -> Iterable[str]:
        yield f"CREATE VIEW public.{self.name} WITH (security_invoker = true) AS {self.body}"
        yield marks.mark_sql("VIEW", self.name, self.checksum())
        yield f"GRANT SELECT ON public.{self.name} TO {', '.join(self.select)}"

    def backwards(self, state: ProjectState) -> Iterable[str]:
        yield f"DROP VIEW public.{self.name}"

    def describe(self) -> str:
        return f"Define view {self.name}"
