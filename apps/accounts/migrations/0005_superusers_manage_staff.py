"""Who is staff, in which group and with which grant is changed by superusers alone, also past the services.

The tables are Django's and guardian's, without row policies, and every staff session may write them; a trigger
looks at the session's user. Staff change their own name, address and password.
"""

from django.conf import settings
from django.db import migrations

from apps.core.db.operations import AddTrigger, DefineFunction

# Two IFs: a function in a condition needs its right even where the condition is decided before.
# Runs as whoever writes: only staff sessions are held to it. The application itself notes sign-ins, and commands
# that run as it (createsuperuser) make users; it may not give grants, by its rights.
MANAGED = """
BEGIN
  IF current_user = 'memory_staff' THEN
    IF NOT public.accounts_is_superuser() THEN
      RAISE insufficient_privilege USING MESSAGE = 'only a superuser manages staff and grants';
    END IF;
  END IF;
  RETURN coalesce(NEW, OLD);
END
"""

OWN_ACCOUNT = """
BEGIN
  IF current_user = 'memory_staff' THEN
    IF NOT public.accounts_is_superuser() AND (
        OLD.id IS DISTINCT FROM nullif(current_setting('memory.user_id', true), '')::int
        OR (NEW.id, NEW.username, NEW.is_superuser, NEW.is_staff, NEW.is_active)
           IS DISTINCT FROM (OLD.id, OLD.username, OLD.is_superuser, OLD.is_staff, OLD.is_active)) THEN
      RAISE insufficient_privilege USING MESSAGE = 'only a superuser manages staff and grants';
    END IF;
  END IF;
  RETURN NEW;
END
"""

ANY_WRITE = "BEFORE INSERT OR UPDATE OR DELETE"
MANAGED_TABLES = (
    ("accounts", "WorkspaceUserGrant", ANY_WRITE),
    ("accounts", "WorkspaceGroupGrant", ANY_WRITE),
    ("auth", "Group", ANY_WRITE),
    ("auth", "Group_permissions", ANY_WRITE),
    ("auth", "User_groups", ANY_WRITE),
    ("auth", "User_user_permissions", ANY_WRITE),
    ("auth", "User", "BEFORE INSERT OR DELETE"),
)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_find_issuers_with_scopes"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        DefineFunction(
            "accounts_superusers_manage",
            "",
            "trigger",
            MANAGED,
            language="plpgsql",
            security_definer=False,
            execute=("memory_staff", "memory_app"),
        ),
        DefineFunction(
            "accounts_own_account",
            "",
            "trigger",
            OWN_ACCOUNT,
            language="plpgsql",
            security_definer=False,
            execute=("memory_staff", "memory_app"),
        ),
        *(
            AddTrigger(app, model, "accounts_superusers_manage", when, "accounts_superusers_manage")
            for app, model, when in MANAGED_TABLES
        ),
        AddTrigger("auth", "User", "accounts_own_account", "BEFORE UPDATE", "accounts_own_account"),
    ]
