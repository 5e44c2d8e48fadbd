"""Reads of the graph for staff pages: counts, never text."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Coalesce

from apps.graph.models import Corpus, Embedder
from apps.graph.models.indexes import CorpusKind

EMBEDDED = (CorpusKind.CLAIMS, CorpusKind.PASSAGES)


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    """Live claims and passages of a principal, and how many have a vector of the active space, `model_id`."""

    rows: int
    vectors: int
    model_id: str


def vector_coverage(principal_id: UUID) -> VectorCoverage:
    """In a session that reads the principal's rows; two small rows of counters, nothing is counted."""
    counted = Corpus.objects.filter(principal_id=principal_id, kind__in=EMBEDDED).aggregate(
        rows=Coalesce(Sum("nodes"), 0), vectors=Coalesce(Sum("vectors"), 0)
    )
    model_id = Embedder.objects.filter(state="active").values_list("model_id", flat=True).first()
    return VectorCoverage(**counted, model_id=model_id or "")
