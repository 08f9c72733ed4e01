"""Which format a file is in: decided by its content, then by its suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

from mtpp.errors import InputError, UnrecognisedInput
from mtpp.formats import (
    dot,
    graphml,
    native,
    node_link,
    pipedream,
    piper,
    placement,
    placement_split,
    plan,
    stage_csv,
    tensorflow_cost_graph,
)
from mtpp.formats.json_shape import shown
from mtpp.formats.json_text import parse_json
from mtpp.formats.onnxruntime_profile import looks_like_trace
from mtpp.formats.source import Source
from mtpp.graph import CostGraph
from mtpp.plan import Plan
from mtpp.system import System, load_system
from mtpp.units import PICOSECONDS

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Content:
    """A source, and its JSON document if it is JSON (parsed when first asked for, at most once)."""

    source: Source

    @cached_property
    def is_json(self) -> bool:
        """Whether it starts like a JSON object or array; no other format does."""
        head = self.source.data[:4096].removeprefix(_BOM).lstrip()
        return head[:1] in (b"{", b"[")

    @cached_property
    def document(self) -> Any:
        """The parsed document."""
        return parse_json(self.source.data, self.source.display)

    def has(self, *keys: str) -> bool:
        """Return whether it is a JSON object with all of *keys*."""
        return self.is_json and isinstance(self.document, dict) and all(key in self.document for key in keys)


@dataclass(frozen=True)
class ReadOptions:
    """What a caller says about a file beyond its bytes.

    Attributes
    ----------
    dims
        Values of symbolic dimensions.
    system
        Models the work of ops in formats that bring none.
    spare_dims
        Whether *dims* may name dimensions that this model has not.
    time_unit
        Unit of the times in a file that does not name it.
    backward
        Whether the backward pass counts, where a file tells it from the forward pass.
    loading_time
        Whether loading data counts, where a file has nodes that do so.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    system: System | None = None
    spare_dims: bool = False
    time_unit: str | None = None
    backward: bool = False
    loading_time: bool = False

    def check(self) -> None:
        """Check what a user may have written wrong.

        Raises
        ------
        InputError
            If the unit of time is none.
        """
        if self.time_unit is not None and self.time_unit not in _TIME_UNITS:
            raise InputError(
                f"unknown unit of time {self.time_unit!r}",
                source="--time-unit",
                remedy=f"use one of {', '.join(_TIME_UNITS)}",
            )


_TIME_UNITS = tuple(unit for unit in PICOSECONDS if unit.isascii())


