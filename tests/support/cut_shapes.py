"""Partitions into series-parallel pieces, by their definition, and the best of them on given devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import oracles

from mtpp.inference.graph import CostGraph
from mtpp.solvers.series_parallel.decomposition import CORE, PARALLEL, Decomposition


def has_the_shape(graph: CostGraph, tree: Decomposition, stages: Sequence[int], group: Sequence[int] = ()) -> bool:
    """Return whether every stage is a series-parallel piece.

    Of pieces side by side, only the stages of their terminals are in several. The virtual source belongs to a stage
    that nothing before it feeds, or to none, the virtual sink to one that feeds nothing. Inside a core all is allowed;
    where devices have a fixed order, with the *group* of each stage, the stage of the source is on devices of no later
    group than others of the core, if it holds any op there, and that of the sink on none of an earlier one.
    """
    in_cores: set[int] = set()
    top_cores = []
    for node in range(len(tree.kind) - 1, -1, -1):
        if tree.kind[node] == CORE and node not in in_cores:
            top_cores.append(node)
        if node in in_cores or tree.kind[node] == CORE:
            in_cores.update(tree.children_of(node).tolist())
    before = oracles.predecessors(graph)
    used = set(stages)
    begins = [s for s in used if all(stages[u] == s for v, t in enumerate(stages) if t == s for u in before[v])]
    ends = [s for s in used if not any(stages[u] == s != stages[v] for v in range(len(stages)) for u in before[v])]
    fresh = (len(stages) + len(group), len(stages) + len(group) + 1)
    inner = [set(ops) for ops in (tree.inside(node) for node in range(len(tree.kind)))]
    for source, sink in product([*begins, fresh[0]], [*ends, fresh[1]]):
        if source == sink and len(used) > 1:
            continue
        of = [*stages, source, sink]
        if not all(
            all(len({child for child in tree.children_of(node) if any(of[v] == s for v in inner[child])}) < 2
                for s in used - {of[tree.tail[node]], of[tree.head[node]]})
            for node in range(len(tree.kind)) if tree.kind[node] == PARALLEL and node not in in_cores
        ):  # fmt: skip
            continue
        if group and not all(_ends_of_core(tree, node, stages, group, (source, sink)) for node in top_cores):
            continue
        return True
    return False


def _ends_of_core(
    tree: Decomposition, node: int, stages: Sequence[int], group: Sequence[int], terminals: tuple[int, int]
) -> bool:
    here = {stages[v] for v in tree.inside(node)}
    source, sink = terminals
    # Where the whole graph begins in the core, the virtual source needs no stage of its own.
    if tree.tail[node] == tree.source and source in here and any(group[source] > group[s] for s in here):
        return False
    return not (tree.head[node] == tree.sink and sink in here and any(group[sink] < group[s] for s in here))


def best_on_devices(
    graph: CostGraph,
    tree: Decomposition,
    cost: Callable[[Sequence[int], int], int],
    groups: Sequence[int],
    most: int,
    *,
    free: bool,
) -> tuple[int, int]:
    """Return the least bottleneck of all partitions into such pieces, and that of all partitions.

    Parameters
    ----------
    cost
        Of a stage on a device, by its number.
    groups
        Of the devices, in fixed order: runs of equal ones.
    most
        Devices that may be used.
    """
    k = len(groups)
    best, best_of_all = oracles.NEVER, oracles.NEVER
    for stages, devices in _placements(graph, k, free=free):
        used = sorted(set(stages))
        if len(used) > most:
            continue
        ticks = max(cost([v for v, s in enumerate(stages) if s == stage], devices[stage]) for stage in used)
        best_of_all = min(best_of_all, ticks)
        if ticks < best and has_the_shape(graph, tree, stages, () if free else groups):
            best = ticks
    return best, best_of_all


def _placements(graph: CostGraph, k: int, *, free: bool) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    if free:
        for stages in oracles.monotone_assignments(graph, k):
            used = max(stages) + 1
            if set(stages) == set(range(used)):
                for devices in permutations(range(k), used):
                    yield stages, devices
        return
    before = oracles.predecessors(graph)
    for stages in product(range(k), repeat=graph.op_count):
        if all(stages[u] <= stage for v, stage in enumerate(stages) for u in before[v]):
            yield stages, range(k)
