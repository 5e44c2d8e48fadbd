"""All writes of accounts. Each checks, acts and writes its audit entry in the session it is called in."""

from apps.accounts.services.grants import give_grant, join_group, leave_group, take_grant
from apps.accounts.services.issuers import change_issuer, create_issuer
from apps.accounts.services.principals import (
    create_principal,
    disable_principal,
    enable_principal,
    enter_principal,
)
from apps.accounts.services.staff import (
    NewStaff,
    activate_staff,
    change_staff_email,
    create_staff,
    deactivate_staff,
)
from apps.accounts.services.tokens import NewToken, create_token, revoke_token, rotate_token
from apps.accounts.services.workspaces import create_workspace, workspace_id

__all__ = [
    "NewStaff",
    "NewToken",
    "activate_staff",
    "change_issuer",
    "change_staff_email",
    "create_issuer",
    "create_principal",
    "create_staff",
    "create_token",
    "create_workspace",
    "deactivate_staff",
    "disable_principal",
    "enable_principal",
    "enter_principal",
    "give_grant",
    "join_group",
    "leave_group",
    "revoke_token",
    "rotate_token",
    "take_grant",
    "workspace_id",
]
