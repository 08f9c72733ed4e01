"""A model, or a piece of one, measured: its own nodes if those run, else the ones that ONNX Runtime makes of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.host.interrupts import unwinding
from mtpp.machine.device import Device
from mtpp.machine.presets import load_device
from mtpp.runtime.profiling.executable import NODE, Executable
from mtpp.runtime.profiling.profiled_graph import (
    MeasuredOps,
    Owners,
    covers,
    measured_ops,
    neighbours,
    owners_by_name,
    owners_by_position,
)
from mtpp.runtime.profiling.timing import Measurement, ProfileChoices, measure
from mtpp.runtime.session import SessionChoices, open_session

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.onnx import Reading
    from mtpp.formats.onnx.tensor_type import TensorType

Read = Callable[[bytes, Device], "Reading"]
"""Reads a serialized model, with the costs of a system."""

EXECUTED = "run"
"""What names of nodes of such a graph begin with; their position follows."""

_BLOCKED = re.compile(r"(.+)_nchwc(?:_token_\d+)?")
_CAST = "InsertedPrecisionFreeCast_"
_ACTIVATIONS = frozenset({"Add", "Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Sum", "Tanh"})


@dataclass(frozen=True)
class MeasuredModel:
    """What came out.

    Attributes
    ----------
    reading
        The model, with sizes as executed where it leaves them open.
    ops
        In the order of ``reading.graph``.
    sizes
        Bytes of tensors as executed, by name.
    results
        What the model gave, by name.
    """

    reading: Reading
    ops: MeasuredOps
    sizes: Mapping[str, int]
    interleaved: bool
    results: Mapping[str, Array]


def measure_model(
    executable: Executable,
    data: bytes,
    read: Read,
    reading: Reading | None,
    choices: ProfileChoices,
    system: Device,
    *,
    room_for_two: bool,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> MeasuredModel:
    """Measure a model that is ready to be run.

    Parameters
    ----------
    data, read, reading
        Its bytes, how they are read, and as what; None where only a run tells the sizes of tensors.
    """
    if not choices.optimise:
        measurement = measure(executable, choices, room_for_two=room_for_two, progress=progress)
        run = _Run(measurement, executable.model.graph, NODE, lambda owners: owners_by_name(owners))
        reading = reading or read(_with_executed_sizes(data, executable.source, run), system)
        measured = _measured(executable, read, reading, run)
        if measured is not None:
            return measured
    with executed_graph(executable, threads=choices.threads, optimise=choices.optimise) as executed:
        measurement = measure(executed.executable, choices, room_for_two=room_for_two, progress=progress)
        run = _Run(measurement, executed.executable.model.graph, EXECUTED, executed.owners)
        reading = reading or read(_with_executed_sizes(data, executable.source, run), system)
        measured = _measured(executable, read, reading, run)
    if measured is None:
        raise InputError(
            "what ONNX Runtime runs cannot be laid to the ops of the model",
            source=executable.source,
            remedy="profile it without ‹optimise›" if choices.optimise else None,
        )
    return measured


@dataclass(frozen=True)
class _Run:
    """What was measured of which graph.

    Attributes
    ----------
    graph, prefix
        That ran, and what the names of its nodes begin with before their position.
    owners
        Ops behind its nodes by name, from those behind the nodes of the model.
    """

    measurement: Measurement
    graph: onnx.GraphProto
    prefix: str
    owners: Callable[[Sequence[Owners]], Mapping[str, Owners]]

    def types(self) -> dict[str, TensorType]:
        """Return the types of tensors as executed, by name."""
        from mtpp.formats.onnx.executed_shapes import executed_types

        shown = {node.name: node.outputs for node in self.measurement.trace.nodes}
        found: dict[str, TensorType] = {}
        for i, node in enumerate(self.graph.node):
            found |= executed_types(node, shown.get(f"{self.prefix}{i}", ()))
        return found


def _with_executed_sizes(data: bytes, source: str, run: _Run) -> bytes:
    """Return the model without large weights, with the shapes that a run has shown declared in it."""
    from mtpp.formats.onnx.executed_shapes import declare_bodies, declare_types
    from mtpp.formats.onnx.loading import parse_model
    from mtpp.formats.onnx.local_functions.inline import inline_functions

    model = inline_functions(parse_model(data, source), source)
    declare_bodies(model.graph, lambda name: run.measurement.trace.inner.get(name, ()), NODE)
    declare_types(model.graph, run.types())
    return bytes(model.SerializeToString())


def _measured(executable: Executable, read: Read, reading: Reading, run: _Run) -> MeasuredModel | None:
    """Return what was measured; None if nodes ran that nobody knows, or an op did not."""
    owners = run.owners(owners_by_position(executable.model.graph, reading.positions))
    if not covers(run.measurement, owners, reading.graph.op_count):
        return None
    ops = measured_ops(run.measurement, owners, _shares(read, reading, run))
    sizes = {name: kind.bytes for name, kind in run.types().items()}
    return MeasuredModel(reading, ops, sizes, run.measurement.interleaved, run.measurement.results)


def _shares(read: Read, reading: Reading, run: _Run) -> list[int]:
    """Return the share of each op in a kernel that computes several: its arithmetic."""
    if run.prefix == NODE:  # a kernel for each op
        return [1] * reading.graph.op_count
    endless = replace(load_device(), peak_flops_per_s=10**12, memory_bandwidth_bytes_per_s=2**62)
    arithmetic = read(bytes(reading.model.SerializeToString()), endless)
    return [int(work) for work in arithmetic.graph.work]


@dataclass(frozen=True)
class ExecutedGraph:
    """A model as it is run.

    Told to optimise, it fuses ops and lays tensors out anew; told not to, it still puts the bodies of ops without
    kernels of their own in their place, and casts around ops without kernels for half precision. The session saves the
    graph that it runs, and that is what is measured then, each node by a name of its own. Its nodes are laid to ops by
    the names of tensors:

    * a node that makes a tensor of the model computes the op that makes it there;
    * an op whose tensors are all gone was fused into the ops that read them, or, being an activation after a
      convolution in the blocked layout (``NAME_nchwc``), into that;
    * a node that makes nothing that the model knows (a cast, a reordering, part of a body) works for who reads its
      result.

    What several ops own is shared in proportion to their arithmetic: tensors between fused ops are never moved.

    Attributes
    ----------
    executable
        That runs it and changes nothing any more.
    original
        The graph that it was made from.
    """

    executable: Executable
    original: onnx.GraphProto
    labels: Sequence[str]

    def owners(self, owners: Sequence[Owners]) -> Mapping[str, Owners]:
        """Return the ops behind each node that runs, by its name, from those behind each node of the model."""
        nodes = self.executable.model.graph.node
        positions = positions_of(self.original, nodes, self.labels)
        return {
            f"{EXECUTED}{i}": tuple(dict.fromkeys(op for position in own for op in owners[position]))
            for i, own in enumerate(positions)
        }


@contextmanager
def executed_graph(executable: Executable, *, threads: int, optimise: bool) -> Iterator[ExecutedGraph]:
    """Let ONNX Runtime make its graph of a model; its weights are on disk until the context ends."""
    import onnx

    with unwinding(), tempfile.TemporaryDirectory(prefix="mtpp-executed-") as folder:
        path = Path(folder) / "model.onnx"
        open_session(
            executable.serialized(),
            SessionChoices(threads=threads, optimise=optimise, save_as=path),
            display=executable.source,
            weights=executable.weights,
            folder=executable.folder.absolute(),
        )
        model = onnx.load(path, load_external_data=False)
        labels = [node.name for node in model.graph.node]
        for i, node in enumerate(model.graph.node):
            node.name = f"{EXECUTED}{i}"
        run = replace(executable, model=model, folder=Path(folder), weights={}, as_saved=True)
        yield ExecutedGraph(run, executable.model.graph, labels)


def positions_of(original: onnx.GraphProto, nodes: Sequence[onnx.NodeProto], labels: Sequence[str]) -> list[list[int]]:
    """Return the nodes of the model that each node of the executed graph computes, by their positions.

    Parameters
    ----------
    labels
        Names that ONNX Runtime gave the *nodes*.

    Notes
    -----
    O(nodes + edges) of both graphs.
    """
    maker = {name: i for i, node in enumerate(original.node) for name in node.output if name}
    by_label = {node.name: i for i, node in enumerate(original.node)}
    computed = [sorted(_anchors(node, label, maker, by_label)) for node, label in zip(nodes, labels, strict=True)]
    holder: dict[int, int] = {}
    for i, own in enumerate(computed):
        for position in own:
            holder[position] = i
    blocked = {i for i, label in enumerate(labels) if _BLOCKED.fullmatch(label)}
    _place_vanished(original, holder, blocked, computed)
    _place_helpers(nodes, computed)
    return computed


def _anchors(node: onnx.NodeProto, label: str, maker: Mapping[str, int], by_label: Mapping[str, int]) -> set[int]:
    """Return the nodes of the model that a node is known to compute, by tensors and names."""
    found = {maker[name] for name in node.output if name in maker}
    found |= {maker[cut] for name in node.output if (cut := name.removeprefix(_CAST)) != name and cut in maker}
    if label in by_label:
        found.add(by_label[label])
    match = _BLOCKED.fullmatch(label)
    if match and match[1] in maker:
        found.add(maker[match[1]])
    return found


def _place_vanished(
    original: onnx.GraphProto,
    holder: dict[int, int],
    blocked: set[int],
    computed: list[list[int]],
) -> None:
    """Give nodes of the model that nobody is known to compute to those that they were fused into."""
    needs, readers = neighbours(original.node)
    gone = [i for i in range(len(original.node)) if i not in holder]

    def place(position: int, candidates: Sequence[int], allowed: Callable[[int], bool]) -> None:
        found = next((holder[other] for other in candidates if other in holder and allowed(holder[other])), None)
        if found is not None:
            holder[position] = found
            computed[found].append(position)

    for i in gone:  # models are sorted: what an activation follows has its place already
        if original.node[i].op_type in _ACTIVATIONS:
            place(i, sorted(needs[i], reverse=True), blocked.__contains__)
    for i in reversed(gone):
        if i not in holder:
            place(i, readers[i], lambda _: True)
    for i in gone:
        if i not in holder:
            place(i, needs[i], lambda _: True)


def _place_helpers(nodes: Sequence[onnx.NodeProto], computed: list[list[int]]) -> None:
    """Give nodes that compute nothing of the model to those that read their results, or made what they read."""
    sources, readers = neighbours(nodes)
    for i in reversed(range(len(nodes))):
        if not computed[i]:
            computed[i] = list(next((computed[j] for j in readers[i] if computed[j]), ()))
    for i, own in enumerate(sources):
        if not computed[i]:
            computed[i] = list(next((computed[j] for j in own if computed[j]), ()))
