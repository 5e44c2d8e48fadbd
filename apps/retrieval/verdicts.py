"""What holds of a stored receipt and what does not: check by check, the first thing that differs named.

Reading refuses a receipt that does not hold; here it is looked at all the same, by staff and by the replay of all.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from apps.core.schemas import pointer
from apps.retrieval.models import PrmeReceipt, Receipt
from apps.retrieval.prme import PrmeError, reading, verify_replay
from apps.retrieval.prme import replay as replay_prme
from apps.retrieval.prme.documents import ReceiptDocument as PrmeDocument
from apps.retrieval.prme.exceptions import ReplayMismatch
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.replay import Replay, replay
from apps.retrieval.receipts.schemas import ReceiptDocument

Document = ReceiptDocument | PrmeDocument
Name = Literal["checksum", "document", "arrays", "replay"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. `holds` is None where it cannot be asked; `says` is a sentence for people."""

    name: Name
    holds: bool | None
    says: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Every check in its order; `document` is None where the bytes are no receipt.

    scores: replayed, in the order of the candidates; empty where there was no replay.
    """

    checks: tuple[Check, ...]
    document: Document | None = None
    scores: tuple[float, ...] = ()

    @property
    def holds(self) -> bool:
        return all(check.holds is not False for check in self.checks)

    @property
    def replayed(self) -> bool:
        return any(check.name == "replay" and check.holds is not None for check in self.checks)

    @property
    def fault(self) -> str:
        """What the first failed check says; empty where all hold."""
        return next((check.says for check in self.checks if check.holds is False), "")


NOT_ASKED = "Not asked: what comes before it does not hold."


def native_verdict(row: Receipt) -> Verdict:
    """Of a native receipt; its document and arrays are read."""
    raw = row.document.encode()
    checks = [_checksum(raw, row.checksum)]
    try:
        document = ReceiptDocument.model_validate_json(raw)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
        says = f"At {pointer(*first['loc']) or '/'}: {first['msg'].removeprefix('Value error, ')}."
        return Verdict((*checks, Check("document", False, says), *_not_asked("arrays", "replay")))
    if document.receipt_id != str(row.pk):
        says = "At /receipt_id: it is another receipt's document."
        return Verdict((*checks, Check("document", False, says), *_not_asked("arrays", "replay")), document)
    checks.append(Check("document", True, f"Valid, schema {document.schema_version}."))
    checks.append(_arrays(row, document))
    replayed = replay(document)
    checks.append(_replay(document, replayed))
    return Verdict(tuple(checks), document, replayed.scores)


def prme_verdict(row: PrmeReceipt) -> Verdict:
    """Of an imported receipt; its document is read."""
    raw = row.document.encode()
    checks = [_checksum(raw, row.checksum)]
    try:
        document = reading.parse_receipt(raw)
    except PrmeError as error:
        return Verdict((*checks, Check("document", False, f"{error}."), *_not_asked("replay")))
    checks.append(Check("document", True, f"Valid, schema {document.schema_version} of PRME."))
    if document.schema_version == 1:
        says = "Cannot be replayed: schema 1 records no provenance of its scores."
        return Verdict((*checks, Check("replay", None, says)), document)
    scores = replay_prme(document).scores
    replayed = tuple(scores[candidate.node_id] for candidate in document.candidates)
    return Verdict((*checks, _replay_prme(document)), document, replayed)


def _not_asked(*names: Name) -> Iterator[Check]:
    return (Check(name, None, NOT_ASKED) for name in names)


def _checksum(raw: bytes, checksum: str) -> Check:
    if hashlib.sha256(raw).hexdigest() == checksum:
        return Check("checksum", True, "The stored bytes are those of the checksum.")
    return Check("checksum", False, "The stored bytes are not those that the checksum was taken over.")


def _arrays(row: Receipt, document: ReceiptDocument) -> Check:
    said = arrays_of(document.model_dump(include={"schema_version", "candidates", "weights"}))
    differing = [name for name in said.__slots__ if getattr(row, name) != getattr(said, name)]
    if not differing:
        return Check("arrays", True, "The arrays beside the document say what it says.")
    place = _first_difference(getattr(row, differing[0]), getattr(said, differing[0]))
    says = f"The array {differing[0]} differs from the document, first at value {place + 1}."
    return Check("arrays", False, says)


def _first_difference(one: Any, other: Any) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _replay(document: ReceiptDocument, replayed: Replay) -> Check:
    total = len(document.candidates)
    equal = total - len(replayed.drifts)
    if not replayed.weights_equal:
        return Check("replay", False, "The applied weights do not follow from base weights and multipliers.")
    if replayed.drifts:
        first = replayed.drifts[0]
        rank = next(
            place for place, each in enumerate(document.candidates, start=1) if each.node_id == first.node_id
        )
        return Check(
            "replay",
            False,
            f"{equal} of {total} scores equal. First that differs: candidate {rank}, node {first.node_id}, "
            f"field score: recorded {first.recorded!r}, replayed {first.replayed!r}.",
        )
    if not replayed.order_equal:
        rank, node_id = next(
            (place, each.node_id)
            for place, (each, wanted) in enumerate(
                zip(document.candidates, replayed.order, strict=True), start=1
            )
            if each.node_id != wanted
        )
        return Check(
            "replay",
            False,
            f"{total} of {total} scores equal, but not the order. First that differs: candidate {rank}, "
            f"node {node_id}, its place.",
        )
    return Check("replay", True, f"{total} of {total} scores equal to the last bit, and the order.")


def _replay_prme(document: PrmeDocument) -> Check:
    total = len(document.candidates)
    try:
        verify_replay(document)
    except ReplayMismatch as mismatch:
        return Check("replay", False, f"First that differs: {mismatch}.")
    return Check("replay", True, f"{total} of {total} scores equal to the last bit, and the order.")
