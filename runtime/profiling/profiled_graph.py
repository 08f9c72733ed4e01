"""A graph whose ops cost what they were measured to take, and whose tensors have the sizes that were seen.

What an op costs: the mean of the middle half of its kernel's times, because the profiler counts whole microseconds and
a busy machine has outliers; and a correction, so that all ops together cost a run without the profiler. A run takes
longer than its kernels, and the profiler makes it longer still: by the difference of the lower quartiles of runs with
it and without it, because what disturbs a run only adds to it. What is left between the kernels is ONNX Runtime's way
from one to the next: each op gets an equal share. Where nothing is left, the profiler slows the kernels themselves
down, and all shrink by the same factor, but not below the lower quartile of runs without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mtpp.host.statistics import Quartiles, in_thousandths, middle_mean, quartiles
from mtpp.runtime.profiling.executable import NODE

if TYPE_CHECKING:
    import onnx

    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.profiling.timing import Measurement
    from mtpp.units import Exact

TIME_UNIT = "us"

Owners = tuple[int, ...]
"""Ops (by index) that share what a node took; empty for nobody."""


@dataclass(frozen=True)
class BackwardTimes:
    """Times of backward passes, in microseconds.

    Attributes
    ----------
    cost
        Of each op, in whole nanoseconds; 0 where nothing has gradients.
    quartiles
        Of the same over the runs.
    wall
        Quartiles of the backward pass of a whole run.
    """

    cost: tuple[Exact, ...]
    quartiles: tuple[Quartiles, ...]
    wall: Quartiles


@dataclass(frozen=True)
class MeasuredOps:
    """Times of the ops of a graph, in microseconds.

    Attributes
    ----------
    kernel
        What the op's kernels took: the mean of the middle half, with PyTorch the median.
    quartiles
        Of the same over the runs: first, second and third.
    cost
        With the correction, in whole nanoseconds.
    wall, profiled_wall
        Quartiles of a whole run, without and with the profiler, by our own clock. With PyTorch the profiler is what
        runs node by node.
    kernels
        Σ kernel, and what belongs to no op.
    between_kernels
        What a run takes besides, and the profiler does not; below zero where it slows the kernels down.
    backward
        Of exported programs, if it was asked for.
    """

    kernel: tuple[Fraction, ...]
    quartiles: tuple[Quartiles, ...]
    cost: tuple[Exact, ...]
    wall: Quartiles
    profiled_wall: Quartiles
    kernels: Fraction
    between_kernels: Fraction
    backward: BackwardTimes | None = None


@dataclass(frozen=True)
class MeasuredProfile:
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


def measured_ops(measurement: Measurement, owners: Mapping[str, Owners], shares: Sequence[int]) -> MeasuredOps:
    """Return what each op took.

    Parameters
    ----------
    owners
        Ops behind each node that ran, by its name.
    shares
        Of each op, in what a node that several ops own took.
    """
    runs = len(measurement.walls_us)
    per_run = [[Fraction(0)] * runs for _ in shares]
    unowned = [Fraction(0)] * runs
    for node in measurement.trace.nodes:
        ops = owners[node.name]
        whole = sum(shares[op] for op in ops)
        for run, us in enumerate(node.durations_us):
            for op in ops:
                per_run[op][run] += us * (Fraction(shares[op], whole) if whole else Fraction(1, len(ops)))
            if not ops:
                unowned[run] += us
    kernel = tuple(middle_mean(times) for times in per_run)
    kernels = sum(kernel, middle_mean(unowned))
    besides = middle_mean(
        [wall - sum(times[run] for times in (*per_run, unowned)) for run, wall in enumerate(measurement.trace.walls_us)]
    )
    wall, profiled_wall = quartiles(measurement.walls_us), quartiles(measurement.profiled_walls_us)
    between = besides - max(Fraction(0), profiled_wall[0] - wall[0])
    if between >= 0:
        cost = [time + between / len(kernel) for time in kernel]
    else:
        together = min(kernels, max(kernels + between, wall[0]))
        cost = [time * together / kernels for time in kernel]
    return MeasuredOps(
        kernel,
        tuple(quartiles(times) for times in per_run),
        tuple(in_thousandths(time) for time in cost),
        wall,
        profiled_wall,
        kernels,
        between,
    )


def profiled_graph(
    graph: CostGraph, ops: MeasuredOps, sizes: Mapping[str, int], metadata: Mapping[str, Any]
) -> CostGraph:
    """Return a graph with measured costs in microseconds, and *sizes* of tensors where they are known.

    *metadata* goes under ``profile``, with the figures of the whole run.
    """
    tensor_bytes = np.array(
        [sizes.get(name, size) for name, size in zip(graph.tensor_names, graph.tensor_bytes.tolist(), strict=True)],
        dtype=np.int64,
    )
    tensor_bytes.setflags(write=False)
    profile = {
        **metadata,
        "wall_us": _figures(ops.wall),
        "profiled_wall_us": _figures(ops.profiled_wall),
        "kernels_us": in_thousandths(ops.kernels),
        "between_kernels_us": in_thousandths(ops.between_kernels),
        "modelled_us": in_thousandths(Fraction(sum(graph.work), 10**6)),
        "op_quartiles_us": [_figures(figures) for figures in ops.quartiles],
    }
    if ops.backward is not None:
        profile |= {
            "backward_wall_us": _figures(ops.backward.wall),
            "backwards_us": in_thousandths(sum(map(Fraction, ops.backward.cost), Fraction(0))),
            "op_backward_quartiles_us": [_figures(figures) for figures in ops.backward.quartiles],
        }
    return replace(
        graph,
        time_unit=TIME_UNIT,
        work=ops.cost,
        backward=graph.backward if ops.backward is None else ops.backward.cost,
        tensor_bytes=tensor_bytes,
        metadata={**graph.metadata, "profile": profile},
    )


def _figures(figures: Sequence[Fraction]) -> list[Exact]:
    return [in_thousandths(figure) for figure in figures]


def covers(measurement: Measurement, owners: Mapping[str, Owners], ops: int) -> bool:
    """Tell whether every node that ran has owners that are known, if only nobody, and every op has a node."""
    if any(node.name not in owners for node in measurement.trace.nodes):
        return False
    return len({op for node in measurement.trace.nodes for op in owners[node.name]}) == ops


def owners_by_position(graph: onnx.GraphProto, positions: Sequence[int]) -> list[Owners]:
    """Return the op behind each node of a model: its own, or the first that reads what a folded node makes.

    Nodes that depend on the sizes of inputs alone are no ops, and some of them run all the same: their time goes to
    what waits for it.

    Parameters
    ----------
    positions
        Of each op among the nodes.

    Notes
    -----
    O(nodes + edges).
    """
    op_of = {position: op for op, position in enumerate(positions)}
    _, readers = neighbours(graph.node)
    owners: list[Owners | None] = [(op_of[i],) if i in op_of else None for i in range(len(graph.node))]
    for i in range(len(owners)):
        path = [i]
        while owners[path[-1]] is None:  # depth first; the graph has no cycle
            at = path[-1]
            waiting = next((j for j in readers[at] if owners[j] is None), None)
            if waiting is not None:
                path.append(waiting)
                continue
            owners[at] = next((found for j in readers[at] if (found := owners[j])), ())
            path.pop()
            if not path:
                break
    return [found or () for found in owners]


def neighbours(nodes: Sequence[onnx.NodeProto]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the nodes that each one reads from, and those that read from it, once for each tensor."""
    from mtpp.formats.onnx.topology import reads

    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    sources = [[maker[name] for name in reads(node) if name in maker] for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for i, own in enumerate(sources):
        for source in own:
            readers[source].append(i)
    return sources, readers


def owners_by_name(owners: Sequence[Owners]) -> Mapping[str, Owners]:
    """Return the same by the name that a node has in an :class:`mtpp.runtime.profiling.executable.Executable`."""
    return {f"{NODE}{i}": found for i, found in enumerate(owners)}
