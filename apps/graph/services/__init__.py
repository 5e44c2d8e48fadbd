"""All writes of the memory graph."""

from .bulk import import_passages
from .items import PassageItem, PassageResult
from .passages import delete_passages, write_passages
from .vectors import Backfill, embed_missing

__all__ = [
    "Backfill",
    "PassageItem",
    "PassageResult",
    "delete_passages",
    "embed_missing",
    "import_passages",
    "write_passages",
]
