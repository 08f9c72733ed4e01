"""From the file of an exported program to its graph with measured costs: the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from mtpp.errors import InputError
from mtpp.host.statistics import Quartiles, in_thousandths, quartiles
from mtpp.runtime.profiling.machine import machine
from mtpp.runtime.profiling.profile_memory import most_alive
from mtpp.runtime.profiling.profile_request import ProfileRequest
from mtpp.runtime.profiling.profiled_graph import BackwardTimes, MeasuredOps, MeasuredProfile, profiled_graph
from mtpp.runtime.pytorch.library import pytorch
from mtpp.runtime.pytorch.loading import LoadedProgram, load_program
from mtpp.runtime.pytorch.profiling.clocks import CudaClock, HostClock
from mtpp.runtime.pytorch.profiling.program_inputs import program_inputs
from mtpp.runtime.pytorch.profiling.program_timing import ProgramTimes, time_program
from mtpp.runtime.pytorch.profiling.steps import flat_program
from mtpp.units import format_bytes

if TYPE_CHECKING:
    from mtpp.formats.io.source import Source
    from mtpp.formats.torch_export import ProgramReading
    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.pytorch.profiling.clocks import Clock
    from mtpp.runtime.pytorch.profiling.steps import FlatProgram

_COPIES_OF_FILE = 2
"""The file, and the copy of it that PyTorch loads."""

_NEVER = (Fraction(0), Fraction(0), Fraction(0))


def profile_program(
    source: Source, request: ProfileRequest, progress: Callable[[int, int], None] = lambda done, total: None
) -> MeasuredProfile:
    """Measure an exported program on this machine: on its GPU if PyTorch finds one, else on its processor.

    Notes
    -----
    An op costs the median of its times, forward and backward; nothing is added or taken away but what the call of a
    backward pass takes by itself. Time: twice ``warm_up + repeats`` runs. Memory: weights, and what one run keeps.
    """
    from mtpp.formats.torch_export import read_with_modules

    torch = pytorch()  # whether it is there is said before anything else
    reading = read_with_modules(
        source.stored, source=source.display, dims=request.dims, system=request.system, name=source.stem
    )
    graph, choices = reading.graph, request.choices
    _refuse_what_does_not_fit(graph, source.size, request, source.display)
    loaded = load_program(source.stored, source.display, request.seed)
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
