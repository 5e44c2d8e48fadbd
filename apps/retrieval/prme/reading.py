"""From bytes to verified receipts and label records.

The bytes are the receipt: its checksum is SHA-256 over them exactly as they came, and label records name it
by that. They are parsed to be checked and never written again.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from pydantic import ValidationError

from apps.core.schemas import StrictModel, pointer
from apps.retrieval.prme.documents import LabelRecord, ReceiptDocument
from apps.retrieval.prme.exceptions import (
    ChecksumMismatch,
    InvalidLabelRecord,
    InvalidReceipt,
    PrmeError,
)
from apps.retrieval.prme.replay import check_candidates, verify_replay
from apps.retrieval.prme.versions import check_version

Document = TypeVar("Document", bound=StrictModel)
Parsed = TypeVar("Parsed")

# A receipt of 1,000 candidates has about 2 MB.
MAX_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PrmeReceipt:
    """A receipt that passed every check that its version allows."""

    raw: bytes
    checksum: str
    document: ReceiptDocument

    @property
    def can_replay(self) -> bool:
        return self.document.schema_version >= 2


@dataclass(frozen=True, slots=True)
class PrmeLabels:
    """A label record and its bytes."""

    raw: bytes
    record: LabelRecord


def checksum_of(raw: bytes) -> str:
    """SHA-256 of a receipt's exact bytes, 64 lower hex digits."""
    return hashlib.sha256(raw).hexdigest()


def parse_receipt(raw: bytes) -> ReceiptDocument:
    """Shape, types, version rules and identities; not the arithmetic.

    Raises InvalidReceipt or LaterVersionClaim.
    """
    _load_object(raw, InvalidReceipt)
    return _parse_distinct(raw)


def read_receipt(raw: bytes, *, expected_checksum: str | None = None) -> PrmeReceipt:
    """A verified receipt: checksum where one is given, shape, version rules, exact replay.

    Version 1 cannot be replayed and is accepted without. Raises a subclass of PrmeError.
    """
    _load_object(raw, InvalidReceipt)
    return _read_distinct(raw, expected_checksum)


def read_receipt_line(line: bytes) -> PrmeReceipt:
    """A verified receipt from a line of a file. Raises a subclass of PrmeError.

    A line is the raw receipt, or `{"receipt": <its text>, "checksum": <hex>}` as PRME's store holds it.
    """
    return _read_line(line, _load_object(line, InvalidReceipt))


def read_line(line: bytes) -> PrmeReceipt | PrmeLabels:
    """What a line of an export holds: a receipt in either form, or a label record. Raises a subclass of PrmeError."""
    document = _load_object(line, InvalidReceipt)
    if "feedback_id" in document:
        return PrmeLabels(line, _validate(LabelRecord, line, InvalidLabelRecord))
    return _read_line(line, document)


def _read_line(line: bytes, document: dict[str, Any]) -> PrmeReceipt:
    if "receipt" not in document:
        return _read_distinct(line, None)
    text, checksum = document.get("receipt"), document.get("checksum")
    if set(document) != {"receipt", "checksum"} or not isinstance(text, str) or not isinstance(checksum, str):
        raise InvalidReceipt("a stored line holds receipt and checksum, both text")
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InvalidReceipt("text holds a lone surrogate", pointer="/receipt") from None
    return read_receipt(raw, expected_checksum=checksum)


def read_label_record(raw: bytes) -> LabelRecord:
    """One label record. Raises InvalidLabelRecord."""
    _load_object(raw, InvalidLabelRecord)
    return _validate(LabelRecord, raw, InvalidLabelRecord)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 and lines without their newline, of a `.jsonl` or `.jsonl.gz` file.

    Raises OSError, or InvalidReceipt for a damaged archive or a line above MAX_LINE_BYTES.
    """
    with _open(path) as file:
        number = 0
        while True:
            try:
                line = file.readline(MAX_LINE_BYTES + 1)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                raise InvalidReceipt("the file is not a whole gzip archive") from None
            if not line:
                return
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise InvalidReceipt(f"line {number} is longer than {MAX_LINE_BYTES} bytes")
            if line.strip():
                yield number, line.removesuffix(b"\n")


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def iter_receipts(path: Path) -> Iterator[PrmeReceipt]:
    """Verified receipts of a file, in its order. Errors name the file and the line."""
    return _iter_parsed(path, read_receipt_line)


def iter_label_records(path: Path) -> Iterator[LabelRecord]:
    """Label records of a file, in its order. Errors name the file and the line."""
    return _iter_parsed(path, read_label_record)


def _iter_parsed(path: Path, read: Callable[[bytes], Parsed]) -> Iterator[Parsed]:
    place = path.name
    try:
        for number, line in read_lines(path):
            place = f"{path.name} line {number}"
            yield read(line)
            place = path.name
    except PrmeError as error:
        raise type(error)(f"{place}: {error.detail}", pointer=error.pointer) from None


def load_json(raw: bytes) -> Any:
    """JSON without duplicate keys, NaN and Infinity (a literal beyond doubles may still be one).

    The walk of `core.schemas.loads` over every value would take longer than all other checks of a receipt;
    what it refuses beyond this, the strict documents refuse. Raises ValueError.
    """
    return json.loads(raw, object_pairs_hook=_distinct_keys, parse_constant=_refuse_constant)


def _load_object(raw: bytes, error: type[PrmeError]) -> dict[str, Any]:
    try:
        document = load_json(raw)
    except (ValueError, RecursionError):
        raise error("not a JSON document with distinct keys and finite numbers in UTF-8") from None
    if not isinstance(document, dict):
        raise error("not a JSON object")
    return document


def _validate(model: type[Document], raw: bytes, error: type[PrmeError]) -> Document:
    try:
        return model.model_validate_json(raw)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
        raise error(first["msg"].removeprefix("Value error, "), pointer=pointer(*first["loc"])) from None


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("not a finite number")


def _parse_distinct(raw: bytes) -> ReceiptDocument:
    document = _validate(ReceiptDocument, raw, InvalidReceipt)
    check_version(document)
    check_candidates(document)
    return document


def _read_distinct(raw: bytes, expected_checksum: str | None) -> PrmeReceipt:
    checksum = checksum_of(raw)
    if expected_checksum is not None and expected_checksum != checksum:
        raise ChecksumMismatch("the bytes are not those of the checksum", pointer="/checksum")
    document = _parse_distinct(raw)
    if document.schema_version >= 2:
        verify_replay(document)
    return PrmeReceipt(raw=raw, checksum=checksum, document=document)
