"""Stored policies: registry of kinds, the one in effect, and publishing."""

from .kinds import Change, FieldChange, Kind, kind_named, register_kind, registered_kinds, unregister_kind
from .selectors import (
    PolicyMissing,
    current_policy,
    current_policy_id,
    document_of,
    followed,
    newest_version,
    policy_versions,
    read_document,
)
from .services import PolicyPreview, differences, policy_hash, preview_policy, publish_policy, stored_document

__all__ = [
    "Change",
    "FieldChange",
    "Kind",
    "PolicyMissing",
    "PolicyPreview",
    "current_policy",
    "current_policy_id",
    "differences",
    "document_of",
    "followed",
    "kind_named",
    "newest_version",
    "policy_hash",
    "policy_versions",
    "preview_policy",
    "publish_policy",
    "read_document",
    "register_kind",
    "registered_kinds",
    "stored_document",
    "unregister_kind",
]
