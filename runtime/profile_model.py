"""From a model's file to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtpp.runtime.attribution import owners_by_name, owners_by_position
from mtpp.runtime.executable import NODE, Executable, fill, machine, prepare
from mtpp.runtime.profile_memory import memory_need, refuse_what_does_not_fit
from mtpp.runtime.profiled_graph import MeasuredOps, check_covered, measured_ops, profiled_graph, refuse_uncovered
from mtpp.runtime.profiling import Measurement, ProfileChoices, measure
from mtpp.runtime.random_values import Array
from mtpp.runtime.session import onnxruntime

if TYPE_CHECKING:
    from mtpp.formats.onnx import Reading
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
        reading = _read(source, source.data, executable, request)
    need = memory_need(executable, reading.graph if reading else None)
    refuse_what_does_not_fit(need, request.memory_bytes, source.display)
    fill(executable, request.seed)
    spare = None if request.memory_bytes is None else request.memory_bytes - need.total
    measurement = measure(
        executable, request.choices, room_for_two=spare is None or need.session <= spare, progress=progress
    )
    if reading is None:
        reading = _read(source, _with_executed_sizes(source, measurement), executable, request)
    return _assembled(source, reading, executable, measurement, request)


def _read(source: Source, data: bytes, executable: Executable, request: ProfileRequest) -> Reading:
    from mtpp.formats.onnx import read_with_nodes

    return read_with_nodes(
        source.path,
        data,
        source=source.display,
        dims=executable.dims,
        system=request.system,
        name=source.stem,
    )


def _with_executed_sizes(source: Source, measurement: Measurement) -> bytes:
    """Return the model without large weights, with the shapes that a run has shown declared in it."""
    from mtpp.formats.onnx.executed_shapes import declare_executed
    from mtpp.formats.onnx.inline import inline_functions
    from mtpp.formats.onnx.loading import parse_model

    model = inline_functions(parse_model(source.data, source.display), source.display)
    shown = {**measurement.trace.inner, **{node.name: node.outputs for node in measurement.trace.nodes}}
    declare_executed(model.graph, lambda name: shown.get(name, ()), NODE)
    return bytes(model.SerializeToString())


def _assembled(
    source: Source, reading: Reading, executable: Executable, measurement: Measurement, request: ProfileRequest
) -> Profile:
    owners = owners_by_name(owners_by_position(executable.model.graph, reading.positions))
    names = reading.graph.op_names
    unknown, idle = check_covered(measurement, owners, names, source.display)
    if unknown or idle:
        refuse_uncovered(unknown, [names[op] for op in idle], source.display)
    ops = measured_ops(measurement, owners, [int(work) for work in reading.graph.work])
    random_weight_bytes = sum(int(array.nbytes) for array in executable.weights.values())
    metadata = {
        "model_sha256": source.sha256,
        "machine": machine(),
        "onnxruntime": str(onnxruntime().__version__),
        "threads": request.choices.threads,
        "warm_up": request.choices.warm_up,
        "repeats": request.choices.repeats,
        "optimise": request.choices.optimise,
        "seed": request.seed,
        "random_weight_bytes": random_weight_bytes,
        "random_inputs": list(executable.made_up),
    }
    graph = profiled_graph(reading, ops, measurement, metadata)
    modelled = replace(reading.graph, tensor_bytes=graph.tensor_bytes)
    return Profile(graph, modelled, ops, random_weight_bytes, tuple(executable.made_up))
