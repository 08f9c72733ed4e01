"""Modules that the ops of a model came from, where its file says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.system import System


def graph_with_modules(
    source: Source, dims: Mapping[str, int], system: System
) -> tuple[CostGraph, Mapping[str, str]] | None:
    """Return the graph of an ONNX model or an exported program and the path of each op's module; None for others.

    Raises
    ------
    InputError
        If the model is broken.
    """
    from mtpp.formats.onnx import looks_like_onnx, read_with_nodes
    from mtpp.formats.onnx.module_names import module_names
    from mtpp.formats.torch_export import looks_like_archive, read_with_modules

    if looks_like_onnx(source.data):
        reading = read_with_nodes(
            source.path, source.data, source=source.display, dims=dims, system=system, name=source.stem
        )
        return reading.graph, module_names(reading)
    if looks_like_archive(source.data):
        program = read_with_modules(source.data, source=source.display, dims=dims, system=system, name=source.stem)
        return program.graph, program.modules
    return None
