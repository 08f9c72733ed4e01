"""Every format of graph files, by name; a new one is one entry here."""

from __future__ import annotations

from mtpp import names
from mtpp.formats.graphs import (
    dot,
    graphml,
    native,
    node_link,
    pipedream,
    piper,
    piper_graph,
    placement,
    tensorflow_cost_graph,
)
from mtpp.formats.graphs.graph_format import Content, GraphFormat, ReadOptions
from mtpp.formats.results import model_explorer, stage_csv
from mtpp.inference.graph import CostGraph
from mtpp.inference.system import load_system


def _read_native(content: Content, options: ReadOptions) -> CostGraph:
    return native.graph_from_document(content.document, content.source.display)


def _read_node_link(content: Content, options: ReadOptions) -> CostGraph:
    source = content.source
    return node_link.graph_from_node_link(
        content.document, source.display, name=source.stem, time_unit=options.time_unit
    )


def _read_placement(content: Content, options: ReadOptions) -> CostGraph:
    source = content.source
    return placement.graph_from_placement(
        content.document, source.display, name=source.stem, time_unit=options.time_unit, backward=options.backward
    )


def _read_piper(content: Content, options: ReadOptions) -> CostGraph:
    source = content.source
    return piper_graph.graph_from_piper(content.document, source.display, name=source.stem, time_unit=options.time_unit)


def _read_pipedream(content: Content, options: ReadOptions) -> CostGraph:
    source = content.source
    return pipedream.read_pipedream(
        source.data,
        source.display,
        name=source.stem,
        time_unit=options.time_unit,
        backward=options.backward,
        loading_time=options.loading_time,
    )


def _read_cost_graph(content: Content, options: ReadOptions) -> CostGraph:
    source = content.source
    return tensorflow_cost_graph.read_cost_graph(
        source.data, source.display, name=source.stem, time_unit=options.time_unit
    )


def _is_graphml(content: Content) -> bool:
    if content.is_json:
        return False
    from mtpp.formats.graphs.graphml_reader import looks_like_graphml

    return looks_like_graphml(content.source.data)


def _read_graphml(content: Content, options: ReadOptions) -> CostGraph:
    from mtpp.formats.graphs.graphml_reader import read_graphml

    source = content.source
    return read_graphml(source.data, source.display, name=source.stem, time_unit=options.time_unit)


def _is_onnx(content: Content) -> bool:
    if content.is_json:
        return False
    from mtpp.formats.onnx import looks_like_onnx

    return looks_like_onnx(content.source.data)


def _read_onnx(content: Content, options: ReadOptions) -> CostGraph:
    from mtpp.formats.onnx import read_onnx

    source = content.source
    return read_onnx(
        source.path,
        source.data,
        source=source.display,
        dims=options.dims,
        system=options.system or load_system(),
        name=source.stem,
        spare_dims=options.spare_dims,
    )


def _is_torch_export(content: Content) -> bool:
    if content.is_json:
        return False
    from mtpp.formats.torch_export.archive import looks_like_archive

    return looks_like_archive(content.source.data)


def _read_torch_export(content: Content, options: ReadOptions) -> CostGraph:
    from mtpp.formats.torch_export import read_program

    source = content.source
    return read_program(
        source.stored,
        source=source.display,
        dims=options.dims,
        system=options.system or load_system(),
        name=source.stem,
        spare_dims=options.spare_dims,
    )


FORMATS = (
    GraphFormat(
        name=names.NATIVE,
        suffixes=(".json",),
        recognises=lambda content: content.has("format") and content.document["format"] == native.FORMAT,
        read=_read_native,
        write=native.write_native,
    ),
    GraphFormat(
        name=names.PLACEMENT,
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and placement.looks_like_placement(content.document),
        read=_read_placement,
        takes=frozenset(("time_unit", "backward")),
        assumes=True,
    ),
    GraphFormat(
        name=names.PIPER,
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and piper.looks_like_piper(content.document),
        read=_read_piper,
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(
        name=names.NODE_LINK,
        suffixes=(".nodelink", ".node-link"),
        recognises=lambda content: content.has("nodes") and (content.has("edges") or content.has("links")),
        read=_read_node_link,
        write=node_link.write_node_link,
        write_stages=node_link.write_node_link_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name=names.GRAPHML,
        suffixes=(".graphml",),
        shared_suffixes=(".xml",),
        recognises=_is_graphml,
        read=_read_graphml,
        write=graphml.write_graphml,
        write_stages=graphml.write_graphml_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name=names.DOT,
        suffixes=(".dot", ".gv"),
        recognises=lambda content: not content.is_json and dot.looks_like_dot(content.source.data),
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
        recognises=lambda content: not content.is_json and pipedream.looks_like_pipedream(content.source.data),
        read=_read_pipedream,
        takes=frozenset(("time_unit", "backward", "loading_time")),
        assumes=True,
    ),
    GraphFormat(
        name=names.TENSORFLOW,
        suffixes=(".pbtxt",),
        shared_suffixes=(".txt",),
        recognises=lambda content: (
            not content.is_json and tensorflow_cost_graph.looks_like_cost_graph(content.source.data)
        ),
        read=_read_cost_graph,
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(
        name=names.TORCH_EXPORT,
        suffixes=(".pt2",),
        recognises=_is_torch_export,
        read=_read_torch_export,
        takes=frozenset(("dims",)),
    ),
    GraphFormat(  # no file: what a function of the user's builds, exported before it comes here
        name=names.TORCH,
        suffixes=(),
        recognises=lambda content: False,
        read=_read_torch_export,
        takes=frozenset(("dims",)),
    ),
    GraphFormat(name=names.ONNX, suffixes=(".onnx",), recognises=_is_onnx, read=_read_onnx, takes=frozenset(("dims",))),
)
"""In the order in which they are tried."""
