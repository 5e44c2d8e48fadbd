"""Bases of every owned model, and the rows that all apps share."""

from .audit import AuditChain, AuditEntry
from .base import Declared, OwnedModel, WorkspaceModel
from .keys import IdempotencyKey
from .policies import StoredPolicy

__all__ = [
    "AuditChain",
    "AuditEntry",
    "Declared",
    "IdempotencyKey",
    "OwnedModel",
    "StoredPolicy",
    "WorkspaceModel",
]
