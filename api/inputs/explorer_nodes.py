"""Nodes of a model as Model Explorer calls them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.api.inputs.model import Model


def explorer_nodes(model: Model) -> tuple[str, Mapping[str, str]]:
    """Return the id of a model's graph and of the node of each of its ops, by the op's name."""
    from mtpp.formats.onnx import looks_like_onnx, read_with_nodes
    from mtpp.formats.onnx.loading import parse_model
    from mtpp.formats.results.model_explorer import PROGRAM_GRAPH, onnx_nodes
    from mtpp.formats.torch_export import looks_like_archive

    source = model.source_with_data()
    if looks_like_onnx(source.data):
        reading = read_with_nodes(
            source.path, source.data, source=source.display, dims=model.dims, system=model.system, name=source.stem
        )
        functions = parse_model(source.data, source.display).functions
        return onnx_nodes(reading, inlined=bool(functions))
    if looks_like_archive(source.data):
        return PROGRAM_GRAPH, {name: name for name in model.graph.op_names}
    raise InputError(
        f"{source.display} is no ONNX model and no exported program: Model Explorer does not open it",
        parameter="to",
        remedy="give the model, with its measured costs as ‹costs›, or choose node-link, graphml, dot or csv",
    )
