"""Profiles and pointers are their owner's; references cannot cross owners; who is active is told to the re-check."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

APPENDED = ("RankingProfile", "Transition", "RollbackDrill", "Recheck")

# Bounds on which the law of the scorer rests.
BOUNDS = "0.25 <= ALL (multipliers) AND 4 >= ALL (multipliers)"

# The newest transition of each pointer, where it is not at base. Ids alone leave.
ACTIVE = """
  SELECT newest.workspace_id, newest.principal_id, newest.resulting_profile_id
  FROM (SELECT DISTINCT ON (t.principal_id, t.scope_key) t.workspace_id, t.principal_id, t.resulting_profile_id
        FROM public.learning_transition t WHERE t.drill_id IS NULL
        ORDER BY t.principal_id, t.scope_key, t.recorded_at DESC) newest
  WHERE newest.resulting_profile_id IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("learning", "0005_ranking_profiles_and_their_pointers")]

    operations = [
        *(
            ApplyRowPolicy("learning", model, OwnerPolicy(staff="view_traces", append_only=True))
            for model in APPENDED
        ),
        ApplyRowPolicy("learning", "ActivationProposal", OwnerPolicy(staff="view_traces")),
        AddOwnerForeignKey("learning", "RankingProfile", "baseline_profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "ActivationProposal", "profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "ActivationProposal", "expected_profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "RollbackDrill", "profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "Recheck", "profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "Transition", "profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "Transition", "expected_profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "Transition", "resulting_profile", "learning.RankingProfile"),
        AddOwnerForeignKey("learning", "Transition", "proposal", "learning.ActivationProposal"),
        migrations.RunSQL(
            f"ALTER TABLE learning_ranking_profile ADD CONSTRAINT learning_ranking_profile_bounds CHECK ({BOUNDS})",
            "ALTER TABLE learning_ranking_profile DROP CONSTRAINT learning_ranking_profile_bounds",
        ),
        DefineFunction(
            "learning_active_profiles",
            "",
            "TABLE (workspace_id uuid, principal_id uuid, profile_id uuid)",
            ACTIVE,
            execute=("memory_maintenance",),
            volatility="STABLE",
        ),
    ]
