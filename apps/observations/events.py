"""The event of an admitted search: what becomes its record, made from the answer that is about to be sent.

A snapshot holds ids, ranks and hashes alone, and no text, title or file name. A content hash says which version it
was; it is no kept corpus.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.core import canonical
from apps.core.text import refused_by, utf16_len
from apps.observations.admission import Ticket
from apps.observations.constants import MAX_QUERY_UNITS
from apps.observations.exceptions import NotStored, SnapshotMismatch
from apps.observations.fingerprints import VERSION, active_key, fingerprint
from apps.observations.models.observations import Disposition

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit as it was retrieved, before the answer was shaped.

    source, filename: repo and path of the node. indexed_hash: of the whole indexed content, as read by the query
    that retrieved the row; None where it was not. parent: content of what the hit is shown under.
    """

    id: UUID
    source: str | None
    filename: str | None
    content: str
    indexed_hash: str | None
    parent: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Answered:
    """What was asked and answered. `available`: length of the ranked list, of which the hits are the beginning.

    body: the answer as it is about to be sent. It holds texts, so it shows itself nowhere.
    """

    query: str
    ranked: Sequence[RankedHit]
    available: int
    body: bytes
    trace_id: UUID | None
    ranking_profile_id: UUID | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """A record to be written, with the text where one may be kept."""

    ticket: Ticket
    trace_id: UUID | None
    record_expires_at: datetime
    query_fingerprint: str
    fingerprint_key_id: str
    fingerprint_version: str
    text_disposition: Disposition
    query_text: str | None
    text_expires_at: datetime | None
    release: str | None
    ranking_profile_id: UUID | None
    snapshot: Mapping[str, Any]


def content_hash(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, 64 lower hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def source_reference(source: str | None, filename: str | None) -> str:
    """SHA-256 of compact JSON of both, so that neither is shown."""
    return canonical.checksum([source, filename])


def event_of(ticket: Ticket, answered: Answered) -> Event:
    """Raises NotStored: SnapshotMismatch for an id that was not ranked, `no_key` without one."""
    key = active_key()
    if key is None:
        raise NotStored("no_key")
    record_expires_at = ticket.observed_at + timedelta(hours=ticket.record_hours)
    disposition = disposition_of(ticket, answered.query)
    kept = disposition == Disposition.RETAINED
    text_expires_at = None
    if kept and ticket.text_days is not None:
        text_expires_at = min(ticket.observed_at + timedelta(hours=24 * ticket.text_days), record_expires_at)
    return Event(
        ticket=ticket,
        trace_id=answered.trace_id,
        record_expires_at=record_expires_at,
        query_fingerprint=fingerprint(key, str(ticket.principal_id), answered.query),
        fingerprint_key_id=key.id,
        fingerprint_version=VERSION,
        text_disposition=disposition,
        query_text=answered.query if kept else None,
        text_expires_at=text_expires_at,
        release=settings.RELEASE or None,
        ranking_profile_id=answered.ranking_profile_id,
        snapshot=snapshot_of(answered),
    )


def disposition_of(ticket: Ticket, query: str) -> Disposition:
    """What becomes of the text; the first that fits."""
    if ticket.corpus == "private":
        return Disposition.PRIVATE
    if ticket.text_days is None:
        return Disposition.DISABLED
    return Disposition.RETAINED if may_be_kept(query) else Disposition.FILTERED


def may_be_kept(text: str) -> bool:
    """1..4000 UTF-16 units, and nothing in it that the filter knows as a credential or a personal number."""
    return 1 <= utf16_len(text) <= MAX_QUERY_UNITS and refused_by(text) is None


def snapshot_of(answered: Answered) -> dict[str, Any]:
    """What was returned of what was ranked. Raises SnapshotMismatch."""
    ranked = {str(hit.id): hit for hit in answered.ranked}
    hits = [
        _hit(ranked, rank, returned) for rank, returned in enumerate(json.loads(answered.body)["results"], 1)
    ]
    return {
        "version": SNAPSHOT_VERSION,
        "availableCount": answered.available,
        "returnedCount": len(hits),
        "omittedHits": len(hits) < answered.available,
        "hits": hits,
    }


def _hit(ranked: Mapping[str, RankedHit], rank: int, returned: Mapping[str, Any]) -> dict[str, Any]:
    hit = ranked.get(returned["node_id"])
    if hit is None:
        raise SnapshotMismatch
    retrieved, sent = content_hash(hit.content), content_hash(returned["content"])
    parent = returned.get("parent")
    changed = parent != hit.parent or sent != retrieved
    return {
        "id": str(hit.id),
        "rank": rank,
        "sourceRef": source_reference(hit.source, hit.filename),
        "indexedContentHash": hit.indexed_hash,
        "retrievedContentHash": retrieved,
        "returnedContentHash": sent,
        "returnedParentHash": content_hash(parent) if parent is not None else None,
        "excerpted": changed or (hit.indexed_hash is not None and hit.indexed_hash != sent),
    }
