"""PRME receipts (schema versions 1 to 22): read, verify, refuse, replay.

`read_receipt(raw)` verifies one receipt over its exact bytes; `iter_receipts(path)` those of a file;
`replay(document)` recomputes scores and order. Everything here only reads and computes.
"""

from apps.retrieval.prme.documents import LabelRecord, ReceiptDocument
from apps.retrieval.prme.exceptions import (
    ChecksumMismatch,
    InvalidLabelRecord,
    InvalidReceipt,
    LaterVersionClaim,
    PrmeError,
    ReplayMismatch,
    ReplayUnavailable,
)
from apps.retrieval.prme.reading import (
    PrmeReceipt,
    checksum_of,
    iter_label_records,
    iter_receipts,
    parse_receipt,
    read_label_record,
    read_receipt,
)
from apps.retrieval.prme.replay import Replay, replay, verify_replay

__all__ = [
    "ChecksumMismatch",
    "InvalidLabelRecord",
    "InvalidReceipt",
    "LabelRecord",
    "LaterVersionClaim",
    "PrmeError",
    "PrmeReceipt",
    "ReceiptDocument",
    "Replay",
    "ReplayMismatch",
    "ReplayUnavailable",
    "checksum_of",
    "iter_label_records",
    "iter_receipts",
    "parse_receipt",
    "read_label_record",
    "read_receipt",
    "replay",
    "verify_replay",
]
