"""Who sees and changes rows of operations: by grant on their workspace.

Rows of the installation as a whole are open to whoever holds such a grant anywhere.
"""

from apps.core.db.rowpolicy import APP, STAFF, SUPERUSER, Command, CustomPolicy, granted

WATCHERS = ("audit", "operate_collection", "review_retention")
OPERATORS = ("operate_collection",)

Rule = tuple[str, Command, str, str | None, str | None]


def held_anywhere(*grants: str) -> str:
    """SQL: the session's user holds one of the grants on some workspace, or is a superuser."""
    names = ", ".join(f"'{grant}'" for grant in grants)
    return (
        f"cardinality((SELECT public.accounts_granted_workspaces(ARRAY[{names}]))::uuid[]) > 0 OR {SUPERUSER}"
    )


def by_grant(*grants: str) -> str:
    """SQL: the grant on the row's workspace; on a row of the installation, the grant anywhere."""
    return f"({granted(*grants)}) OR (workspace_id IS NULL AND ({held_anywhere(*grants)}))"


def kept_by_processes(app: str = "rawd", grants: tuple[str, ...] = WATCHERS) -> CustomPolicy:
    """Rows that web, worker and beat write about themselves, outside of sessions; staff only read them."""
    rules: tuple[Rule, ...] = (
        ("app", "ALL", APP, "true", "true"),
        ("staff", "SELECT", STAFF, held_anywhere(*grants), None),
    )
    return CustomPolicy(rules=rules, allow={APP: app, STAFF: "r"})
