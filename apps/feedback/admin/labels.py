"""What the page of a trace says of labels and citations. Reads in a staff session; nothing here is raw text."""

from typing import Any
from uuid import UUID

from apps.core import ui
from apps.feedback.models import NO_GRADE, Surface
from apps.feedback.selectors.citations import citations_state
from apps.feedback.selectors.labels import FoldedLabels, folded_labels_of
from apps.traces.models import Trace, TraceSource


def citations_words(receipt_id: UUID) -> Any:
    """One of three states: none reported, reported none, n cited."""
    found = citations_state(receipt_id)
    if found.state == "none_reported":
        return "none reported"
    return f"{ui.count(len(found.node_ids))} cited" if found.node_ids else "reported none"


def label_marks(trace: Trace) -> dict[str, Any]:
    """By source id: the label of its row among the results, where one is in force."""
    if trace.retrieval_receipt_id is None:
        return {}
    labels = folded_labels_of(principal_id=trace.principal_id, receipt_ids=[trace.retrieval_receipt_id])
    if not len(labels):
        return {}
    said = _by_node(labels)
    named = TraceSource.objects.filter(trace_id=trace.pk, node_id__in=said).values_list(
        "source_id", "node_id"
    )
    return {source_id: _mark(said[node_id]) for source_id, node_id in named if node_id is not None}


def _by_node(labels: FoldedLabels) -> dict[UUID, list[tuple[bool, int]]]:
    found: dict[UUID, list[tuple[bool, int]]] = {}
    for node, surface, value, grade in zip(
        labels.node_ids, labels.surfaces, labels.values.tolist(), labels.grades.tolist(), strict=True
    ):
        if surface == Surface.RESULTS:
            found.setdefault(node, []).append((value, grade))
    return found


def _mark(said: list[tuple[bool, int]]) -> ui.Mark:
    relevant = sum(value for value, _ in said)
    if 0 < relevant < len(said):
        return ui.Mark("warn", f"{relevant} of {len(said)} relevant")
    grades = sorted({grade for _, grade in said if grade != NO_GRADE})
    graded = f", grade {'–'.join(map(str, grades))}" if grades else ""
    return ui.Mark("ok" if relevant else "plain", f"{'' if relevant else 'not '}relevant{graded}", bare=True)
