"""Row security of a table, as its model declares it."""

from collections.abc import Iterable

from django.db.migrations.state import ProjectState

from apps.core.db.operations.base import ModelOperation
from apps.core.db.operations.constraints import add_owner_key, drop_owner_key
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

    def forwards(self, state: ProjectState) -> Iterable[str]:
        table = self.table(state)
        yield drop_policies(table)
        yield f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY'
        yield f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY'
        yield from create_policies(table, self.policy)
        if self.bind_owner and self.previous is None and isinstance(self.policy, OwnerPolicy):
            yield drop_owner_key(table, if_exists=True)
            yield add_owner_key(self.state_model(state))

    def backwards(self, state: ProjectState) -> Iterable[str]:
        table = self.table(state)
        yield drop_policies(table)
        if self.previous is not None:
            yield from create_policies(table, self.previous)
            return
        yield drop_owner_key(table, if_exists=True)
        # Row security stays on: without a policy the table is closed, which is the safe side.

    def describe(self) -> str:
        return f"Apply the row policy of {self.app}.{self.model}"


def create_policies(table: str, declared: RowPolicy) -> Iterable[str]:
    for policy in declared.policies(table):
        yield policy.sql(table)
        yield sign_policy(table, policy.name, policy.digest(table))


def drop_policies(table: str) -> str:
    return f"""
        DO $do$ DECLARE found record; BEGIN
          FOR found IN SELECT polname FROM pg_policy WHERE polrelid = '"{table}"'::regclass LOOP
            EXECUTE format('DROP POLICY %I ON "{table}"', found.polname);
          END LOOP;
        END $do$
        """


def sign_policy(table: str, name: str, digest: str) -> str:
    """Note on the policy which declaration made it and how PostgreSQL wrote it down.

    PostgreSQL rewrites expressions, so a later ALTER POLICY is seen by comparing its own text with the note.
    """
    return f"""
        DO $do$ BEGIN
          EXECUTE format('COMMENT ON POLICY %I ON "{table}" IS %L', '{name}', '{digest} ' || (
            SELECT md5(coalesce(pg_get_expr(polqual, polrelid), '') || '|' ||
                       coalesce(pg_get_expr(polwithcheck, polrelid), ''))
            FROM pg_policy WHERE polrelid = '"{table}"'::regclass AND polname = '{name}'));
        END $do$
        """
