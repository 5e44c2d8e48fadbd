"""All writes of the memory graph."""

from .items import PassageItem, PassageResult
from .passages import delete_passages, write_passages

__all__ = ["PassageItem", "PassageResult", "delete_passages", "write_passages"]
