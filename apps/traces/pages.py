"""What staff see of a trace: its sources by rank with what made each score, exclusions at their place, paths.

Reads in a staff session; nothing here is raw text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.traces.models import Trace
from apps.traces.paths import Edge
from apps.traces.selectors import SavedSource, saved_sources

LOCATION = re.compile(r"^(results|graph_results)\[(\d+)\](?:\.same_entity\.others\[(\d+)\])?$")
RECORDING_TONES = {"complete": "ok", "partial": "warn", "unresolved": "bad"}
REASONS: dict[str, str] = {
    "canonical_identity_unavailable": "identity unavailable",
    "live_version_unavailable": "version of the live text unavailable",
    "withheld": "shown redacted or withheld",
    "unverifiable_graph_path": "path not verifiable",
}
# Rows of the answer that were not recorded are few; more than this says something else is wrong.
MOST_EXCLUSIONS = 300


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stood in the answer, for sorting: axis, index, index among those folded under it."""

    axis: str
    index: int
    folded: int

    @property
    def order(self) -> tuple[int, int, int]:
        return (0 if self.axis == "results" else 1, self.index, self.folded)


def place(location: str) -> Place:
    """The place that a positional location names; unknown forms come last."""
    found = LOCATION.match(location)
    if found is None:
        return Place("results", 10_000, 0)
    axis, index, folded = found.groups()
    return Place(axis, int(index), -1 if folded is None else int(folded))


def source_name(provenance: Mapping[str, Any]) -> str:
    """`acme/app · wiki_doc keys/rotate.md`, `acme/app · issue #7`."""
    identity = provenance["identity"]
    if isinstance(identity, list):
        shown = " ".join(str(part)[:12] if at == 0 else str(part) for at, part in enumerate(identity))
    else:
        shown = f"#{identity}" if isinstance(identity, int) else str(identity)
    return f"{provenance['repo']} · {provenance['type']} {shown}"


def recording_mark(trace: Trace) -> ui.Mark | str:
    """Complete is the normal case and stays quiet."""
    recording = trace.recording or {}
    status = recording.get("status", "complete")
    if status == "complete":
        return "complete"
    excluded = recording.get("excluded_sources", 0)
    total = excluded + recording.get("recorded_sources", 0)
    words = f"{status}, {excluded} of {total} not recorded" if excluded else status
    return ui.Mark(RECORDING_TONES.get(status, "plain"), words)  # type: ignore[arg-type]


def contributions(
    components: Mapping[str, Any], weights: Mapping[str, Any], score: float | None
) -> list[tuple[str, float]]:
    """What each feature added to the score: as recorded, else weight × feature, else shares of the score."""
    recorded = components.get("contributions")
    if isinstance(recorded, Mapping):
        return [(name, float(value)) for name, value in recorded.items() if isinstance(value, int | float)]
    features = components.get("features", components)
    values = {name: features.get(name) for name in ui.FEATURES if isinstance(features.get(name), int | float)}
    if weights:
        return [(name, float(value) * float(weights.get(name) or 0)) for name, value in values.items()]
    total = sum(float(value) for value in values.values())
    if not total or score is None:
        return []
    return [(name, float(value) / total * score) for name, value in values.items()]


def applied_weights(trace: Trace) -> Mapping[str, Any]:
    """The weights under which the trace was scored, where it keeps them."""
    weights = (trace.settings or {}).get("weights") or {}
    applied = weights.get("applied", weights) if isinstance(weights, Mapping) else {}
    return applied if isinstance(applied, Mapping) else {}


@dataclass(frozen=True)
class Sources:
    """The parts of a trace's page that show what was returned."""

    ranked: ui.Records
    graph: ui.Records | None
    paths: ui.PathDrawing | None
    count: int


def sources_of(
    trace: Trace, labels: Mapping[str, Any] | None = None, strengths: Mapping[str, float] | None = None
) -> Sources:
    """Everything returned, in the order of the answer. `labels` by source id; `strengths` by edge key."""
    saved = saved_sources(trace.pk)
    weights = applied_weights(trace)
    scale = max((source.score or 0.0 for source in saved), default=0.0)
    ranked: list[tuple[tuple[int, int, int], ui.Record]] = []
    graph: list[tuple[tuple[int, int, int], ui.Record]] = []
    for source in saved:
        at = place(source.location)
        record = _record(source, at, weights, scale, labels or {})
        (ranked if at.axis == "results" else graph).append((at.order, record))
    for at, reason in _exclusions(trace):
        (ranked if at.axis == "results" else graph).append((at.order, _excluded(at, reason)))
    drawing = _drawing(saved, strengths or {})
    return Sources(
        ranked=_table("Sources by rank", ranked),
        graph=_table("Pages reached over the graph", graph) if graph else None,
        paths=drawing,
        count=len(saved),
    )


