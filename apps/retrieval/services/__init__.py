"""What retrieval writes: receipts of its own answers, and imported ones."""

from .imports import Imported, ImportedReceipt, import_lines
from .receipts import save_receipt

__all__ = ["Imported", "ImportedReceipt", "import_lines", "save_receipt"]
