"""From a model's file to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.runtime.attribution import Owners, owners_by_name, owners_by_position
from mtpp.runtime.executable import NODE, Executable, fill, machine, prepare
from mtpp.runtime.executed_graph import EXECUTED, executed_graph
from mtpp.runtime.profile_memory import memory_need, refuse_what_does_not_fit
from mtpp.runtime.profiled_graph import MeasuredOps, covers, measured_ops, profiled_graph
from mtpp.runtime.profiling import Measurement, ProfileChoices, measure
from mtpp.runtime.random_values import Array
from mtpp.runtime.session import onnxruntime
from mtpp.system import load_system

if TYPE_CHECKING:
    import onnx

    from mtpp.formats.onnx import Reading
    from mtpp.formats.onnx.tensor_type import TensorType
    from mtpp.formats.source import Source
    from mtpp.graph import CostGraph
    from mtpp.system import System


@dataclass(frozen=True)
class Profile:
    """A model measured.

    Attributes
    ----------
    graph
        With measured costs and sizes as executed.
    modelled
        The same graph with costs of the roofline.
    ops
        The figures behind the costs.
    random_weight_bytes, random_inputs
        What was made up to run it.
    """

    graph: CostGraph
    modelled: CostGraph
    ops: MeasuredOps
    random_weight_bytes: int
    random_inputs: tuple[str, ...]


@dataclass(frozen=True)
class ProfileRequest:
    """What is asked for.

    Attributes
    ----------
    dims
        Sizes of symbolic dimensions.
    arrays
        Contents of inputs.
    system
        Models the costs that measured ones are compared with.
    memory_bytes
        That may be taken; None for no limit.
    """

    choices: ProfileChoices
    system: System
    dims: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    seed: int = 0
    memory_bytes: int | None = None


def profile_model(
    source: Source, request: ProfileRequest, progress: Callable[[int, int], None] = lambda done, total: None
) -> Profile:
    """Measure an ONNX model on this machine.

    Raises
    ------
    InputError
        If it is broken, takes more memory than there is, or cannot be run.

    Notes
    -----
    Memory: :class:`mtpp.runtime.profile_memory.MemoryNeed`. Time: two sessions, ``warm_up + repeats`` runs of each.
    """
    from mtpp.formats.onnx.dimensions import UnknownSize

    onnxruntime()  # whether it is there is said before anything else
    folder = Path() if source.path is None else source.path.parent
    executable = prepare(source.data, folder, source.display, dims=request.dims, arrays=request.arrays)
    reading: Reading | None = None
    with suppress(UnknownSize):  # a run tells it
        reading = _read(source, source.data, executable, request.system)
    need = memory_need(executable, reading.graph if reading else None, 1 + request.choices.beside)
    refuse_what_does_not_fit(need, request.memory_bytes, source.display)
    fill(executable, request.seed)
    spare = None if request.memory_bytes is None else request.memory_bytes - need.total
    room_for_two = spare is None or need.session <= spare
    if not request.choices.optimise:
        measurement = measure(executable, request.choices, room_for_two=room_for_two, progress=progress)
        run = _Run(measurement, executable.model.graph, NODE, lambda owners: owners_by_name(owners))
        profile = _assembled(source, reading, executable, run, request)
        if profile is not None:
            return profile
    with executed_graph(executable, threads=request.choices.threads, optimise=request.choices.optimise) as executed:
        measurement = measure(executed.executable, request.choices, room_for_two=room_for_two, progress=progress)
        run = _Run(measurement, executed.executable.model.graph, EXECUTED, executed.owners)
        profile = _assembled(source, reading, executable, run, request)
    assert profile is not None
    return profile


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


def _read(source: Source, data: bytes, executable: Executable, system: System) -> Reading:
    from mtpp.formats.onnx import read_with_nodes

    return read_with_nodes(
        source.path,
        data,
        source=source.display,
        dims=executable.dims,
        system=system,
        name=source.stem,
    )


def _with_executed_sizes(source: Source, run: _Run) -> bytes:
    """Return the model without large weights, with the shapes that a run has shown declared in it."""
    from mtpp.formats.onnx.executed_shapes import declare_bodies, declare_types
    from mtpp.formats.onnx.inline import inline_functions
    from mtpp.formats.onnx.loading import parse_model

    model = inline_functions(parse_model(source.data, source.display), source.display)
    declare_bodies(model.graph, lambda name: run.measurement.trace.inner.get(name, ()), NODE)
    declare_types(model.graph, run.types())
    return bytes(model.SerializeToString())


def _assembled(
    source: Source, reading: Reading | None, executable: Executable, run: _Run, request: ProfileRequest
) -> Profile | None:
    """Return the profile; None if nodes ran that are not the model's own, and nobody knows whose they are."""
    if reading is None:
        reading = _read(source, _with_executed_sizes(source, run), executable, request.system)
    owners = run.owners(owners_by_position(executable.model.graph, reading.positions))
    if not covers(run.measurement, owners, reading.graph.op_count):
        if run.prefix == NODE:
            return None
        raise InputError(
            "what ONNX Runtime runs cannot be laid to the ops of the model",
            source=source.display,
            remedy="profile it without --optimise" if request.choices.optimise else None,
        )
    ops = measured_ops(run.measurement, owners, _shares(source, executable, reading, run))
    random_weight_bytes = sum(int(array.nbytes) for array in executable.weights.values())
    metadata = {
        "model_sha256": source.sha256,
        "machine": machine(),
        "onnxruntime": str(onnxruntime().__version__),
        "threads": request.choices.threads,
        "warm_up": request.choices.warm_up,
        "repeats": request.choices.repeats,
        "optimise": request.choices.optimise,
        "beside": request.choices.beside,
        "seed": request.seed,
        "random_weight_bytes": random_weight_bytes,
        "random_inputs": list(executable.made_up),
    }
    sizes = {name: kind.bytes for name, kind in run.types().items()}
    graph = profiled_graph(reading.graph, ops, sizes, {**metadata, "interleaved": run.measurement.interleaved})
    modelled = replace(reading.graph, tensor_bytes=graph.tensor_bytes)
    return Profile(graph, modelled, ops, random_weight_bytes, tuple(executable.made_up))


def _shares(source: Source, executable: Executable, reading: Reading, run: _Run) -> list[int]:
    """Return the share of each op in a kernel that computes several: its arithmetic."""
    if run.prefix == NODE:  # a kernel for each op
        return [1] * reading.graph.op_count
    endless = replace(load_system(), peak_flops_per_s=10**12, memory_bandwidth_bytes_per_s=2**62)
    arithmetic = _read(source, bytes(reading.model.SerializeToString()), executable, endless)
    return [int(work) for work in arithmetic.graph.work]
