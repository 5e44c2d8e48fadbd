"""Row security of accounts, and the narrow functions through which sessions find identities and grants."""

from django.db import migrations

from apps.core.db.operations import ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OWN, SHARED, SUPERUSER, WORKSPACE, CustomPolicy, granted

GRANTS = (
    "view_traces",
    "reveal_text",
    "curate",
    "annotate",
    "hold_keys",
    "review_retention",
    "manage_profiles",
    "operate_collection",
    "audit",
)
ANY_GRANT = granted(*GRANTS)
OPERATES = f"({granted('operate_collection')}) OR {SUPERUSER}"
OWN_TOKEN = "user_id = (SELECT nullif(current_setting('memory.user_id', true), '')::int)"

GRANTED = """
  SELECT coalesce(array_agg(DISTINCT held.workspace_id), '{}')
  FROM (
    SELECT own.content_object_id AS workspace_id, own.permission_id, own.user_id
    FROM public.accounts_workspaceusergrant own
    UNION ALL
    SELECT team.content_object_id, team.permission_id, member.user_id
    FROM public.accounts_workspacegroupgrant team
    JOIN public.auth_user_groups member ON member.group_id = team.group_id
  ) held
  JOIN public.auth_permission permission ON permission.id = held.permission_id
  JOIN public.auth_user staff ON staff.id = held.user_id AND staff.is_active AND staff.is_staff
  WHERE held.user_id = nullif(current_setting('memory.user_id', true), '')::int
    AND permission.codename = ANY (grants)
"""

IS_SUPERUSER = """
  SELECT EXISTS (
    SELECT FROM public.auth_user staff
    WHERE staff.id = nullif(current_setting('memory.user_id', true), '')::int
      AND staff.is_active AND staff.is_staff AND staff.is_superuser)
"""

IDENTITY = """
  SELECT p.id, p.workspace_id, s.id
  FROM public.accounts_principal p
  LEFT JOIN public.accounts_principal s ON s.workspace_id = p.workspace_id AND s.subject = 'shared'
  WHERE p.id = wanted AND p.disabled_at IS NULL
"""

ACT_FOR = """
  SELECT p.id, p.workspace_id, s.id
  FROM public.accounts_principal p
  LEFT JOIN public.accounts_principal s ON s.workspace_id = p.workspace_id AND s.subject = 'shared'
  WHERE p.id = wanted AND p.workspace_id = ANY (public.accounts_granted_workspaces(ARRAY[needed]))
"""

FIND_TOKEN = """
  UPDATE public.accounts_apitoken t SET last_used_at = date_trunc('minute', statement_timestamp())
  WHERE t.secret_sha256 = digest AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > statement_timestamp())
    AND t.last_used_at IS DISTINCT FROM date_trunc('minute', statement_timestamp());
  SELECT t.id, t.user_id, t.principal_id, t.workspace_id, s.id, t.scopes::text[], t.speaks_for_user, t.expires_at
  FROM public.accounts_apitoken t
  LEFT JOIN public.accounts_principal p ON p.id = t.principal_id
  LEFT JOIN public.accounts_principal s ON s.workspace_id = t.workspace_id AND s.subject = 'shared'
  LEFT JOIN public.auth_user staff ON staff.id = t.user_id
  WHERE t.secret_sha256 = digest AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > statement_timestamp())
    AND (t.user_id IS NULL AND p.disabled_at IS NULL OR staff.is_active AND staff.is_staff)
"""

FIND_ISSUERS = """
  SELECT i.id, i.workspace_id, i.audience::text, i.jwks_url::text, i.pinned_keys, i.subject_claim::text,
         i.subject_prefix::text, i.algorithms::text[]
  FROM public.accounts_trustedissuer i WHERE i.iss = issuer AND i.active
"""

ENTER = """
#variable_conflict use_column
DECLARE found uuid;
BEGIN
  SELECT p.id INTO found FROM public.accounts_principal p
  WHERE p.workspace_id = workspace AND p.subject = wanted;
  IF found IS NULL THEN
    INSERT INTO public.accounts_principal (id, workspace_id, subject, display_name, hash_key)
    VALUES (new_id, workspace, wanted, '', key) ON CONFLICT (workspace_id, subject) DO NOTHING;
  END IF;
  RETURN QUERY SELECT p.id, p.workspace_id, s.id
  FROM public.accounts_principal p
  LEFT JOIN public.accounts_principal s ON s.workspace_id = p.workspace_id AND s.subject = 'shared'
  WHERE p.workspace_id = workspace AND p.subject = wanted AND p.disabled_at IS NULL;
END
"""

