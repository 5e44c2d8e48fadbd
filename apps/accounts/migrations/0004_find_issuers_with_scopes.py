"""What an issuer's JWTs may do goes with the issuer."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

COLUMNS = (
    "TABLE (issuer_id uuid, workspace_id uuid, audience text, jwks_url text, pinned_keys jsonb, "
    "subject_claim text, subject_prefix text, algorithms text[])"
)
COLUMNS_WITH_SCOPES = COLUMNS[:-1] + ", scopes text[], scope_claim text, speaks_for_user boolean)"

FIND = """
  SELECT i.id, i.workspace_id, i.audience::text, i.jwks_url::text, i.pinned_keys, i.subject_claim::text,
         i.subject_prefix::text, i.algorithms::text[]
  FROM public.accounts_trustedissuer i WHERE i.iss = issuer AND i.active
"""
FIND_WITH_SCOPES = """
  SELECT i.id, i.workspace_id, i.audience::text, i.jwks_url::text, i.pinned_keys, i.subject_claim::text,
         i.subject_prefix::text, i.algorithms::text[], i.scopes::text[], i.scope_claim::text, i.speaks_for_user
  FROM public.accounts_trustedissuer i WHERE i.iss = issuer AND i.active
"""


def define(columns: str, body: str) -> DefineFunction:
    return DefineFunction(
        "accounts_find_issuers", "issuer text", columns, body, volatility="STABLE", execute=("memory_app",)
    )


FORMER = define(COLUMNS, FIND).sql()
GRANT = (
    "REVOKE ALL ON FUNCTION public.accounts_find_issuers FROM PUBLIC; "
    "GRANT EXECUTE ON FUNCTION public.accounts_find_issuers TO memory_app"
)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_what_jwts_may_do")]

    operations = [
        # The columns of a function's answer cannot be replaced.
        migrations.RunSQL("DROP FUNCTION public.accounts_find_issuers(text)", f"{FORMER}; {GRANT}"),
        define(COLUMNS_WITH_SCOPES, FIND_WITH_SCOPES),
    ]
