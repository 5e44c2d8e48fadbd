"""What retrieval writes: receipts of its own answers, and imported ones."""

from .imports import Imported, ImportedReceipt, import_lines
from .receipts import PreparedReceipt, hash_key, prepare_receipt, save_receipt, store_receipts

__all__ = [
    "Imported",
    "ImportedReceipt",
    "PreparedReceipt",
    "hash_key",
    "import_lines",
    "prepare_receipt",
    "save_receipt",
    "store_receipts",
]
