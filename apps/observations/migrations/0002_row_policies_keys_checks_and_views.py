"""Row security of the journal, references that cannot cross owners, deadlines as checks, and the two views."""

from django.db import migrations

from apps.core.db.operations import (
    AddCheck,
    AddOwnerForeignKey,
    ApplyRowPolicy,
    BindOwner,
    DefineFunction,
    DefineView,
)
from apps.core.db.rowpolicy import API, OWN, STAFF, SUPERUSER, WORKSPACE, CustomPolicy, granted

LIVING = (
    "record_expires_at > statement_timestamp() "
    "AND observed_at > statement_timestamp() - interval '2160 hours'"
)
TEXT_LIVING = (
    "text_expires_at > statement_timestamp() AND observed_at > statement_timestamp() - interval '2160 hours'"
)
NOT_AHEAD = "observed_at <= statement_timestamp() + interval '5 minutes'"
VISIBLE_PARENT = (
    "EXISTS (SELECT FROM public.observations_observation o "
    "WHERE o.principal_id = observations_observation_feedback.principal_id "
    "AND o.id = observations_observation_feedback.observation_id)"
)
MINE = f"principal_id = {OWN}"
OPERATES = granted("operate_collection")
WATCHES = granted("operate_collection", "review_retention", "audit")
ATTESTS = granted("operate_collection", "review_retention")
THROWS = f"({OPERATES}) OR (workspace_id IS NULL AND {SUPERUSER})"
OWN_DIGEST = (
    "(SELECT encode(sha256(convert_to('observations.export:' || "
    "nullif(current_setting('memory.principal_id', true), ''), 'UTF8')), 'hex'))"
)

POLICIES = {
    "Observation": CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {LIVING}", f"({MINE}) AND {LIVING} AND {NOT_AHEAD}"),
            ("staff", "SELECT", STAFF, f"({granted('view_traces')}) AND {LIVING}", None),
        ),
        allow={API: "ra", STAFF: "r"},
    ),
    "ObservationText": CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {TEXT_LIVING}", f"({MINE}) AND {TEXT_LIVING} AND {NOT_AHEAD}"),
        ),
        allow={API: "ra"},
    ),
    "ObservationFeedback": CustomPolicy(
        rules=(
            ("api", "ALL", API, f"({MINE}) AND {VISIBLE_PARENT}", f"({MINE}) AND {VISIBLE_PARENT}"),
            ("staff", "SELECT", STAFF, f"({granted('view_traces')}) AND {VISIBLE_PARENT}", None),
        ),
        allow={API: "raw", STAFF: "r"},
    ),
    "Enrolment": CustomPolicy(
        rules=(
            ("api", "SELECT", API, MINE, None),
            ("api_withdraw", "UPDATE", API, MINE, MINE),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_enrol", "INSERT", STAFF, None, OPERATES),
            ("staff_withdraw", "UPDATE", STAFF, OPERATES, OPERATES),
        ),
        allow={API: "rw", STAFF: "raw"},
    ),
    "KillSwitch": CustomPolicy(
        rules=(
            ("api", "SELECT", API, f"workspace_id IS NULL OR workspace_id = {WORKSPACE}", None),
            ("staff", "SELECT", STAFF, f"workspace_id IS NULL OR ({WATCHES})", None),
            ("staff_throw", "INSERT", STAFF, None, THROWS),
            ("staff_release", "UPDATE", STAFF, THROWS, THROWS),
        ),
        allow={API: "r", STAFF: "raw"},
    ),
    "MaintenanceState": CustomPolicy(rules=()),
    "ExportRecord": CustomPolicy(
        rules=(
            ("api", "ALL", API, f"owner_digest = {OWN_DIGEST}", f"owner_digest = {OWN_DIGEST}"),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_attest", "UPDATE", STAFF, ATTESTS, ATTESTS),
        ),
        allow={API: "ra", STAFF: "rw"},
    ),
    "JournalErasure": CustomPolicy(rules=(("api", "SELECT", API, MINE, None),), allow={API: "r"}),
}

