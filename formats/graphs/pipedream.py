"""Profiles of the PipeDream profiler (Narayanan et al. 2019): ``graph.txt``.

Format (github.com/msr-fiddle/pipedream, profiler and graph modules), one line per node and one per edge, the latter
indented by a tab::

    node4 -- ReLU() -- forward_compute_time=4.4, backward_compute_time=7.2, activation_size=44.0, parameter_size=0.0
        node4 -- node5

A node line may end in `` -- stage_id=2``, which the optimizer appends. Times are in milliseconds and sizes in bytes, of
a whole batch. The ``activation_size`` of a node with several outputs is a list, ``[6291456.0; 131072.0]``.

What becomes of it
------------------
* Work is the forward time; with *backward*, forward and backward time.
* Each node has one tensor, of its ``activation_size`` (the sum of a list), that goes along all its out-edges. With
  *backward*, as large a one goes the other way, which is one more tensor between the same ops.
* ``parameter_size`` are the parameters. The kind of an op is the text of its node up to a parenthesis.
* Nodes called ``Input`` (``Input0``, …) load data. Their time is set to zero unless *loading_time* says otherwise: it
  is no part of the model, and can be most of a profile (636 of 681 ms of AlexNet's).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, shown
from mtpp.formats.io.text_lines import cost_of, decoded, size_of
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.units import PICOSECONDS, Exact, format_picoseconds

TIME_UNIT = "ms"

_SEPARATOR = " -- "
_FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_NODE_LINE = re.compile(rb"^[^\s-]\S* -- .* -- forward_compute_time=", re.MULTILINE)
_INPUT = re.compile(r"Input\d*")


@dataclass(frozen=True)
class _Node:
    id: str
    description: str
    forward: Exact
    backward: Exact
    activation_bytes: int
    parameter_bytes: int
    line: str

    @property
    def loads_data(self) -> bool:
        return bool(_INPUT.fullmatch(self.description))


def looks_like_pipedream(data: bytes) -> bool:
    """Return whether one of the first lines is that of a node."""
    return bool(_NODE_LINE.search(data[:65536].removeprefix(b"\xef\xbb\xbf")))


def read_pipedream(
    data: bytes,
    source: str,
    *,
    name: str = "graph",
    time_unit: str | None = None,
    backward: bool = False,
    loading_time: bool = False,
) -> CostGraph:
    """Read a profile, as the module says.

    Parameters
    ----------
    time_unit
        Unit of the file's times; by default :data:`TIME_UNIT`.
    backward
        Whether the backward pass counts.
    loading_time
        Whether the time of ``Input`` nodes counts.

    Raises
    ------
    InputError
        With the number of a line.
    """
    with attributed(source):
        nodes, readers = _parsed(decoded(data, source))
        unit = time_unit or TIME_UNIT
        loaders = [node for node in nodes.values() if node.loads_data and node.forward + node.backward * backward]
        assumptions = []
        if loaders and not loading_time:
            spent = sum(node.forward + node.backward * backward for node in loaders)
            which = ", ".join(node.id for node in loaders[:3]) + (", …" if len(loaders) > 3 else "")
            shown_time = format_picoseconds(min(int(spent * PICOSECONDS[unit]), 2**62))
            assumptions.append(f"loading data takes no time: {shown_time} of {which} left out")
        ignored = set() if loading_time else {node.id for node in loaders}
        try:
            return CostGraph.build(
                name=name,
                time_unit=unit,
                ops=[
                    Op(
                        node.id,
                        0 if node.id in ignored else node.forward + (node.backward if backward else 0),
                        node.description.partition("(")[0].strip(),
                        node.parameter_bytes,
                    )
                    for node in nodes.values()
                ],
                tensors=_tensors(nodes.values(), readers, backward=backward),
                metadata={"source_format": "pipedream", "assumptions": assumptions},
            )
        except InputError as error:
            raise InputError(error.problem, where=None, remedy=error.remedy) from None


def _parsed(text: str) -> tuple[dict[str, _Node], dict[str, dict[str, str]]]:
    """Return the nodes by id, and the readers of each with the line that says so."""
    nodes: dict[str, _Node] = {}
    readers: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        where = f"line {number}"
        if not line.strip():
            continue
        if line[0] in "\t ":
            _add_edge(line, where, readers)
            continue
        node = _node(line.rstrip(), where)
        if node.id in nodes:
            raise InputError(f"duplicate node {shown(node.id)}, first in {nodes[node.id].line}", where=where)
        nodes[node.id] = node
    if not nodes:
        raise InputError("the profile has no nodes", remedy="is the file complete?")
    for producer, lines in readers.items():
        for consumer, where in lines.items():
            for end in (producer, consumer):
                if end not in nodes:
                    raise InputError(f"no node is called {shown(end)}", where=where)
    return nodes, readers


def _add_edge(line: str, where: str, readers: dict[str, dict[str, str]]) -> None:
    ends = line.strip().split(_SEPARATOR)
    if len(ends) != 2 or not all(end.strip() for end in ends):
        raise InputError("an indented line must be an edge", where=where, remedy="write it like node1 -- node2")
    producer, consumer = (end.strip() for end in ends)
    if producer == consumer:
        raise InputError(f"the edge leads from {shown(producer)} to itself (self-loop)", where=where)
    if consumer in readers.setdefault(producer, {}):
        first = readers[producer][consumer]
        raise InputError(f"duplicate edge {shown(producer)} -- {shown(consumer)}, first in {first}", where=where)
    readers[producer][consumer] = where


def _node(line: str, where: str) -> _Node:
    parts = line.split(_SEPARATOR)
    if len(parts) > 3 and parts[-1].startswith("stage_id="):
        parts.pop()
    if len(parts) < 3 or not parts[0].strip():
        remedy = f"write it like node1 -- Conv2d(…) -- {_FIELDS[0]}=…, …; is the file complete?"
        raise InputError("not the line of a node", where=where, remedy=remedy)
    fields = _fields(parts[-1], where)
    sizes = fields["activation_size"].strip()
    if sizes.startswith("[") != sizes.endswith("]"):
        raise InputError(f"activation_size is {shown(sizes)}, not a number or a list of them", where=where)
    return _Node(
        id=parts[0].strip(),
        description=_SEPARATOR.join(parts[1:-1]).strip(),
        forward=cost_of(fields["forward_compute_time"], "forward_compute_time", where),
        backward=cost_of(fields["backward_compute_time"], "backward_compute_time", where),
        activation_bytes=sum(
            size_of(size, "activation_size", where) for size in sizes.removeprefix("[").removesuffix("]").split(";")
        ),
        parameter_bytes=size_of(fields["parameter_size"], "parameter_size", where),
        line=where,
    )


def _fields(text: str, where: str) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in _FIELDS:
            raise InputError(f"{shown(part.strip())} is none of {', '.join(_FIELDS)}", where=where)
        if key in fields:
            raise InputError(f"{key} is given twice", where=where)
        fields[key] = value
    for key in _FIELDS:
        if key not in fields:
            raise InputError(f"{key} is missing", where=where, remedy="is the file complete?")
    return fields


def _tensors(nodes: Iterable[_Node], readers: Mapping[str, Mapping[str, str]], *, backward: bool) -> list[Tensor]:
    tensors = []
    for node in nodes:
        consumers = tuple(readers.get(node.id, ()))
        if consumers or node.activation_bytes:
            tensors.append(Tensor(node.id, node.id, consumers, node.activation_bytes))
        if consumers and backward:
            tensors.append(Tensor(f"gradient of {node.id}", node.id, consumers, node.activation_bytes))
    return tensors
