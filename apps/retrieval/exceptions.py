"""What can be wrong with a receipt. A refusal never repeats what it found: a receipt tells of a person's query."""

from apps.core.problems import NotFound, StateConflict


class UnknownReceipt(NotFound):
    code, title = "unknown_receipt", "There is no such retrieval receipt"


class ContextChanged(StateConflict):
    """The context of a receipt cannot be shown: its sources no longer give the bytes that were packed."""

    code, title = "context_changed", "The context is no longer what was packed"


class CorruptReceipt(StateConflict):
    """The stored receipt is not what was stored, or does not give its own scores and order."""

    code, title = "corrupt_receipt", "The receipt does not hold"
