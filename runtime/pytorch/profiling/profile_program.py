"""From the file of an exported program to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mtpp.array_types import Array
from mtpp.errors import InputError
from mtpp.formats.torch_export import read_with_modules
from mtpp.host.capacity import machine
from mtpp.host.statistics import Quartiles, in_thousandths, quartiles
from mtpp.runtime.element_types import as_declared
from mtpp.runtime.profiling.profile_memory import most_alive
from mtpp.runtime.profiling.profiled_graph import BackwardTimes, MeasuredOps, MeasuredProfile, profiled_graph
from mtpp.runtime.profiling.timing import ProfileRequest
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.loading import LoadedProgram, load_program
from mtpp.runtime.pytorch.profiling.clocks import Clock, CudaClock, HostClock
from mtpp.runtime.pytorch.profiling.program_timing import ProgramTimes, time_program
from mtpp.runtime.pytorch.profiling.steps import FlatProgram, flat_program
from mtpp.runtime.pytorch.tensors import as_tensor, drawn_tensor
from mtpp.units import format_bytes

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

    from mtpp.formats.io.source import Source
    from mtpp.formats.torch_export import ProgramReading
    from mtpp.inference.graph import CostGraph

_COPIES_OF_FILE = 2
"""The file, and the copy of it that PyTorch loads."""

_NEVER = (Fraction(0), Fraction(0), Fraction(0))

FLAG = "‹inputs›"


def profile_program(
    source: Source, request: ProfileRequest, progress: Callable[[int, int], None] = lambda done, total: None
) -> MeasuredProfile:
    """Measure an exported program on this machine: on its GPU if PyTorch finds one, else on its processor.

    Notes
    -----
    An op costs the median of its times, forward and backward; nothing is added or taken away but what the call of a
    backward pass takes by itself. Time: twice ``warm_up + repeats`` runs. Memory: weights, and what one run keeps.
    """
    torch = pytorch()  # whether it is there is said before anything else
    reading = read_with_modules(
        source.stored, source=source.display, dims=request.dims, system=request.system, name=source.stem
    )
    graph, choices = reading.graph, request.choices
    _refuse_what_does_not_fit(
        graph, source.size if source.weighted is None else source.weighted.size, request, source.display
    )
    loaded = load_program(source.runnable, source.display, request.seed)
    clock: Clock = CudaClock() if torch.cuda.is_available() else HostClock()
    exported = loaded.exported
    try:
        inputs, made_up = program_inputs(
            exported, graph.metadata["inputs"], request.arrays, request.seed, source.display, reading.symbols
        )
        if clock.device.type != "cpu":
            from torch.export.passes import move_to_device_pass

            exported = move_to_device_pass(exported, clock.device)
            inputs = [one.to(clock.device) if isinstance(one, torch.Tensor) else one for one in inputs]
        program = flat_program(exported, reading.nodes)
        _check_names(program, reading)
        times = time_program(
            program,
            inputs,
            clock,
            [int(op) for op in graph.order],
            warm_up=choices.warm_up,
            repeats=choices.repeats,
            threads=choices.threads,
            seed=request.seed,
            backward=request.backward,
            progress=progress,
        )
    except InputError as error:
        raise InputError(
            error.problem, source=error.source or source.display, where=error.where, remedy=error.remedy
        ) from None
    random_bytes = _made_up_bytes(loaded)
    metadata = {
        "model_sha256": source.sha256,
        "machine": machine(),
        "pytorch": str(torch.__version__),
        "device": clock.device_name,
        "threads": choices.threads,
        "warm_up": choices.warm_up,
        "repeats": choices.repeats,
        "seed": request.seed,
        "random_weight_bytes": random_bytes,
        "random_inputs": list(made_up),
        "interleaved": True,
    }
    if request.backward:
        metadata["call_us"] = in_thousandths(times.call_us)
    ops = _measured(times, backward=request.backward)
    return MeasuredProfile(profiled_graph(graph, ops, {}, metadata), graph, ops, random_bytes, made_up)


def _check_names(program: FlatProgram, reading: ProgramReading) -> None:
    """Raise InputError if a node of the file is none of the program that PyTorch loaded."""
    found = {step.name for step in program.steps if step.timed}
    missing = [name for names in reading.nodes for name in names if name not in found]
    if missing:
        problem = f"{len(missing)} of its nodes go by other names in PyTorch, such as {missing[0]!r}"
        raise InputError(problem, remedy="export it again with PyTorch 2.13")


def _measured(times: ProgramTimes, *, backward: bool) -> MeasuredOps:
    figures = [quartiles(one) for one in times.forward]
    medians = _medians(figures)
    wall, together = quartiles(times.walls), sum(medians, Fraction(0))
    ops = MeasuredOps(
        medians,
        tuple(figures),
        tuple(map(in_thousandths, medians)),
        wall,
        quartiles(times.stepped_walls),
        together,
        wall[1] - together,
    )
    if not backward:
        return ops
    back = [quartiles(one) if one else _NEVER for one in times.backward]
    cost = tuple(map(in_thousandths, _medians(back)))
    return replace(ops, backward=BackwardTimes(cost, tuple(back), quartiles(times.backward_walls)))


def _medians(figures: Sequence[Quartiles]) -> tuple[Fraction, ...]:
    return tuple(median for _, median, _ in figures)


def _made_up_bytes(loaded: LoadedProgram) -> int:
    held = {**loaded.exported.state_dict, **loaded.exported.constants}
    return sum(held[name].nbytes for name in loaded.made_up)


def _refuse_what_does_not_fit(graph: CostGraph, file_bytes: int, request: ProfileRequest, source: str) -> None:
    """Raise InputError if a run takes more memory than there is."""
    limit = request.memory_bytes
    weights = int(graph.metadata["parameter_bytes"])
    kept, what = most_alive(graph), "of activations"
    if request.backward:
        made = zip(graph.tensor_producer.tolist(), graph.tensor_bytes.tolist(), strict=True)
        kept += weights + sum(size for op, size in made if graph.work[op])
        what = "of activations and gradients"
    need = _COPIES_OF_FILE * file_bytes + weights + kept
    if limit is None or need <= limit:
        return
    raise InputError(
        f"running it takes about {format_bytes(need)} ({format_bytes(weights)} of weights, {format_bytes(kept)} "
        f"{what}), and there are {format_bytes(limit)}",
        source=source,
        remedy="profile it on a larger machine, or at smaller sizes; ‹memory_limit› overrides what is free",
    )


def program_inputs(
    exported: ExportedProgram,
    described: Sequence[Mapping[str, Any]],
    arrays: Mapping[str, Array],
    seed: int,
    source: str,
    sizes: Mapping[str, int],
) -> tuple[list[Any], tuple[str, ...]]:
    """Return what a program is given, in its order, and the names of what was made up.

    Parameters
    ----------
    described
        Name, shape and element type of each input that is a tensor, as the reader of graphs has them.
    arrays
        The user's, by name.
    sizes
        Values of the symbols in sizes; an input that is such a number has the value of its symbol.
    """
    from torch.export.graph_signature import ConstantArgument, InputKind, SymIntArgument, TensorArgument

    shapes = {one["name"]: one for one in described}
    unknown = next((name for name in arrays if name not in shapes), None)
    if unknown is not None:
        raise InputError(f"the program has no input {unknown!r}", source=FLAG, remedy=f"it has: {', '.join(shapes)}")
    numbers = {node.name: sizes.get(str(node.meta.get("val"))) for node in exported.graph.find_nodes(op="placeholder")}
    values: list[Any] = []
    made_up = []
    for spec in exported.graph_signature.input_specs:
        if spec.kind != InputKind.USER_INPUT:
            continue
        name = spec.arg.name
        if isinstance(spec.arg, ConstantArgument):
            values.append(spec.arg.value)
        elif isinstance(spec.arg, SymIntArgument) and numbers.get(name) is not None:
            values.append(numbers[name])
        elif not isinstance(spec.arg, TensorArgument) or name not in shapes:
            remedy = "export the program with that value fixed"
            raise InputError(f"input {name!r} is no tensor and has no fixed value", source=source, remedy=remedy)
        elif name in arrays:
            values.append(_given(arrays[name], shapes[name]))
        else:
            made_up.append(name)
            values.append(drawn_tensor(name, shapes[name]["dtype"], shapes[name]["shape"], seed))
    return values, tuple(made_up)


def _given(array: Array, described: Mapping[str, Any]) -> torch.Tensor:
    name, shape = described["name"], list(described["shape"])
    if list(array.shape) != shape:
        raise InputError(f"has the shape {list(array.shape)}, the program's has {shape}", source=FLAG, where=name)
    own = as_declared(array, described["dtype"])
    if own is None:
        raise InputError(f"holds {array.dtype}, the program's {described['dtype']}", source=FLAG, where=name)
    tensor: torch.Tensor = as_tensor(own.copy())
    return tensor
