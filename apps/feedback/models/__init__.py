"""Tables of outcomes, judgments, citations and ablations."""

from .ablations import Ablation, PresenceAssessment, PresenceTier
from .citations import CitationMethod, CitationSet
from .judgments import MAX_JUDGED, NO_GRADE, PRINCIPAL, Judgment, JudgmentKind, JudgmentMethod, Surface
from .outcomes import MAX_DELTA, MAX_STRENGTH, Credit, EdgeStrength, LedgerRotation

__all__ = [
    "MAX_DELTA",
    "MAX_JUDGED",
    "MAX_STRENGTH",
    "NO_GRADE",
    "PRINCIPAL",
    "Ablation",
    "CitationMethod",
    "CitationSet",
    "Credit",
    "EdgeStrength",
    "Judgment",
    "JudgmentKind",
    "JudgmentMethod",
    "LedgerRotation",
    "PresenceAssessment",
    "PresenceTier",
    "Surface",
]
