"""Plain-Python oracles, written straight from the definitions and slow on purpose.

They take a :class:`mtpp.inference.graph.CostGraph` and a :class:`mtpp.machine.device.Device`, read nothing but their
fields, and return exact integers in ticks. Ops are numbers in file order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple

from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.machine.device import Device

PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


class Ticks(NamedTuple):
    """Costs of a graph in ticks."""

    per_unit: int
    work: tuple[int, ...]
    transfer: tuple[int, ...]


def ceil(value: Fraction | int) -> int:
    """Round up to an integer."""
    return -((-value.numerator) // value.denominator)


def ticks_per_unit(graph: CostGraph, k: int | None) -> int:
    """Return 10^12 / unit for timed graphs; for abstract ones the largest fitting power of ten up to 10^18."""
    if graph.time_unit != "1":
        return PICOSECONDS[graph.time_unit]
    costs = [Fraction(cost) for cost in [*graph.work, *graph.transfer] if cost is not None]
    if all(cost.denominator == 1 for cost in costs):
        return 1
    if k is None:
        raise ValueError("ticks of an abstract graph with fractional costs depend on k")
    scale = 1
    while k * sum(costs) * (scale * 10) < 2**53 and scale < 10**18:
        scale *= 10
    return scale


@lru_cache(maxsize=32)
def to_ticks(graph: CostGraph, system: Device, k: int | None = None) -> Ticks:
    """Convert every cost: multiply exactly, then round up; bytes go over the system's link."""
    scale = ticks_per_unit(graph, k)
    work = tuple(ceil(Fraction(cost) * scale) for cost in graph.work)
    transfer = tuple(
        ceil(Fraction(int(size) * 10**12, system.link.bandwidth_bytes_per_s))
        if cost is None
        else ceil(Fraction(cost) * scale)
        for cost, size in zip(graph.transfer, graph.tensor_bytes, strict=True)
    )
    return Ticks(scale, work, transfer)


@lru_cache(maxsize=32)
def tensors_of(graph: CostGraph) -> tuple[tuple[int, frozenset[int]], ...]:
    """Return producer and consumers of every tensor."""
    return tuple(
        (int(graph.tensor_producer[t]), frozenset(int(v) for v in graph.tensor_consumers(t)))
        for t in range(graph.tensor_count)
    )


@lru_cache(maxsize=32)
def own_order(graph: CostGraph) -> tuple[int, ...]:
    """Return file order if it is topological, else repeatedly the first op in the file whose inputs are done."""
    order: list[int] = []
    done: set[int] = set()
    before = predecessors(graph)
    while len(order) < graph.op_count:
        order.append(next(v for v in range(graph.op_count) if v not in done and before[v] <= done))
        done.add(order[-1])
    return tuple(order)


def predecessors(graph: CostGraph) -> list[set[int]]:
    """Return the set of ops whose tensors each op consumes."""
    before: list[set[int]] = [set() for _ in range(graph.op_count)]
    for producer, consumers in tensors_of(graph):
        for v in consumers:
            before[v].add(producer)
    return before


def peak_in_order(graph: CostGraph, ops: Iterable[int]) -> int:
    """Return the most bytes live at any step of running the ops in the graph's own order."""
    inside = set(ops)
    sequence = [v for v in own_order(graph) if v in inside]
    peak = 0
    for now in range(len(sequence)):
        live = 0
        for t, (producer, consumers) in enumerate(tensors_of(graph)):
            uses = [step for step, v in enumerate(sequence) if v in consumers]
            if producer in inside:
                begin = sequence.index(producer)
                leaves = bool(consumers - inside) or t in graph.results
                end = len(sequence) - 1 if leaves else max(uses, default=begin)
            elif uses:
                begin, end = min(uses), max(uses)
            else:
                continue
            if begin <= now <= end and graph.tensor_bytes[t] != UNKNOWN_BYTES:
                live += int(graph.tensor_bytes[t])
        for size, readers in inputs_of(graph):
            uses = [step for step, v in enumerate(sequence) if v in readers]
            if uses and min(uses) <= now <= max(uses):
                live += size
        peak = max(peak, live)
    return peak


