"""Measured times put onto a graph: those of a profile of ``mtpp profile``, or of one that ONNX Runtime wrote.

A profile of an exported program may have times of backward passes too.

Every op that takes time has to have a time of its own, or the file is refused: costs of which some are measured and
some are modelled compare with nothing. An op that the cost model lets take no time (a view, say) may be missing, and
then takes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mtpp.errors import InputError
from mtpp.formats.graphs.native import FORMAT, graph_from_document
from mtpp.formats.io.json_text import parse_json
from mtpp.formats.io.source import Source
from mtpp.formats.measured.onnxruntime_profile import Trace, TracedNode, looks_like_trace, read_trace
from mtpp.formats.modelled.node_names import named_as
from mtpp.host.statistics import in_thousandths, middle_mean
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.units import PICOSECONDS, Exact

FLAG = "‹costs›"
_LISTED = 3
_SAID = ("machine", "onnxruntime", "pytorch", "device", "threads", "optimise")
_NO_UNIT = "1"


@dataclass(frozen=True)
class MeasuredCosts:
    """A file with measured times.

    Attributes
    ----------
    display, sha256
        Of the file.
    profile
        What it holds: a graph with costs, or the events of a run.
    """

    display: str
    sha256: str
    profile: CostGraph | Trace


def read_costs(source: Source) -> MeasuredCosts:
    """Read a file with measured times.

    Raises
    ------
    InputError
        If it is neither a graph with costs in a unit of time, nor a profile of ONNX Runtime, or is broken.
    """
    if looks_like_trace(source.data):
        return MeasuredCosts(source.display, source.sha256, read_trace(source.data, source.display))
    remedy = "give what `mtpp profile -o FILE` or ONNX Runtime's profiler wrote"
    if source.data.lstrip()[:1] != b"{":
        raise InputError("holds no measured times", source=source.display, remedy=remedy)
    document = parse_json(source.data, source.display)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError("holds no measured times", source=source.display, where="/format", remedy=remedy)
    graph = graph_from_document(document, source.display)
    if graph.time_unit == _NO_UNIT:
        raise InputError("its costs are no times", source=source.display, where="/time_unit", remedy=remedy)
    return MeasuredCosts(source.display, source.sha256, graph)


def with_costs(graph: CostGraph, costs: MeasuredCosts) -> CostGraph:
    """Return a graph with measured times in place of its costs; sizes and wiring stay.

    Its backward passes are those of the file, if that has any.

    Raises
    ------
    InputError
        If the times are of another model, of other sizes of tensors, or leave an op out that takes time.

    Notes
    -----
    O(n + m) time and memory.
    """
    if graph.time_unit == _NO_UNIT:
        raise InputError(f"{graph.name} has abstract costs: times do not go with them", source=FLAG)
    backward = graph.backward
    try:
        if isinstance(costs.profile, CostGraph):
            work, measured_backward, said = _of_graph(graph, costs.profile)
            backward = measured_backward or backward
        else:
            work, said = _of_trace(graph, costs.profile)
    except InputError as error:
        raise InputError(
            error.problem, source=costs.display, where=error.where, remedy=error.remedy or _REMEDY
        ) from None
    said = {"source": costs.display, "sha256": costs.sha256, **said}
    return replace(graph, work=work, backward=backward, metadata={**graph.metadata, "costs": said})


def caveats(said: Mapping[str, Any]) -> list[str]:
    """Return what a user should know of measured times, from the ``costs`` in the metadata of a graph with them."""
    texts = []
    elsewhere = [name for name in said.get("providers", ()) if name != _ON_CPU]
    if elsewhere:
        texts.append(f"kernels of {', '.join(elsewhere)}: their times may be those of launching them")
    if said.get("other_nodes_us", 0) * 20 > said.get("kernels_us", 0):
        share = float(Fraction(said["other_nodes_us"]) / Fraction(said["kernels_us"]))
        texts.append(f"{said['other_nodes']} nodes are no ops of the model: {share:.1%} of the time is left out")
    return texts


_ON_CPU = "CPUExecutionProvider"
_REMEDY = "profile this very model: `mtpp profile MODEL -o FILE`"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_LISTED])) + (", …" if len(names) > _LISTED else "")


def _of_graph(
    graph: CostGraph, profile: CostGraph
) -> tuple[tuple[Exact, ...], tuple[Exact | None, ...], dict[str, Any]]:
    """Return what each op takes forward and backward, in the graph's unit, and what is said of the measurement."""
    place = {name: i for i, name in enumerate(profile.op_names)}
    graph = named_as(graph, place)
    ours = set(graph.op_names)
    missing = [name for name in graph.op_names if name not in place]
    spare = [name for name in profile.op_names if name not in ours]
    if missing:
        raise InputError(
            f"{len(missing)} of {graph.op_count} ops of {graph.name} have no time in it: {_listed(missing)}"
            + (f", and {len(spare)} of its ops are not in the model" if spare else "")
        )
    if spare:
        raise InputError(f"{len(spare)} of its ops are not in {graph.name}: {_listed(spare)}")
    kinds = zip(graph.op_names, graph.op_kinds, strict=True)
    for name, kind in kinds:
        measured = profile.op_kinds[place[name]]
        if kind and measured and kind != measured:
            raise InputError(f"op {name!r} is a {measured} there, and a {kind} in {graph.name}")
    _check_sizes(graph, dict(zip(profile.tensor_names, profile.tensor_bytes.tolist(), strict=True)))
    factor = Fraction(PICOSECONDS[profile.time_unit], PICOSECONDS[graph.time_unit])
    said = {"kind": FORMAT}
    if isinstance(profile.metadata.get("profile"), Mapping):
        measured_as = profile.metadata["profile"]
        said |= {key: measured_as[key] for key in _SAID if key in measured_as}
    places = [place[name] for name in graph.op_names]
    work = tuple(_plain(profile.work[op] * factor) for op in places)
    given = [profile.backward[op] for op in places] if profile.backward else []
    return work, tuple(None if cost is None else _plain(cost * factor) for cost in given), said


