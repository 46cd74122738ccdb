"""A run's definition as a view shows it: whole, or by windows of its nodes and edges."""

from __future__ import annotations

from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import PAGE_BYTES_MAX, VIEW_DEFINITION_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.views.content import stored_value
from pi_workflows.views.page import around, window
from pi_workflows.views.value import embed, marked

_WINDOWED: Final = frozenset({"nodes", "edges"})


def definition_document(
    read: Read,
    definition_hash: bytes,
    node_path: str | None,
    *,
    whole_bytes_max: int = VIEW_DEFINITION_BYTES_MAX,
    page_bytes_max: int = PAGE_BYTES_MAX,
) -> bytes:
    """Return `pi-workflows.definition-snapshot.v1` as a run view holds it.

    Args:
        read: The view's read.
        definition_hash: The stored snapshot.
        node_path: The node that the view is about; the windows stand around it.
        whole_bytes_max: A larger snapshot is shown by windows.
        page_bytes_max: Bytes of each window.

    Returns:
        Canonical bytes. By windows it has `nodeStart`, `nodeTotal`, `edgeStart`, `edgeTotal`, and
        `content` refers to the whole.
    """
    value = stored_value(read, definition_hash)
    assert value is not None, "a run without its definition"
    if value.byte_length <= whole_bytes_max:
        return embed(read, value, whole_bytes_max)
    document = read.document(canonical.decode, definition_hash)
    nodes = document.get("nodes") if isinstance(document, dict) else None
    edges = document.get("edges") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(nodes, dict) or not isinstance(edges, list):
        raise Corrupt("A stored definition is not one.", code="definition")
    # Only the cases of a switch have names that an author chose freely.
    edges = [marked(edge) for edge in edges]
    paths = list(nodes)
    node_at = paths.index(node_path) if node_path in nodes else 0
    edge_at = _edge_index(edges, node_path)
    near = [{paths[index]: nodes[paths[index]]} for index in window(len(paths), node_at)]
    shown = around(len(paths), node_at, list(near), page_bytes_max)
    near_ways = [edges[index] for index in window(len(edges), edge_at)]
    ways = around(len(edges), edge_at, near_ways, page_bytes_max)
    listed = paths[shown.start : shown.start + len(shown.items)]
    rest = {name: member for name, member in document.items() if name not in _WINDOWED}
    return canonical.encode(
        {
            **rest,
            "nodes": {path: nodes[path] for path in listed},
            "nodeStart": shown.start,
            "nodeTotal": shown.total,
            "edges": edges[ways.start : ways.start + len(ways.items)],
            "edgeStart": ways.start,
            "edgeTotal": ways.total,
            "content": canonical.fragment(value.reference()),
        }
    )


def _edge_index(edges: list[Json], node_path: str | None) -> int:
    """Return the place of the edge that leaves a node; 0 when none does."""
    for index, edge in enumerate(edges):
        if isinstance(edge, dict) and edge.get("from") == node_path:
            return index
    return 0
