"""An evaluation or a holdout that a legal hold covers outlives its term."""

from importlib import import_module

from django.db import migrations

FORMER = import_module("apps.learning.migrations.0009_due_by_age_before_holds")
OF_OWNER = "ARRAY['traces.principal'], ARRAY[aged.principal_id]"
LOCK = f"operations_hold_lock({FORMER.HOLD_KINDS}"
HELD = {"learning.holdout": FORMER.HOLDOUTS, "learning.evaluation": FORMER.EVALUATIONS}


def or_itself(body, parts):
    """The body, with a hold on the row itself asked beside one on its owner in these parts of it, by kind."""
    for name, found in parts.items():
        both = f"ARRAY['traces.principal', '{name}'], ARRAY[aged.principal_id, aged.id]"
        for part in found:
            assert part in body
            assert OF_OWNER in part
            body = body.replace(part, part.replace(OF_OWNER, both))
    return body


DELETED = {
    "learning.holdout": (
        FORMER.any_due(FORMER.HOLDOUTS),
        FORMER.delete_due(FORMER.HOLDOUTS, "holdouts"),
    ),
    "learning.evaluation": (
        FORMER.any_due(FORMER.EVALUATIONS),
        FORMER.delete_due(FORMER.EVALUATIONS, "evaluations"),
    ),
}
LATE = {name: (FORMER.late(kind),) for name, kind in HELD.items()}
EXPIRE = or_itself(FORMER.EXPIRE, DELETED).replace(
    LOCK, f"{LOCK} || ARRAY['learning.evaluation', 'learning.holdout']"
)
STATUS = or_itself(FORMER.STATUS, LATE)


class Migration(migrations.Migration):
    dependencies = [("learning", "0009_due_by_age_before_holds")]

    operations = [
        FORMER.expire(EXPIRE, FORMER.expire(FORMER.EXPIRE).sql()),
        FORMER.status(STATUS, FORMER.status(FORMER.STATUS).sql()),
    ]
