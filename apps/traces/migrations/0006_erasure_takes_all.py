"""Erasing a trace takes what would outlive the trace's time: apps above say what that is."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction

FORMER = import_module("apps.traces.migrations.0003_functions_of_retention")

# Apps above replace this with what must go when a trace is erased, beyond what goes with every trace.
AFTER_ERASURE = "SELECT"

ERASE_OWN = f"""
DECLARE
  owner uuid := {FORMER.OWN};
  receipts uuid[];
BEGIN
  PERFORM public.operations_hold_lock({FORMER.HOLD_KINDS});
  PERFORM pg_advisory_xact_lock({FORMER.PRINCIPAL_SPACE}, hashtext(owner::text));
  SELECT ARRAY[t.retrieval_receipt_id] INTO receipts FROM public.traces_trace t
  WHERE t.principal_id = owner AND t.id = wanted AND t.expires_at > statement_timestamp() FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 'absent';
  END IF;
  IF public.operations_held({FORMER.HOLD_KINDS}, ARRAY[wanted, owner]) THEN
    RETURN 'held';
  END IF;
  PERFORM public.traces_delete(owner, ARRAY[wanted]);
  PERFORM public.traces_after_erasure(owner, receipts);
  RETURN 'erased';
END
"""


def erase_own(body: str, previous: str | None = None) -> DefineFunction:
    return DefineFunction(
        "traces_erase_own",
        "wanted uuid",
        "text",
        body,
        language="plpgsql",
        execute=("memory_api",),
        previous=previous,
    )


class Migration(migrations.Migration):
    dependencies = [("traces", "0005_measure_zero_hits_and_stages")]

    operations = [
        DefineFunction("traces_after_erasure", "owner uuid, receipts uuid[]", "void", AFTER_ERASURE),
        erase_own(ERASE_OWN, erase_own(FORMER.ERASE_OWN).sql()),
    ]
