"""What an owner may take out of the journal, and which copies are still out there."""

from typing import Any

from django.db import connection

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.text.unicode import TRIMMED
from apps.observations.models import ExportRecord, ObservationFeedback
from apps.observations.models.observations import Corpus
from apps.observations.models.visible import VisibleObservation
from apps.observations.selectors.observations import feedback_shown

MAX_CANDIDATES = 1000
ENVELOPE_VERSION = 1
KIND = "unlabelled-platform-query-candidates"
RETENTION_DAYS = 90
EXPIRY_BASIS = "The earlier of the text's and the record's deadline; exporting moves none."

# Normalised as fingerprints are, and compared as texts: a rotated key makes no duplicates. The 25 characters that
# trim takes are given as a parameter, since btrim without them takes spaces alone.
DISTINCT = """
  SELECT id FROM (
    SELECT DISTINCT ON (btrim(normalize(o.query_text, NFC), %(trimmed)s)) o.id, o.observed_at
    FROM observation_visible o
    WHERE o.principal_id = %(owner)s AND o.corpus = %(corpus)s AND o.query_text IS NOT NULL
    ORDER BY btrim(normalize(o.query_text, NFC), %(trimmed)s), o.observed_at DESC, o.id DESC) newest
  ORDER BY observed_at DESC, id DESC LIMIT %(most)s
"""


def candidates() -> list[dict[str, Any]]:
    """Own shared records with live text, one a distinct query, newest first, with feedback that was not withdrawn."""
    owner = current_principal().principal_id
    given: dict[str, Any] = {
        "owner": owner,
        "corpus": Corpus.SHARED.value,
        "trimmed": TRIMMED,
        "most": MAX_CANDIDATES,
    }
    with connection.cursor() as cursor:
        cursor.execute(DISTINCT, given)
        ids = [key for (key,) in cursor.fetchall()]
    rows = VisibleObservation.objects.filter(principal_id=owner, pk__in=ids, query_text__isnull=False)
    by_record: dict[Any, list[dict[str, Any]]] = {}
    feedback = ObservationFeedback.objects.filter(
        principal_id=owner, observation_id__in=ids, withdrawn_at=None
    ).order_by("observation_id", "hit_id")
    for each in feedback:
        by_record.setdefault(each.observation_id, []).append(feedback_shown(each))
    return [
        {
            "id": str(row.id),
            "query": row.query_text,
            "observedAt": clock.iso(row.observed_at),
            "expires_at": clock.iso(row.expires_at),
            "snapshot": row.snapshot,
            "feedback": by_record.get(row.id, []),
        }
        for row in rows.order_by("-observed_at", "-id")
    ]


def outstanding_copies() -> list[dict[str, Any]]:
    """Exported copies of the session's principal that have not expired and whose deletion nobody attested."""
    rows = ExportRecord.objects.filter(
        attested_at=None, latest_expires_at__gt=clock.now(), candidates__gt=0
    ).order_by("latest_expires_at", "id")
    return [
        {"expires_at": clock.iso(row.latest_expires_at), "custodian_class": row.custodian}
        for row in rows
        if row.latest_expires_at is not None
    ]
