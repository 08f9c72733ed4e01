"""Groups of ops that share a stage: those named, those that engines keep together, blocks, and outer layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model
    from mtpp.api.options.search import AskedPartition


def groups_together(model: Model, asked: AskedPartition) -> tuple[tuple[str, ...], ...]:
    """Return the groups of ops that have to share a stage: those named, those of engines, blocks, and outer layers."""
    from mtpp.api.inputs.model import engine_groups

    together = asked.together
    if not asked.ignore_engine:
        together += engine_groups(model)
    if asked.together_blocks:
        together += block_groups(model)
    if asked.layers_only:
        together += layer_groups(model)
    return together


def layer_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return the ops of a language model that engines keep beside its layers: embedding and first layer, last and head.

    Raises
    ------
    InputError
        If it is no language model.
    """
    from mtpp.language_models.layer_graph import DECODER_EMBEDDING, EMBEDDING, HEAD

    names = list(model.graph.op_names)
    if "serving" not in model.graph.metadata:
        remedy = "keep ops ‹together›, or blocks with ‹together_blocks›"
        raise InputError("is of language models", parameter="layers_only", remedy=remedy)
    places = {name: names.index(name) for name in (EMBEDDING, DECODER_EMBEDDING, HEAD) if name in names}
    return tuple(
        (names[place - 1], name) if name == HEAD else (name, names[place + 1]) for name, place in places.items()
    )


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
