"""All held objects of a kind, for deletions of many."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

# The lock first: the second statement's snapshot then sees every hold that was placed before.
HELD_IDS = """
BEGIN
  PERFORM public.operations_hold_lock(ARRAY[wanted]);
  RETURN QUERY SELECT DISTINCT item.object_id FROM public.operations_holditem item
    JOIN public.operations_legalhold held ON held.id = item.hold_id AND held.released_at IS NULL
    WHERE item.kind = wanted;
END
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0003_functions_of_holds_expiry_and_pruning")]

    operations = [
        DefineFunction(
            "operations_held_ids",
            "wanted text",
            "SETOF uuid",
            HELD_IDS,
            execute=("memory_maintenance",),
            language="plpgsql",
        ),
    ]