def _table(caption: str, rows: Sequence[tuple[tuple[int, int, int], ui.Record]]) -> ui.Records:
    columns = [
        ui.Column("#", "num"),
        ui.Column("source", "main"),
        ui.Column("score", "num"),
        ui.Column("what made the score"),
        ui.Column("stage"),
        ui.Column("label", later=True),
    ]
    ordered = [record for _, record in sorted(rows, key=lambda row: row[0])]
    empty = ui.EmptyState("Zero hit.", "Nothing was returned, and that was recorded.", level=3)
    return ui.Records(caption, columns, ordered, header=1, empty=empty)


def _record(
    source: SavedSource, at: Place, weights: Mapping[str, Any], scale: float, labels: Mapping[str, Any]
) -> ui.Record:
    name = source_name(source.provenance)
    if at.folded >= 0:
        name = f"{name} (folded under #{at.index + 1})"
    parts = contributions(source.components, weights, source.score)
    bar: Any = ui.ScoreBar(parts, scale, _adjustments(source)) if parts else _axis_words(source)
    return ui.Record(
        [
            at.index + 1 if at.folded < 0 else "·",
            name,
            ui.score(source.score, absent="no score on this axis"),
            bar,
            ui.StageDots(source.stage),
            labels.get(source.source_id, ui.nothing("no label")),
        ],
        more=_more(source),
        tone="" if at.folded < 0 else "quiet",
    )


def _axis_words(source: SavedSource) -> Any:
    if source.hop is not None:
        return f"{source.hop} hop{'s' if source.hop > 1 else ''}"
    return ui.nothing("not recorded")


def _adjustments(source: SavedSource) -> list[tuple[str, float]]:
    """Named changes after the sum; a factor is shown by what it took away or gave."""
    found = []
    value = float(source.score or 0.0)
    for step in source.components.get("adjustments") or ():
        coefficient = step.get("coefficient") if isinstance(step, Mapping) else None
        if isinstance(coefficient, int | float) and coefficient:
            found.append((str(step.get("kind", "adjustment")), value - value / coefficient))
    return found


def _more(source: SavedSource) -> SafeString:
    """All that is recorded of one source, behind its row."""
    provenance = source.provenance
    facts = [
        ui.Fact("source id", ui.short_hash(source.source_id, "source id")),
        ui.Fact("version", provenance["version"]),
        ui.Fact("from", provenance["content_source"]),
        ui.Fact("axes", ", ".join(source.axes)),
        ui.Fact("rank", source.rank if source.rank is not None else ui.nothing("not on the ranked axis")),
        ui.Fact("score", ui.score(source.score, 10, absent="no score on this axis")),
        ui.Fact("node", ui.short_id(source.node_id, "node id") if source.node_id else ui.nothing("no node")),
    ]
    times = zip(("selected", "validated", "used"), source.times, strict=True)
    facts += [ui.Fact(name, ui.when(at)) for name, at in times if at is not None]
    tree = ui.JsonTree(source.components, f"components-{source.position}") if source.components else ""
    return format_html("{}{}", ui.Facts(facts), tree)


def _exclusions(trace: Trace) -> list[tuple[Place, str]]:
    found = (trace.recording or {}).get("exclusions") or []
    return [
        (place(str(entry.get("location", ""))), str(entry.get("reason", "")))
        for entry in found[:MOST_EXCLUSIONS]
    ]


def _excluded(at: Place, reason: str) -> ui.Record:
    words = f"row not recorded: {REASONS.get(reason, reason)}, shown to the client at this place"
    return ui.Record(
        [at.index + 1 if at.folded < 0 else "·", words, ui.nothing("not recorded"), "", "", ""], tone="quiet"
    )


def _drawing(saved: Sequence[SavedSource], strengths: Mapping[str, float]) -> ui.PathDrawing | None:
    paths = [path for source in saved for path in source.paths][:4]
    if not paths:
        return None
    return ui.PathDrawing([_hops(path, strengths) for path in paths], paths[0][0].repo)


def _hops(path: Sequence[Edge], strengths: Mapping[str, float]) -> list[ui.Hop]:
    """Edges in walking order, each in its stored direction with whether it was walked against it."""
    hops: list[ui.Hop] = []
    end: str | None = None
    for at, edge in enumerate(path):
        if end is not None:
            backwards = edge.src != end
        else:
            following = path[at + 1] if at + 1 < len(path) else None
            backwards = following is not None and edge.dst not in (following.src, following.dst)
        hops.append(ui.Hop(edge.src, edge.dst, edge.kind, strengths.get(edge.key), backwards))
        end = edge.src if backwards else edge.dst
    return hops
