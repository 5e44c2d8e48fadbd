"""What retrieval writes: receipts of its own answers, and imported ones; and what staff do to those."""

from .contexts import context_is_whole, reveal_context
from .imports import Imported, ImportedReceipt, import_lines
from .receipts import (
    PreparedReceipt,
    hash_key,
    key_of,
    prepare_receipt,
    save_receipt,
    store_receipts,
    writing_receipt,
)
from .staff import examine_imported, reveal_imported

__all__ = [
    "Imported",
    "ImportedReceipt",
    "PreparedReceipt",
    "context_is_whole",
    "examine_imported",
    "hash_key",
    "import_lines",
    "key_of",
    "prepare_receipt",
    "reveal_context",
    "reveal_imported",
    "save_receipt",
    "store_receipts",
    "writing_receipt",
]