def _check_sizes(graph: CostGraph, measured: Mapping[str, int]) -> None:
    readers = np.diff(graph.consumer_offsets).tolist()
    for name, size, read in zip(graph.tensor_names, graph.tensor_bytes.tolist(), readers, strict=True):
        seen = measured.get(name, UNKNOWN_BYTES)
        if read and UNKNOWN_BYTES not in (size, seen) and size != seen:
            raise InputError(
                f"tensor {name!r} has {seen} bytes there, and {size} in {graph.name}",
                remedy="give the sizes it was measured with (‹dims›), or measure it with these",
            )


def _of_trace(graph: CostGraph, trace: Trace) -> tuple[tuple[Exact, ...], dict[str, Any]]:
    found = nodes_of_ops(graph, trace.nodes)
    missing = [
        name for name, node, work in zip(graph.op_names, found, graph.work, strict=True) if node is None and work
    ]
    spare = set(range(len(trace.nodes))) - {node for node in found if node is not None}
    if missing:
        others = [trace.nodes[node].name for node in sorted(spare)]
        raise InputError(
            f"{len(missing)} of {graph.op_count} ops of {graph.name} have no time in it: {_listed(missing)}"
            + (f"; nodes that are no ops of it: {_listed(others)}" if others else ""),
            remedy="switch graph optimisation off and name the nodes, or use `mtpp profile`",
        )
    sizes: dict[str, int] = {}
    own: list[list[str]] = [[] for _ in graph.op_names]
    for name, producer in zip(graph.tensor_names, graph.tensor_producer.tolist(), strict=True):
        own[producer].append(name)
    for op, node in enumerate(found):
        outputs = () if node is None else trace.nodes[node].outputs
        if len(outputs) == len(own[op]) == 1:  # with several, those that nobody reads may be missing
            sizes[own[op][0]] = _bytes_of(*outputs[0])
    _check_sizes(graph, sizes)
    factor = Fraction(PICOSECONDS["us"], PICOSECONDS[graph.time_unit])
    times = [middle_mean(node.durations_us) for node in trace.nodes]
    all_kernels = sum(times)
    said = {
        "kind": "onnxruntime",
        "runs": max(len(node.durations_us) for node in trace.nodes),
        "providers": sorted({node.provider for node in trace.nodes}),
        "kernels_us": in_thousandths(Fraction(all_kernels)),
        "other_nodes": len(spare),
        "other_nodes_us": in_thousandths(Fraction(sum(times[node] for node in spare))),
    }
    work = [Fraction(0) if node is None else Fraction(in_thousandths(times[node])) for node in found]
    return tuple(_plain(time * factor) for time in work), said


