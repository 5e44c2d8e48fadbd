"""Row security of operations: processes write about themselves, staff read by grant."""

from django.db import migrations

from apps.core.db.operations import ApplyRowPolicy
from apps.core.db.rowpolicy import APP, STAFF, SUPERUSER, CustomPolicy, granted

WATCHERS = ("audit", "operate_collection", "review_retention")
OPERATORS = ("operate_collection",)
READERS = ("view_traces", *WATCHERS)
HOLD_READ = granted("review_retention", "audit")
HOLD_WRITE = granted("review_retention")
USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"


def held_anywhere(*grants):
    names = ", ".join(f"'{grant}'" for grant in grants)
    return (
        f"cardinality((SELECT public.accounts_granted_workspaces(ARRAY[{names}]))::uuid[]) > 0 OR {SUPERUSER}"
    )


def by_grant(*grants):
    return f"({granted(*grants)}) OR (workspace_id IS NULL AND ({held_anywhere(*grants)}))"


def kept_by_processes(app):
    return CustomPolicy(
        rules=(
            ("app", "ALL", APP, "true", "true"),
            ("staff", "SELECT", STAFF, held_anywhere(*WATCHERS), None),
        ),
        allow={APP: app, STAFF: "r"},
    )


def with_workspace(app, staff, *more, app_command="ALL", readers=WATCHERS):
    check = "true" if app_command == "ALL" else None
    return CustomPolicy(
        rules=(
            ("app", app_command, APP, "true", check),
            ("staff", "SELECT", STAFF, by_grant(*readers), None),
            *more,
        ),
        allow={APP: app, STAFF: staff},
    )


OPERATES = by_grant(*OPERATORS)
SET_UP = f"({granted(*OPERATORS)}) OR (workspace_id IS NULL AND {SUPERUSER})"


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_job_runs_alarms_holds_samples")]

    operations = [
        ApplyRowPolicy("operations", "Job", kept_by_processes("raw")),
        ApplyRowPolicy("operations", "JobRun", kept_by_processes("raw")),
        ApplyRowPolicy("operations", "Lease", kept_by_processes("rawd")),
        ApplyRowPolicy("operations", "ScheduleDeclaration", kept_by_processes("rawd")),
        ApplyRowPolicy("operations", "Process", kept_by_processes("rawd")),
        ApplyRowPolicy(
            "operations",
            "ExpiryState",
            CustomPolicy(
                rules=(("staff", "SELECT", STAFF, held_anywhere(*WATCHERS), None),), allow={STAFF: "r"}
            ),
        ),
        ApplyRowPolicy("operations", "Sample", with_workspace("raw", "r", readers=READERS)),
        ApplyRowPolicy("operations", "NewestSample", with_workspace("raw", "r", readers=READERS)),
        ApplyRowPolicy(
            "operations",
            "Alarm",
            with_workspace("raw", "rw", ("staff_acknowledge", "UPDATE", STAFF, OPERATES, OPERATES)),
        ),
        ApplyRowPolicy(
            "operations",
            "Destination",
            with_workspace("r", "rawd", ("staff_write", "ALL", STAFF, SET_UP, SET_UP), app_command="SELECT"),
        ),
        ApplyRowPolicy(
            "operations",
            "Delivery",
            with_workspace(
                "raw", "ra", ("staff_test", "INSERT", STAFF, None, f"({OPERATES}) AND notice = 'test'")
            ),
        ),
        ApplyRowPolicy(
            "operations",
            "LegalHold",
            CustomPolicy(
                rules=(
                    ("staff", "SELECT", STAFF, HOLD_READ, None),
                    ("staff_place", "INSERT", STAFF, None, f"({HOLD_WRITE}) AND placed_by_id = {USER}"),
                    (
                        "staff_release",
                        "UPDATE",
                        STAFF,
                        HOLD_WRITE,
                        f"({HOLD_WRITE}) AND released_by_id = {USER}",
                    ),
                ),
                allow={STAFF: "raw"},
            ),
        ),
        ApplyRowPolicy(
            "operations",
            "HoldItem",
            CustomPolicy(
                rules=(
                    ("staff", "SELECT", STAFF, HOLD_READ, None),
                    ("staff_add", "INSERT", STAFF, None, HOLD_WRITE),
                ),
                allow={STAFF: "ra"},
            ),
        ),
    ]