@dataclass(frozen=True)
class GraphFormat:
    """One format of graph files.

    Attributes
    ----------
    name
        As ``--from`` and ``--to`` call it.
    suffixes
        Lower case, without ``.gz``; the first is the usual one.
    shared_suffixes
        Those that its files have and others too: they decide nothing.
    recognises
        Whether some content is in this format, cheap and without complaint.
    read
        Makes a graph or raises InputError; None where there is no reader.
    write
        Returns the text of a file with a graph; None where there is no such writer.
    write_stages
        Returns the text of a file with the stages of a plan; None where the format has no place for stages.
    takes
        What of :class:`ReadOptions` has an effect on it, apart from the system: ``dims``, ``time_unit``, …
    assumes
        Whether its reader makes assumptions, which are then in ``metadata["assumptions"]``.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Content], bool]
    read: Callable[[Content, ReadOptions], CostGraph] | None = None
    write: Callable[[CostGraph], str] | None = None
    write_stages: Callable[[Plan], str] | None = None
    takes: frozenset[str] = frozenset()
    shared_suffixes: tuple[str, ...] = ()
    assumes: bool = False


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
    return piper.graph_from_piper(content.document, source.display, name=source.stem, time_unit=options.time_unit)


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
    from mtpp.formats.graphml_reader import looks_like_graphml

    return looks_like_graphml(content.source.data)


def _read_graphml(content: Content, options: ReadOptions) -> CostGraph:
    from mtpp.formats.graphml_reader import read_graphml

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


FORMATS = (
    GraphFormat(
        name="native",
        suffixes=(".json",),
        recognises=lambda content: content.has("format") and content.document["format"] == native.FORMAT,
        read=_read_native,
        write=native.write_native,
    ),
    GraphFormat(
        name="placement",
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and placement.looks_like_placement(content.document),
        read=_read_placement,
        takes=frozenset(("time_unit", "backward")),
        assumes=True,
    ),
    GraphFormat(
        name="piper",
        suffixes=(),
        shared_suffixes=(".json",),
        recognises=lambda content: content.is_json and piper.looks_like_piper(content.document),
        read=_read_piper,
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(
        name="node-link",
        suffixes=(".nodelink", ".node-link"),
        recognises=lambda content: content.has("nodes") and (content.has("edges") or content.has("links")),
        read=_read_node_link,
        write=node_link.write_node_link,
        write_stages=node_link.write_node_link_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name="graphml",
        suffixes=(".graphml",),
        shared_suffixes=(".xml",),
        recognises=_is_graphml,
        read=_read_graphml,
        write=graphml.write_graphml,
        write_stages=graphml.write_graphml_stages,
        takes=frozenset(("time_unit",)),
    ),
    GraphFormat(
        name="dot",
        suffixes=(".dot", ".gv"),
        recognises=lambda content: not content.is_json and dot.looks_like_dot(content.source.data),
        write=dot.write_dot,
        write_stages=dot.write_dot_stages,
    ),
    GraphFormat(
        name="csv", suffixes=(".csv",), recognises=lambda content: False, write_stages=stage_csv.write_stage_csv
    ),
    GraphFormat(
        name="pipedream",
        suffixes=(),
        shared_suffixes=(".txt",),
        recognises=lambda content: not content.is_json and pipedream.looks_like_pipedream(content.source.data),
        read=_read_pipedream,
        takes=frozenset(("time_unit", "backward", "loading_time")),
        assumes=True,
    ),
    GraphFormat(
        name="tensorflow",
        suffixes=(".pbtxt",),
        shared_suffixes=(".txt",),
        recognises=lambda content: (
            not content.is_json and tensorflow_cost_graph.looks_like_cost_graph(content.source.data)
        ),
        read=_read_cost_graph,
        takes=frozenset(("time_unit",)),
        assumes=True,
    ),
    GraphFormat(name="onnx", suffixes=(".onnx",), recognises=_is_onnx, read=_read_onnx, takes=frozenset(("dims",))),
)
"""Every format, in the order in which they are tried; a new one is one entry here."""

READERS = tuple(format_.name for format_ in FORMATS if format_.read)
WRITERS = tuple(format_.name for format_ in FORMATS if format_.write or format_.write_stages)


def read_graph(
    source: Source,
    *,
    from_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    system: System | None = None,
    spare_dims: bool = False,
    time_unit: str | None = None,
    backward: bool = False,
    loading_time: bool = False,
    warn: Callable[[str], None] = lambda text: None,
) -> CostGraph:
    """Read a graph in any format.

    Parameters
    ----------
    from_format
        One of :data:`READERS`; by default the content decides, then the suffix.
    dims
        Values of symbolic dimensions (ONNX only).
    system
        Models the work of ops that bring none (ONNX only); by default the preset ``reference``.
    spare_dims
        Whether this is one of several models: what the options say of files of other kinds does no harm.
    time_unit, backward, loading_time
        See :class:`ReadOptions`.
    warn
        Is told what the reader assumed, where the file leaves something open.

    Raises
    ------
    UnrecognisedInput
        If the content is in no known format.
    InputError
        If it is broken, or an option would have no effect.
    """
    content = Content(source)
    options = ReadOptions(dims or {}, system, spare_dims, time_unit, backward, loading_time)
    options.check()
    chosen = _by_name(from_format, "--from", READERS) if from_format else recognise(content)
    if not spare_dims:
        _check_effect(chosen, options, source)
    assert chosen.read is not None  # recognise and _by_name see to it
    graph = chosen.read(content, options)
    if chosen.assumes:
        assumptions = graph.metadata["assumptions"]
        if assumptions:
            warn(f"{source.display}: {'; '.join(assumptions)}")
    return graph


_OPTIONS = {
    "dims": ("--dim", "only ONNX models have symbolic dimensions"),
    "time_unit": ("--time-unit", "this format names its unit of time"),
    "backward": ("--backward", "this format does not tell the backward pass from the forward pass"),
    "loading_time": ("--loading-time", "this format has no nodes that load data"),
}


def _check_effect(chosen: GraphFormat, options: ReadOptions, source: Source) -> None:
    for key, (option, why) in _OPTIONS.items():
        if getattr(options, key) and key not in chosen.takes:
            problem = f"has no effect on a {chosen.name} graph: {source.display}"
            raise InputError(problem, source=option, remedy=f"leave it out; {why}")


def recognise(content: Content) -> GraphFormat:
    """Return the format of some content.

    Raises
    ------
    UnrecognisedInput
        If it is in none of them; the message says what it is instead, where that is clear.
    InputError
        If it begins like JSON and is none.
    """
    source = content.source
    for candidate in FORMATS:
        if candidate.recognises(content):
            return _readable(candidate, source)
    if content.is_json:
        raise _unknown_json(content)
    for candidate in FORMATS:
        if source.suffix in candidate.suffixes:
            return _readable(candidate, source)
    raise UnrecognisedInput(
        "in no format of graphs", source=source.display, remedy=f"give a graph in one of: {', '.join(READERS)}"
    )


def _readable(found: GraphFormat, source: Source) -> GraphFormat:
    if found.read is None:
        raise UnrecognisedInput(
            f"{found.name} files are written, not read",
            source=source.display,
            remedy=f"give the graph in one of: {', '.join(READERS)}",
        )
    return found


_NODE_FORMATS = ("placement", "piper", "node-link")


def _unknown_json(content: Content) -> UnrecognisedInput:
    source, document = content.source, content.document
    name = document.get("format") if isinstance(document, dict) else None
    if name == plan.FORMAT:
        return UnrecognisedInput(
            "a plan, not a graph",
            source=source.display,
            where="/format",
            remedy="give the graph it was made from (mtpp verify reads plans)",
        )
    if placement_split.looks_like_split(document):
        return UnrecognisedInput(
            "a split of a placement workload, not a graph",
            source=source.display,
            where="/fpgas",
            remedy="give it to `mtpp evaluate MODEL --assignment`",
        )
    if looks_like_trace(source.data):
        return UnrecognisedInput(
            "a profile of ONNX Runtime: it has times of ops, and does not say which needs which",
            source=source.display,
            remedy="give the model, and this with --costs",
        )
    if name is not None:
        remedy = f'a graph has "format": "{native.FORMAT}"'
        return UnrecognisedInput(f"unknown format {shown(name)}", source=source.display, where="/format", remedy=remedy)
    return UnrecognisedInput(
        "not a graph: neither the key 'format' nor 'nodes' and 'edges'",
        source=source.display,
        where="/",
        remedy=f'give "format": "{native.FORMAT}", or nodes in one of: {", ".join(_NODE_FORMATS)}',
    )


def writer_for(path_or_dash: str, to_format: str | None = None) -> GraphFormat:
    """Return the format to write a graph in: the one named, else the suffix's; native without a suffix.

    Raises
    ------
    InputError
        If no writer has that name, or the suffix belongs to a format without one.
    """
    if to_format:
        return _by_name(to_format, "--to", WRITERS)
    path = PurePath(path_or_dash)
    suffix = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    for candidate in FORMATS:
        if suffix in candidate.suffixes:
            if candidate.name not in WRITERS:
                raise InputError(
                    f"{candidate.name} files can be read, not written",
                    source=path_or_dash,
                    remedy=f"choose --to {' or '.join(WRITERS)}",
                )
            return candidate
    if suffix:
        raise InputError(
            f"no format goes with the suffix {suffix!r}",
            source=path_or_dash,
            remedy=f"choose --to {' or '.join(WRITERS)}",
        )
    return FORMATS[0]


def _by_name(name: str, option: str, choices: tuple[str, ...]) -> GraphFormat:
    for candidate in FORMATS:
        if candidate.name == name and name in choices:
            return candidate
    raise InputError(f"unknown format {name!r}", source=option, remedy=f"use one of {', '.join(choices)}")
