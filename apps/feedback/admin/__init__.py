"""Staff pages of the feedback memory: traces with what came of them, and the credit ledger."""

from .ablations import AblationAdmin
from .ledger import EdgeStrengthAdmin
from .traces import TraceAdmin

__all__ = ["AblationAdmin", "EdgeStrengthAdmin", "TraceAdmin"]
