"""Live bodies: the text of a page as its origin gives it now, in place of the indexed copy.

A port. Connections register readers for their repositories; without one the indexed copy is shown. Reading may use
the network, so it happens outside of any session.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from apps.search.rows import ShownRow
from apps.sources.identity import LIVE, content_version

log = structlog.get_logger(__name__)

MAX_OF_A_TYPE = {"doc": 5, "wiki_doc": 5}

Reader = Callable[[str, str, str], str | None]
"""(type, repository, path) → the text now; None where this reader has none."""

_readers: list[Reader] = []


def register_reader(reader: Reader) -> None:
    _readers.append(reader)


def unregister_reader(reader: Reader) -> None:
    _readers.remove(reader)


def inlined(rows: Sequence[ShownRow]) -> tuple[ShownRow, ...]:
    """The rows with the live text of the first documents and pages, each a version of its own."""
    left = dict(MAX_OF_A_TYPE)
    shown = []
    for row in rows:
        kind = row.provenance.type or ""
        if left.get(kind, 0) > 0:
            left[kind] -= 1
            shown.append(_live(row))
        else:
            shown.append(row)
    return tuple(shown)


def _live(row: ShownRow) -> ShownRow:
    text = _read(row)
    if text is None:
        return row
    provenance = replace(row.provenance, version=content_version(text), content_source=LIVE)
    return replace(row, content=text, provenance=provenance, index_updated_at=row.provenance.version)


def _read(row: ShownRow) -> str | None:
    given = row.provenance
    if not (given.type and given.repo and isinstance(given.identity, str)):
        return None
    for reader in _readers:
        try:
            text = reader(given.type, given.repo, given.identity)
        except Exception:
            log.warning("live body not read")
            continue
        if text is not None:
            return text
    return None