# In hours: Django would write these as calendar days, which differ over a clock change.
CHECKS = (
    ("Observation", "deadline", "record_expires_at > observed_at"),
    ("Observation", "longest", "record_expires_at <= observed_at + interval '2160 hours'"),
    (
        "Observation",
        "snapshot",
        "CASE WHEN jsonb_typeof(snapshot) = 'object' AND jsonb_typeof(snapshot -> 'hits') = 'array' "
        "THEN jsonb_array_length(snapshot -> 'hits') <= 100 ELSE false END",
    ),
    ("ObservationText", "deadline", "text_expires_at > observed_at"),
    ("ObservationText", "longest", "text_expires_at <= observed_at + interval '2160 hours'"),
    ("ObservationText", "length", "char_length(query_text) BETWEEN 1 AND 4000"),
)

# Staff see that a text is there and until when, never the text.
TEXT_DEADLINE = f"""
  SELECT t.text_expires_at FROM public.observations_observation_text t
  WHERE t.observation_id = wanted AND t.text_expires_at > statement_timestamp()
    AND t.{granted("view_traces")}
"""

VISIBLE = """
  SELECT o.id, o.workspace_id, o.principal_id, o.trace_id, o.corpus, o.observed_at, o.record_expires_at,
         o.query_fingerprint, o.fingerprint_key_id, o.fingerprint_version,
         CASE WHEN o.text_disposition = 'retained' AND t.observation_id IS NULL THEN 'expired'
              ELSE o.text_disposition::text END AS text_disposition,
         t.query_text, least(t.text_expires_at, o.record_expires_at) AS expires_at,
         o.release, o.ranking_profile_id, o.purpose, o.consent_version, o.snapshot
  FROM public.observations_observation o
  LEFT JOIN public.observations_observation_text t
    ON t.principal_id = o.principal_id AND t.observation_id = o.id
"""

SEEN_BY_STAFF = """
  SELECT o.id, o.workspace_id, o.principal_id, o.trace_id, o.corpus, o.observed_at, o.record_expires_at,
         o.fingerprint_key_id, o.fingerprint_version,
         CASE WHEN o.text_disposition = 'retained' AND live.text_expires_at IS NULL THEN 'expired'
              ELSE o.text_disposition::text END AS text_disposition,
         live.text_expires_at, o.release, o.ranking_profile_id, o.purpose, o.consent_version, o.snapshot
  FROM public.observations_observation o
  CROSS JOIN LATERAL (
    SELECT CASE WHEN o.text_disposition = 'retained'
                THEN public.observations_text_deadline(o.id) END AS text_expires_at) live
"""


class Migration(migrations.Migration):
    dependencies = [
        ("observations", "0001_records_texts_feedback_and_enrolments"),
        ("accounts", "0004_find_issuers_with_scopes"),
        ("traces", "0002_row_policies_and_owner_keys"),
        ("operations", "0006_erasure_policies_and_functions"),
    ]

    operations = [
        *(ApplyRowPolicy("observations", model, policy) for model, policy in POLICIES.items()),
        *(
            BindOwner("observations", model)
            for model in (
                "Observation",
                "ObservationText",
                "ObservationFeedback",
                "Enrolment",
                "JournalErasure",
            )
        ),
        AddOwnerForeignKey("observations", "Observation", "trace", "traces.Trace", "SET NULL"),
        AddOwnerForeignKey(
            "observations",
            "ObservationText",
            "observation",
            "observations.Observation",
            "CASCADE",
            also=("observed_at", "text_disposition"),
        ),
        AddOwnerForeignKey(
            "observations", "ObservationFeedback", "observation", "observations.Observation", "CASCADE"
        ),
        migrations.RunSQL(
            "ALTER TABLE observations_erasure ADD CONSTRAINT observations_erasure_certificate_fk "
            "FOREIGN KEY (id) REFERENCES operations_erasurecertificate (id) ON DELETE CASCADE",
            "ALTER TABLE observations_erasure DROP CONSTRAINT observations_erasure_certificate_fk",
        ),
        *(
            AddCheck("observations", model, f"observations_{model.lower()}_{name}", condition)
            for model, name, condition in CHECKS
        ),
        DefineFunction(
            "observations_text_deadline",
            "wanted uuid",
            "timestamptz",
            TEXT_DEADLINE,
            volatility="STABLE",
            execute=(STAFF,),
        ),
        DefineView("observation_visible", VISIBLE, select=(API,)),
        DefineView("observation_staff", SEEN_BY_STAFF, select=(STAFF,)),
    ]