def _bytes_of(dtype: str, shape: tuple[int, ...]) -> int:
    from mtpp.formats.onnx.executed_shapes import tensor_type

    kind = tensor_type(dtype, shape)
    return UNKNOWN_BYTES if kind is None else kind.bytes


def _plain(value: Exact) -> Exact:
    return value.numerator if value.denominator == 1 else value


def nodes_of_ops(graph: CostGraph, nodes: Sequence[TracedNode]) -> list[int | None]:
    """Return the node behind each op, by its place in *nodes*; None for an op that did not run under its name.

    A node keeps the name that the model gives it. Ops have unique names: of several nodes with one name the second is
    called ``name_2`` (:mod:`mtpp.formats.modelled.naming`), and ONNX Runtime tells them apart by their index, which
    grows in the order of the file. A node without a name is called ``Kind_position`` here and ``Kind_index`` there, and
    the index leaves out constants: such nodes go together by their order, if there are as many, of the same kinds, on
    either side.

    Notes
    -----
    O((n + nodes)·log nodes).
    """
    place = {name: op for op, name in enumerate(graph.op_names)}
    found: list[int | None] = [None] * graph.op_count
    named: dict[str, list[int]] = {}
    nameless: list[int] = []
    for i, node in enumerate(nodes):
        if node.name == f"{node.kind}_{node.index}":
            nameless.append(i)
        else:
            named.setdefault(node.name, []).append(i)
    for name, group in named.items():
        group.sort(key=lambda i: -1 if nodes[i].index is None else int(nodes[i].index or 0))
        ops = [place.get(name if number == 0 else f"{name}_{number + 1}") for number in range(len(group))]
        if None in ops and ops.count(None) < len(ops):
            raise InputError(
                f"{len(group)} nodes are called {name!r}, and not all of them are ops of {graph.name}",
                remedy="give the nodes names of their own, or use `mtpp profile`",
            )
        for op, i in zip(ops, group, strict=True):
            if op is not None:
                found[op] = i
    _place_nameless(graph, nodes, nameless, place, found)
    for op, at in enumerate(found):
        if at is not None and _bare(graph.op_kinds[op]) not in ("", nodes[at].kind):
            kind = graph.op_kinds[op]
            raise InputError(f"node {nodes[at].name!r} is a {nodes[at].kind} there, and a {kind} in {graph.name}")
    return found


def _place_nameless(
    graph: CostGraph,
    nodes: Sequence[TracedNode],
    nameless: list[int],
    place: dict[str, int],
    found: list[int | None],
) -> None:
    own = [
        op
        for op, name in enumerate(graph.op_names)
        if found[op] is None and _position(name, _bare(graph.op_kinds[op])) is not None
    ]
    by_name = {nodes[i].name: i for i in nameless}
    if all(graph.op_names[op] in by_name for op in own):  # named so in the file, or no constant came between
        for op in own:
            found[op] = by_name[graph.op_names[op]]
        return
    own.sort(key=lambda op: _position(graph.op_names[op], _bare(graph.op_kinds[op])) or 0)
    nameless.sort(key=lambda i: nodes[i].index or 0)
    if [_bare(graph.op_kinds[op]) for op in own] != [nodes[i].kind for i in nameless]:
        raise InputError(
            f"{len(nameless)} nodes without names cannot be told apart",
            remedy="name the nodes of the model before it is run, or use `mtpp profile`",
        )
    for op, i in zip(own, nameless, strict=True):
        found[op] = i


def _bare(kind: str) -> str:
    """Return the kind of an op without its domain."""
    return kind.rpartition(":")[2]


def _position(name: str, kind: str) -> int | None:
    """Return the number in a name of the form ``Kind_number``."""
    head, _, number = name.rpartition("_")
    return int(number) if head == kind and number.isascii() and number.isdigit() and len(number) < _DIGITS else None


_DIGITS = 10
