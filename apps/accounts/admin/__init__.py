"""Staff pages of accounts: workspaces, principals, tokens, issuers, staff. Every change is a governed action."""

from .issuers import TrustedIssuerAdmin
from .principals import PrincipalAdmin
from .staff import StaffAdmin
from .tokens import ApiTokenAdmin
from .workspaces import WorkspaceAdmin

__all__ = ["ApiTokenAdmin", "PrincipalAdmin", "StaffAdmin", "TrustedIssuerAdmin", "WorkspaceAdmin"]
