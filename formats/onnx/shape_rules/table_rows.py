"""Rows of tables that are picked by number: positions of tokens, of which a table has no more than it has."""

from __future__ import annotations

from mtpp.formats.onnx.node_view import MalformedNode, NodeView


def check_rows(node: NodeView) -> None:
    """Refuse a Gather with constant indices beyond the table: it fits by its shapes, and fails when it runs."""
    indices = node.value(1) if node.kind == "Gather" else None
    if indices is None or not indices.size:
        return
    rows = node.input(0).shape[node.integer("axis", 0)]
    if int(indices.max()) >= rows or int(indices.min()) < -rows:
        raise MalformedNode(f"index {int(indices.max())} of {rows} rows")
