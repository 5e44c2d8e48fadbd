"""What can be wrong with a receipt. A refusal never repeats what it found: a receipt tells of a person's query."""

from apps.core.problems import InvalidRequest, NotFound, StateConflict


class UnknownReceipt(NotFound):
    code, title = "unknown_receipt", "There is no such retrieval receipt"


class ContextChanged(StateConflict):
    """The context of a receipt cannot be shown: its sources no longer give the bytes that were packed."""

    code, title = "context_changed", "The context is no longer what was packed"


class CorruptReceipt(StateConflict):
    """The stored receipt is not what was stored, or does not give its own scores and order."""

    code, title = "corrupt_receipt", "The receipt does not hold"


class ReplayUnavailable(StateConflict):
    """The receipt is of a version that records no provenance of its scores."""

    code, title = "replay_unavailable", "A receipt of this version cannot be replayed"


class ImportRefused(InvalidRequest):
    """A line is no receipt and no label record, or does not hold; nothing of its file was written.

    `shown_code` is that of the format's refusal; `more` has the number of the line, from 1.
    """

    code, title = "invalid_receipt", "A line cannot be imported"


class ImportConflict(StateConflict):
    """Something else was imported under the same id."""

    code, title = "receipt_conflict", "Another record has this id"