def inputs_of(graph: CostGraph) -> list[tuple[int, set[int]]]:
    """Return bytes and readers of each input of the graph."""
    rows = graph.inputs.rows(range(graph.op_count))  # type: ignore[arg-type]
    return [(row.bytes, set(row.readers)) for row in rows if row.name not in graph.states.inputs]  # type: ignore[arg-type]


def stage_figures(graph: CostGraph, system: Device, ops: Iterable[int], k: int | None = None) -> dict[str, int]:
    """Return work, input, output, overflow, cost, param_bytes and peak_bytes of a set of ops (eq. 1 to 3)."""
    inside = frozenset(ops)
    ticks = to_ticks(graph, system, k)
    reads = [t for t, (u, consumers) in enumerate(tensors_of(graph)) if u not in inside and consumers & inside]
    writes = [t for t, (u, consumers) in enumerate(tensors_of(graph)) if u in inside and consumers - inside]
    params = sum(int(graph.param_bytes[v]) for v in inside)
    shared = graph.weights.rows(range(graph.op_count))  # type: ignore[arg-type]
    params += sum(weight.bytes for weight in shared if inside.intersection(weight.readers))
    rows = graph.states.held.rows(range(graph.op_count))  # type: ignore[arg-type]
    states = sum(row.bytes for row in rows if inside.intersection(row.readers)) * system.sequences
    kept = {"state_bytes": states} if rows else {}
    if not inside:
        peak = 0
    elif system.peak == "reserve":
        peak = system.activation_reserve_bytes
    else:
        peak = peak_in_order(graph, inside)
    overflow = 0
    if inside and system.fast_memory_bytes is not None:
        excess = max(0, params + peak - system.fast_memory_bytes)
        overflow = ceil(Fraction(excess * 10**12, system.link.bandwidth_bytes_per_s))
    figures = {
        "work": sum(ticks.work[v] for v in inside),
        "input": sum(ticks.transfer[t] for t in reads),
        "output": sum(ticks.transfer[t] for t in writes),
        "overflow": overflow,
    }
    return {**figures, "cost": sum(figures.values()), "param_bytes": params, "peak_bytes": peak, **kept}


NEVER = 10**30
"""Cost of a stage that needs more than the stage memory."""


def stage_cost(graph: CostGraph, system: Device, ops: Iterable[int], k: int | None = None) -> int:
    """Return f(S) in ticks, :data:`NEVER` if S is too large; *k* is needed only for abstract, fractional graphs."""
    figures = stage_figures(graph, system, ops, k)
    limit = system.memory_bytes
    if limit is not None and sum(figures.get(key, 0) for key in ("param_bytes", "state_bytes", "peak_bytes")) > limit:
        return NEVER
    return figures["cost"]


def bottleneck(graph: CostGraph, system: Device, assignment: Sequence[int], k: int) -> int:
    """Return the largest stage cost of an assignment op → stage."""
    return max(stage_cost(graph, system, [v for v, s in enumerate(assignment) if s == b], k) for b in set(assignment))