IDENTITY_COLUMNS = "TABLE (principal_id uuid, workspace_id uuid, shared_principal_id uuid)"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_workspaces_principals_credentials")]

    operations = [
        DefineFunction(
            "accounts_granted_workspaces",
            "grants text[]",
            "uuid[]",
            GRANTED,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
        DefineFunction(
            "accounts_is_superuser",
            "",
            "boolean",
            IS_SUPERUSER,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
        DefineFunction(
            "accounts_principal_identity",
            "wanted uuid",
            IDENTITY_COLUMNS,
            IDENTITY,
            volatility="STABLE",
            execute=("memory_app",),
        ),
        DefineFunction(
            "accounts_act_for",
            "wanted uuid, needed text",
            IDENTITY_COLUMNS,
            ACT_FOR,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
        DefineFunction(
            "accounts_find_token",
            "digest bytea",
            "TABLE (token_id uuid, user_id int, principal_id uuid, workspace_id uuid, shared_principal_id uuid, "
            "scopes text[], speaks_for_user boolean, expires_at timestamptz)",
            FIND_TOKEN,
            execute=("memory_app",),
        ),
        DefineFunction(
            "accounts_find_issuers",
            "issuer text",
            "TABLE (issuer_id uuid, workspace_id uuid, audience text, jwks_url text, pinned_keys jsonb, "
            "subject_claim text, subject_prefix text, algorithms text[])",
            FIND_ISSUERS,
            volatility="STABLE",
            execute=("memory_app",),
        ),
        DefineFunction(
            "accounts_workspace_id",
            "wanted text",
            "uuid",
            "SELECT w.id FROM public.accounts_workspace w WHERE w.slug = wanted",
            volatility="STABLE",
            execute=("memory_app",),
        ),
        DefineFunction(
            "accounts_enter_principal",
            "workspace uuid, wanted text, new_id uuid, key bytea",
            IDENTITY_COLUMNS,
            ENTER,
            language="plpgsql",
            execute=("memory_app",),
        ),
        migrations.RunSQL(
            "ALTER TABLE accounts_apitoken ADD CONSTRAINT accounts_apitoken_owner_fk "
            "FOREIGN KEY (workspace_id, principal_id) REFERENCES accounts_principal (workspace_id, id) "
            "ON DELETE CASCADE",
            "ALTER TABLE accounts_apitoken DROP CONSTRAINT accounts_apitoken_owner_fk",
        ),
        ApplyRowPolicy(
            "accounts",
            "Workspace",
            CustomPolicy(
                rules=(
                    ("api", "SELECT", "memory_api", f"id = {WORKSPACE}", None),
                    ("staff", "SELECT", "memory_staff", ANY_GRANT.replace("workspace_id", "id", 1), None),
                    ("superuser", "ALL", "memory_staff", SUPERUSER, SUPERUSER),
                ),
                allow={"memory_api": "r", "memory_staff": "rawd"},
            ),
        ),
        ApplyRowPolicy(
            "accounts",
            "Principal",
            CustomPolicy(
                rules=(
                    ("api", "SELECT", "memory_api", f"id IN ({OWN}, {SHARED})", None),
                    ("api_erase", "DELETE", "memory_api", f"id = {OWN} AND subject <> 'shared'", None),
                    ("staff", "SELECT", "memory_staff", f"({ANY_GRANT}) OR {SUPERUSER}", None),
                    ("staff_add", "INSERT", "memory_staff", None, OPERATES),
                    ("staff_change", "UPDATE", "memory_staff", OPERATES, OPERATES),
                ),
                allow={"memory_api": "rd", "memory_staff": "raw"},
            ),
        ),
        ApplyRowPolicy(
            "accounts",
            "ApiToken",
            CustomPolicy(
                rules=(
                    ("api", "SELECT", "memory_api", f"principal_id = {OWN}", None),
                    (
                        "staff",
                        "ALL",
                        "memory_staff",
                        f"({OPERATES}) OR {OWN_TOKEN}",
                        f"({OPERATES}) OR {OWN_TOKEN}",
                    ),
                ),
                allow={"memory_api": "r", "memory_staff": "raw"},
            ),
        ),
        ApplyRowPolicy(
            "accounts",
            "TrustedIssuer",
            CustomPolicy(
                rules=(
                    ("staff", "SELECT", "memory_staff", granted("operate_collection", "audit"), None),
                    ("superuser", "ALL", "memory_staff", SUPERUSER, SUPERUSER),
                ),
                allow={"memory_staff": "rawd"},
            ),
        ),
    ]
