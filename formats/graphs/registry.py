"""Every format of graph files, by name; a new one is one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mtpp import names
from mtpp.formats.graphs import (
    dot,
    graphml,
    language_model,
    native,
    node_link,
    pipedream,
    piper,
    placement,
    tensorflow_cost_graph,
)
from mtpp.formats.graphs.graph_format import Content, GraphFormat
from mtpp.formats.results import model_explorer, stage_csv
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device


def _of_document(make: Callable[..., CostGraph]) -> Callable[..., CostGraph]:
    """Return the reader of JSON by what makes a graph of a document."""

    def read(content: Content, **terms: Any) -> CostGraph:
        return make(content.document, content.source.display, name=content.source.stem, **terms)

    return read


def _of_data(make: Callable[..., CostGraph]) -> Callable[..., CostGraph]:
    """Return the reader of another text by what makes a graph of its bytes."""

    def read(content: Content, **terms: Any) -> CostGraph:
        return make(content.source.data, content.source.display, name=content.source.stem, **terms)

    return read


def _read_graphml(content: Content, **terms: Any) -> CostGraph:
    from mtpp.formats.graphs.graphml_reader import read_graphml

    return _of_data(read_graphml)(content, **terms)


def _read_onnx(content: Content, *, system: Device | None, **terms: Any) -> CostGraph:
    from mtpp.formats.onnx import read_onnx

    source, system = content.source, system or load_device()
    return read_onnx(source.path, source.data, source=source.display, name=source.stem, system=system, **terms)


def _read_torch_export(content: Content, *, system: Device | None, **terms: Any) -> CostGraph:
    from mtpp.formats.torch_export import read_program

    source, system = content.source, system or load_device()
    return read_program(source.stored, source=source.display, name=source.stem, system=system, **terms)


def _read_language_model(content: Content, **terms: Any) -> CostGraph:
    from mtpp.formats.language_models.graph import read_language_model_graph

    return read_language_model_graph(content, **terms)


def _recognises_data(looks_like: Callable[[bytes], bool]) -> Callable[[Content], bool]:
    """Return whether content is no JSON, and its bytes look like a format."""
    return lambda content: not content.is_json and looks_like(content.source.data)


def _looks_like_graphml(data: bytes) -> bool:
    from mtpp.formats.graphs.graphml_reader import looks_like_graphml

    return looks_like_graphml(data)


def _looks_like_onnx(data: bytes) -> bool:
    from mtpp.formats.onnx import looks_like_onnx

    return looks_like_onnx(data)


def _looks_like_archive(data: bytes) -> bool:
    from mtpp.formats.torch_export.archive import looks_like_archive

    return looks_like_archive(data)


_OF_MODELS = frozenset(("dims", "system", "spare_dims"))
"""Options of readers of models, whose costs are modelled."""

FORMATS = (
    GraphFormat(
        name=names.NATIVE,
        suffixes=(".json",),
        recognises=lambda content: content.has("format") and content.document["format"] == native.FORMAT,
        read=lambda content: native.graph_from_document(content.document, content.source.display),
        write=native.write_native,
    ),
    GraphFormat(
        name=names.PLACEMENT,
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and placement.looks_like_placement(content.document),
        read=_of_document(placement.graph_from_placement),
        takes=frozenset(("time_unit", "backward")),
        assumes=True,
    ),
    GraphFormat(
        name=names.PIPER,
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and piper.looks_like_piper(content.document),
        read=_of_document(piper.graph_from_piper),
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(
        name=names.NODE_LINK,
        suffixes=(".nodelink", ".node-link"),
        recognises=lambda content: content.has("nodes") and (content.has("edges") or content.has("links")),
        read=_of_document(node_link.graph_from_node_link),
        write=node_link.write_node_link,
        write_stages=node_link.write_node_link_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name=names.GRAPHML,
        suffixes=(".graphml",),
        shared_suffixes=(".xml",),
        recognises=_recognises_data(_looks_like_graphml),
        read=_read_graphml,
        write=graphml.write_graphml,
        write_stages=graphml.write_graphml_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name=names.DOT,
        suffixes=(".dot", ".gv"),
        recognises=_recognises_data(dot.looks_like_dot),
        write=dot.write_dot,
        write_stages=dot.write_dot_stages,
    ),
    GraphFormat(
        name=names.CSV, suffixes=(".csv",), recognises=lambda content: False, write_stages=stage_csv.write_stage_csv
    ),
    GraphFormat(
        name=names.MODEL_EXPLORER,
        suffixes=(),
        recognises=lambda content: False,
        write_stages=model_explorer.write_stages,
    ),
    GraphFormat(
        name=names.PIPEDREAM,
        suffixes=(),
        shared_suffixes=(".txt",),
        recognises=_recognises_data(pipedream.looks_like_pipedream),
        read=_of_data(pipedream.read_pipedream),
        takes=frozenset(("time_unit", "backward", "loading_time")),
        assumes=True,
    ),
    GraphFormat(
        name=names.TENSORFLOW,
        suffixes=(".pbtxt",),
        shared_suffixes=(".txt",),
        recognises=_recognises_data(tensorflow_cost_graph.looks_like_cost_graph),
        read=_of_data(tensorflow_cost_graph.read_cost_graph),
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(
        name=names.TORCH_EXPORT,
        suffixes=(".pt2",),
        recognises=_recognises_data(_looks_like_archive),
        read=_read_torch_export,
        takes=_OF_MODELS,
    ),
    GraphFormat(  # no file: what a function of the user's builds, exported before it comes here
        name=names.TORCH,
        suffixes=(),
        recognises=lambda content: False,
        read=_read_torch_export,
        takes=_OF_MODELS,
    ),
    GraphFormat(
        name=names.ONNX,
        suffixes=(".onnx",),
        recognises=_recognises_data(_looks_like_onnx),
        read=_read_onnx,
        takes=_OF_MODELS,
    ),
    GraphFormat(  # no file: what headers and configuration of one say, put together before it comes here
        name=names.LANGUAGE_MODEL,
        suffixes=(),
        recognises=lambda content: language_model.looks_like_description(content.source.data),
        read=_read_language_model,
        takes=_OF_MODELS,
    ),
    GraphFormat(  # no file: a language model op by op, built and exported before it comes here
        name=names.FROM_TRANSFORMERS,
        suffixes=(),
        recognises=lambda content: False,
        read=_read_torch_export,
        takes=_OF_MODELS,
    ),
)
"""In the order in which they are tried."""