def monotone_assignments(graph: CostGraph, k: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to give the ops stages 0 to k-1 with no edge going back and empty stages all at the end."""
    order, before = own_order(graph), predecessors(graph)
    stages = [0] * graph.op_count

    def extend(i: int, used: int) -> Iterator[tuple[int, ...]]:
        if i == len(order):
            yield tuple(stages)
            return
        v = order[i]
        for stage in range(max((stages[u] for u in before[v]), default=0), min(k, graph.op_count)):
            then = used | 1 << stage
            empty_before_others = then.bit_length() - then.bit_count()
            if empty_before_others < len(order) - i:  # no more than the ops that are left can fill
                stages[v] = stage
                yield from extend(i + 1, then)
        stages[v] = 0

    return extend(0, 0)


def brute_force_optimum(graph: CostGraph, system: Device, k: int, together: Iterable[Iterable[int]] = ()) -> int:
    """Return OPT by trying every partition, :data:`NEVER` if none keeps to the stage memory; for at most 8 ops.

    *together* lists groups of ops that must share a stage; there is always a partition that does (one stage).
    """
    return best_partition(graph, system, k, together)[0]


def best_partition(
    graph: CostGraph, system: Device, k: int, together: Iterable[Iterable[int]] = ()
) -> tuple[int, tuple[int, ...]]:
    """Return OPT as :func:`brute_force_optimum` does, and the stages of a partition that reaches it."""
    groups = [list(group) for group in together]

    @cache
    def cost(bits: int) -> int:
        return stage_cost(graph, system, [v for v in range(graph.op_count) if bits >> v & 1], k)

    best: tuple[int, tuple[int, ...]] | None = None
    for stages in monotone_assignments(graph, k):
        if any(len({stages[v] for v in group}) > 1 for group in groups):
            continue
        members = [0] * (max(stages) + 1)
        for v, stage in enumerate(stages):
            members[stage] |= 1 << v
        worst = max(map(cost, members))
        if best is None or worst < best[0]:
            best = worst, stages
    assert best is not None
    return best


def is_topological(graph: CostGraph, order: Sequence[int]) -> bool:
    """Tell whether *order* has every op once, and after all ops whose tensors it consumes."""
    place = {v: i for i, v in enumerate(order)}
    if sorted(order) != list(range(graph.op_count)):
        return False
    return all(place[u] < place[v] for v, before in enumerate(predecessors(graph)) for u in before)


def kahn_order(graph: CostGraph, priorities: Sequence[Any]) -> list[int]:
    """Return Kahn's order that always takes the ready op of highest priority, the first in the file among equals.

    Archer et al. (2024), Algorithm 3.
    """
    before = predecessors(graph)
    indegree = [len(ops) for ops in before]
    queue = [(-priorities[v], v) for v in range(graph.op_count) if indegree[v] == 0]
    heapq.heapify(queue)
    order: list[int] = []
    while queue:
        _, u = heapq.heappop(queue)
        order.append(u)
        for v in range(graph.op_count):
            if u in before[v]:
                indegree[v] -= 1
                if indegree[v] == 0:
                    heapq.heappush(queue, (-priorities[v], v))
    return order


def best_segmentation(graph: CostGraph, system: Device, k: int, order: Sequence[int]) -> int:
    """Return the least bottleneck of cutting *order* into at most k segments (Archer et al. 2024, Algorithm 1).

    :data:`NEVER` if no cut keeps to the stage memory.
    """
    return best_cut_of_blocks(graph, system, k, [[v] for v in order])


def best_cut_of_blocks(graph: CostGraph, system: Device, k: int, blocks: Sequence[Sequence[int]]) -> int:
    """Do as :func:`best_segmentation` does on an order of blocks of ops, without cuts inside a block."""
    n = len(blocks)
    cost = _segment_costs(graph, system, blocks, k)
    best = [cost[0, r] for r in range(n + 1)]
    for _ in range(min(k, n) - 1):
        best = [min(max(best[left], cost[left, r]) for left in range(r + 1)) for r in range(n + 1)]
    return best[n]


def fewest_stages(
    graph: CostGraph, system: Device, order: Sequence[int], cutoff: int, k: int | None = None
) -> int | None:
    """Return the least number of segments of *order* that all cost less than *cutoff*; None if some op never fits.

    *k* is needed only for abstract graphs with fractional costs, whose ticks depend on it.
    """
    n = len(order)
    cost = _segment_costs(graph, system, [[v] for v in order], k)
    fewest: list[int | None] = [0] + [None] * n
    for r in range(1, n + 1):
        options = [fewest[left] for left in range(r) if cost[left, r] < cutoff]
        fewest[r] = min((count + 1 for count in options if count is not None), default=None)
    return fewest[n]


def _segment_costs(
    graph: CostGraph, system: Device, blocks: Sequence[Sequence[int]], k: int | None
) -> dict[tuple[int, int], int]:
    """Return f(blocks[left:right]) for all left <= right."""
    n = len(blocks)
    return {
        (left, right): stage_cost(graph, system, [v for block in blocks[left:right] for v in block], k)
        for right in range(n + 1)
        for left in range(right + 1)
    }
