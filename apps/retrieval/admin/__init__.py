"""Staff pages of receipts: why this order, and is the record sound?"""

from .imported import PrmeReceiptAdmin
from .receipts import ReceiptAdmin

__all__ = ["PrmeReceiptAdmin", "ReceiptAdmin"]
