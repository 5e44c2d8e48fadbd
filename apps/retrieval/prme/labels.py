"""Whether a label record fits the receipt that it names."""

from collections.abc import Mapping

from apps.retrieval.prme.documents import Candidate, LabelRecord
from apps.retrieval.prme.exceptions import ForeignLabel, UnknownLabelledNode


def check_labels(record: LabelRecord, *, checksum: str, candidates: Mapping[str, Candidate]) -> None:
    """Refuse a record of other bytes, or on nodes that it cannot judge.

    `candidates` are those of the receipt by node id. Raises ForeignLabel, UnknownLabelledNode.
    """
    if record.receipt_checksum != checksum:
        raise ForeignLabel("a label record names other bytes of its receipt", pointer="/receipt_checksum")
    for node_id, label in record.labels.items():
        _check_label(candidates.get(node_id), label, on_context=record.surface == "context")


def _check_label(candidate: Candidate | None, label: bool, *, on_context: bool) -> None:
    if candidate is None:
        raise UnknownLabelledNode("a label names a node that the receipt did not return", pointer="/labels")
    if on_context and not candidate.in_context:
        raise UnknownLabelledNode("a label on the context names a node outside of it", pointer="/labels")
    if on_context and label and not candidate.has_content:
        raise UnknownLabelledNode(
            "a positive label on the context names an entry without content", pointer="/labels"
        )
