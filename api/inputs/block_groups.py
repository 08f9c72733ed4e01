"""Repeated blocks of a model as groups of ops that stay in one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model


def block_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the ops of each repeated block of a model, such as ``layers.7``; blocks of one op are left out."""
    import numpy as np

    from mtpp.api.inputs.module_paths import graph_with_modules
    from mtpp.formats.exporters.blocks import find_blocks
    from mtpp.formats.exporters.request import Request

    source = model.source_with_data()
    found_modules = graph_with_modules(source, model.dims, model.system)
    if found_modules is None:
        raise InputError(
            f"{source.display} is no ONNX model and no exported program",
            parameter="together_blocks",
            remedy="give the model, with its measured costs as ‹costs›, or name the ops with ‹together›",
        )
    graph, modules = found_modules
    found = find_blocks(Request(graph, np.zeros(graph.op_count, dtype=np.int32), 1, modules))
    members: list[list[str]] = [[] for _ in range(found.count)]
    for name, block in zip(graph.op_names, found.block_of, strict=True):
        if block is not None:
            members[block].append(name)
    return tuple(tuple(group) for group in members if len(group) > 1)
