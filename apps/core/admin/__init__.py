"""The base of every admin class and what hangs on it, and the pages of `core` itself (audit, policies)."""

from apps.core.access import (
    choose_workspace,
    current_workspace,
    holds,
    is_superuser,
    workspace_choices,
    workspaces_with,
)

from .base import ModelAdmin
from .changelist import KeysetChangeList
from .filters import (
    ChoiceFilter,
    DayFilter,
    PrincipalFilter,
    TextFilter,
    WindowFilter,
    choice_filter,
)
from .governed import BulkAction, Done, GovernedAction, Preview, ReasonForm
from .reveal import RevealAction
from .trail import audit_trail

__all__ = [
    "BulkAction",
    "ChoiceFilter",
    "DayFilter",
    "Done",
    "GovernedAction",
    "KeysetChangeList",
    "ModelAdmin",
    "Preview",
    "PrincipalFilter",
    "ReasonForm",
    "RevealAction",
    "TextFilter",
    "WindowFilter",
    "audit_trail",
    "choice_filter",
    "choose_workspace",
    "current_workspace",
    "holds",
    "is_superuser",
    "workspace_choices",
    "workspaces_with",
]

# Last: registering makes Django set up the site, which needs the names above.
from . import audit as audit
from . import policies as policies
