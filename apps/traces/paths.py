"""Paths by which the graph axis was reached: edge keys, and the verification before anything is credited.

Only what was really traversed can be verified; a path that cannot is saved as none, never repaired.
"""

from collections.abc import Sequence

from apps.retrieval.pages import PAGE_TYPE, Edge, PageNode, Path
from apps.sources.identity import is_identifiable
from apps.traces.models import MAX_PATHS, MAX_STEPS

__all__ = ["Edge", "PageNode", "Path", "verified"]

CREDITABLE_KINDS = {"mention"}
"""Kinds of edges that may gain strength. A mention goes from page to page of one repository."""


def verified(paths: Sequence[Path]) -> tuple[tuple[Edge, ...], ...]:
    """The paths that may be saved, in the order given, at most four."""
    good = [path.edges for path in paths if _is_verified(path)]
    return tuple(good[:MAX_PATHS])


def _is_verified(path: Path) -> bool:
    if not 1 <= len(path.edges) <= MAX_STEPS or len(path.nodes) != len(path.edges) + 1:
        return False
    if not all(node is not None and _is_page(node) for node in path.nodes):
        return False
    return all(
        _joins(edge, before, after)
        for edge, before, after in zip(path.edges, path.nodes, path.nodes[1:], strict=False)
    )


def _is_page(node: PageNode) -> bool:
    return node.provenance.type == PAGE_TYPE and is_identifiable(node.provenance)


def _joins(edge: Edge, before: PageNode | None, after: PageNode | None) -> bool:
    if before is None or after is None or edge.kind not in CREDITABLE_KINDS:
        return False
    if not edge.repo == before.provenance.repo == after.provenance.repo:
        return False
    return (before.slug, after.slug) in {(edge.src, edge.dst), (edge.dst, edge.src)}
