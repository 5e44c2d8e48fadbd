"""Stored policies: registry of kinds, the one in effect, and publishing."""

from .kinds import Change, FieldChange, Kind, kind_named, register_kind, registered_kinds, unregister_kind
from .selectors import (
    PolicyMissing,
    Version,
    current_policy,
    document_of,
    followed,
    ids_in_effect,
    newest_version,
    policy_versions,
    read_document,
    version_in_effect,
    version_of,
)
from .services import PolicyPreview, differences, policy_hash, preview_policy, publish_policy, stored_document

__all__ = [
    "Change",
    "FieldChange",
    "Kind",
    "PolicyMissing",
    "PolicyPreview",
    "Version",
    "current_policy",
    "differences",
    "document_of",
    "followed",
    "ids_in_effect",
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
    "version_in_effect",
    "version_of",
]
