"""A model, or a piece of one, measured: its own nodes if those run, else the ones that ONNX Runtime makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.inference.system import System, load_system
from mtpp.runtime.profiling.attribution import Owners, owners_by_name, owners_by_position
from mtpp.runtime.profiling.executable import NODE, Executable
from mtpp.runtime.profiling.executed_graph import EXECUTED, executed_graph
from mtpp.runtime.profiling.profiled_graph import MeasuredOps, covers, measured_ops
from mtpp.runtime.profiling.timing import Measurement, ProfileChoices, measure

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.onnx import Reading
    from mtpp.formats.onnx.tensor_type import TensorType

Read = Callable[[bytes, System], "Reading"]
"""Reads a serialized model, with the costs of a system."""


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
    system: System,
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
    endless = replace(load_system(), peak_flops_per_s=10**12, memory_bandwidth_bytes_per_s=2**62)
    arithmetic = read(bytes(reading.model.SerializeToString()), endless)
    return [int(work) for work in arithmetic.graph.work]
