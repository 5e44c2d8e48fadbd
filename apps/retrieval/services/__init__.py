"""What retrieval writes: receipts of its own answers, and imported ones; and what staff do to those."""

from .imports import Imported, ImportedReceipt, import_lines
from .receipts import save_receipt
from .staff import examine_imported, reveal_imported

__all__ = [
    "Imported",
    "ImportedReceipt",
    "examine_imported",
    "import_lines",
    "reveal_imported",
    "save_receipt",
]
