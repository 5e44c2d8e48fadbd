"""What can be wrong with a PRME receipt.

A refusal says which rule and which field, never what the field held: a receipt carries a person's query.
"""

from typing import ClassVar


class PrmeError(ValueError):
    """Base of every refusal. `code` is stable; `pointer` is a JSON pointer into the document."""

    code: ClassVar[str] = "invalid_receipt"

    def __init__(self, detail: str, *, pointer: str = "") -> None:
        super().__init__(f"{detail} (at {pointer})" if pointer else detail)
        self.detail = detail
        self.pointer = pointer


class InvalidReceipt(PrmeError):
    """The bytes are not a receipt of a known version."""


class InvalidLabelRecord(PrmeError):
    """The bytes are not a label record."""

    code = "invalid_label_record"


class ForeignLabel(InvalidLabelRecord):
    """The label record is of other bytes, or of another owner, than its receipt."""


class UnknownLabelledNode(InvalidLabelRecord):
    """A label is on something that the receipt did not return, or that carries no text to judge."""


class LaterVersionClaim(PrmeError):
    """The receipt carries something that its schema version did not have."""

    code = "later_version_claim"


class ChecksumMismatch(PrmeError):
    """The bytes are not those that the checksum was taken over."""

    code = "checksum_mismatch"


class ReplayMismatch(PrmeError):
    """The recorded inputs do not reproduce a recorded score, or the order."""

    code = "replay_mismatch"


class ReplayUnavailable(PrmeError):
    """A version 1 receipt holds no score provenance: it can be labelled, not replayed and not fitted."""

    code = "replay_unavailable"
