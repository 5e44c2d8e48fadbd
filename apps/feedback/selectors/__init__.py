"""Reads of feedback: outcomes, judgments and their fold, citations, ablations."""

from .ablations import ablations_page, assessments_page
from .citations import CitationsState, citations_page, citations_state
from .judgments import judgments_page, shown_judgment
from .labels import FoldedLabels, folded_labels
from .outcomes import current_activation, history, learned_edges, strengths, trace_detail

__all__ = [
    "CitationsState",
    "FoldedLabels",
    "ablations_page",
    "assessments_page",
    "citations_page",
    "citations_state",
    "current_activation",
    "folded_labels",
    "history",
    "judgments_page",
    "learned_edges",
    "shown_judgment",
    "strengths",
    "trace_detail",
]
