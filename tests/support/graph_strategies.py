"""Small random graphs and systems: seeded builders, and hypothesis strategies made of the same builder.

Ops are called ``op0``, ``op1``, … in file order. Tensors are hyperedges with any number of consumers, an op makes up to
three of them, and file order need not be topological.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import oracles
from hypothesis import strategies as st

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.units import Exact

Pick = Callable[[int, int], int]
"""Gives an integer between two others, both included."""

TIMED = ("ps", "ns", "us", "ms", "s")
ABSTRACT = "1"

LINK = Device("link", 10**12, 10**11, Link(10**9))
"""One byte takes 1000 ticks on its link, no fast memory."""


def random_graph(
    seed: int,
    op_count: int,
    *,
    time_unit: str = ABSTRACT,
    fractional: bool = False,
    shuffled: bool = True,
    largest_cost: int = 100,
    consumers_per_tensor: float = 1.5,
) -> CostGraph:
    """Make the same graph from the same arguments every time.

    Parameters
    ----------
    time_unit
        Tensors of a timed graph have bytes, a transfer, or both; those of an abstract one have a transfer.
    fractional
        Whether costs have up to three decimals.
    shuffled
        Whether file order may differ from every topological order.
    consumers_per_tensor
        About how many ops read a tensor, as far as later ops exist.
    """
    pick = random.Random(seed).randint
    ranks = list(range(op_count))
    if shuffled:
        random.Random(seed + 1).shuffle(ranks)
    return _build(
        pick,
        ranks,
        time_unit=time_unit,
        fractional=fractional,
        largest_cost=largest_cost,
        spread=consumers_per_tensor,
    )


def chain(works: list[Exact], transfers: list[Exact], time_unit: str = ABSTRACT) -> CostGraph:
    """Make the path op0 → op1 → … with a transfer time on each link."""
    ops = [Op(f"op{i}", work) for i, work in enumerate(works)]
    tensors = [Tensor(f"t{i}", f"op{i}", (f"op{i + 1}",), None, cost) for i, cost in enumerate(transfers)]
    return CostGraph.build(name="chain", time_unit=time_unit, ops=ops, tensors=tensors)


def _build(
    pick: Pick, ranks: list[int], *, time_unit: str, fractional: bool, largest_cost: int, spread: float
) -> CostGraph:
    """Make a graph in which op v may only feed ops of higher rank."""
    count = len(ranks)

    def cost() -> Exact:
        if not fractional:
            return pick(0, largest_cost)
        value = Fraction(pick(0, largest_cost * 1000), 10 ** pick(0, 3))
        return value.numerator if value.denominator == 1 else value

    ops = [Op(f"op{v}", cost(), f"Kind{v % 3}", pick(0, 60)) for v in range(count)]
    tensors: list[Tensor] = []
    for v in range(count):
        later = [u for u in range(count) if ranks[u] > ranks[v]]
        for _ in range((1, 1, 1, 2, 3, 0)[pick(0, 5)]):
            # Out of 100: the chance of each later op to read the tensor.
            chance = min(100, int(100 * spread / max(1, len(later))))
            readers = tuple(f"op{u}" for u in later if pick(1, 100) <= chance)
            how = 0 if time_unit == ABSTRACT else pick(0, 2)
            size = pick(0, 50) if how or pick(0, 1) else None
            tensors.append(Tensor(f"t{len(tensors)}", f"op{v}", readers, size, None if how == 2 else cost()))
    return CostGraph.build(name="random", time_unit=time_unit, ops=ops, tensors=tensors)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    min_ops: int = 1,
    max_ops: int = 7,
    time_units: tuple[str, ...] = (*TIMED, ABSTRACT),
    fractional: bool | None = None,
) -> CostGraph:
    """Draw a graph; *fractional* None draws whether costs have decimals."""
    count = draw(st.integers(min_ops, max_ops))
    return _build(
        lambda low, high: draw(st.integers(low, high)),
        draw(st.permutations(range(count))),
        time_unit=draw(st.sampled_from(time_units)),
        fractional=draw(st.booleans()) if fractional is None else fractional,
        largest_cost=20,
        spread=draw(st.sampled_from((0.7, 1.5, 3.0))),
    )


def abstract_graphs(
    *, min_ops: int = 1, max_ops: int = 7, fractional: bool | None = None
) -> st.SearchStrategy[CostGraph]:
    """Draw graphs without a unit of time."""
    return graphs(min_ops=min_ops, max_ops=max_ops, time_units=(ABSTRACT,), fractional=fractional)


@st.composite
def systems(draw: st.DrawFn, *, fast_memory: bool) -> Device:
    """Draw a system; with *fast_memory* one that small graphs overflow, with either kind of peak.

    Only timed graphs go with a fast memory.
    """
    bandwidth = draw(st.sampled_from((1, 3, 10**9, 7 * 10**11, 25 * 10**9)))
    if not fast_memory:
        return Device("drawn", 10**12, 10**11, Link(bandwidth), None, draw(st.integers(0, 50)), draw(_peaks))
    memory = draw(st.integers(0, 200))
    return Device("drawn", 10**12, 10**11, Link(bandwidth), memory, draw(st.integers(0, memory)), draw(_peaks))


_peaks = st.sampled_from(("reserve", "order"))


@st.composite
def problems(
    draw: st.DrawFn, *, max_ops: int = 7, max_stages: int = 4, stage_memory: bool = False
) -> tuple[CostGraph, Device, int]:
    """Draw a graph, a system that goes with it and a number of stages, sometimes more than there are ops.

    With *stage_memory* there may be a limit on it, which some partitions meet, or all, or none.
    """
    graph = draw(graphs(max_ops=max_ops))
    system = draw(systems(fast_memory=graph.time_unit != ABSTRACT and draw(st.booleans())))
    if stage_memory and draw(st.booleans()):
        system = replace(system, memory_bytes=system.activation_reserve_bytes + draw(st.integers(0, 300)))
    return graph, system, draw(st.integers(1, max_stages))


NO_MEMORY = Device("s", 1, 1, Link(10**9))


def merging_graph(seed: int, op_count: int, *, time_unit: str = "1", largest_params: int = 0) -> CostGraph:
    """Make a graph of cheap ops and dearer tensors, with zeros, ties, several tensors per op and several readers.

    Few ops are far from each other, so that there are paths beside edges. File order need not be topological.
    """
    draw = random.Random(seed)
    ranks = list(range(op_count))
    draw.shuffle(ranks)
    dear, cheap = draw.choice((1, 3, 9)), draw.choice((0, 1, 3))
    ops = [
        Op(
            f"op{v}",
            draw.choice((0, draw.randint(0, cheap), draw.randint(0, dear))),
            param_bytes=draw.choice((0, draw.randint(0, largest_params))),
        )
        for v in range(op_count)
    ]
    tensors: list[Tensor] = []
    for v in range(op_count):
        later = sorted((u for u in range(op_count) if ranks[u] > ranks[v]), key=ranks.__getitem__)
        for _ in range(draw.choice((1, 1, 1, 2, 2, 0))):
            near = later[: draw.choice((1, 2, 4, op_count))]
            readers = tuple(f"op{u}" for u in near if draw.random() < 0.6)
            cost = draw.choice((0, 1, 2, 4, draw.randint(0, 9)))
            tensors.append(Tensor(f"t{len(tensors)}", f"op{v}", readers, draw.randint(0, 3), cost))
    return CostGraph.build(name="merging", time_unit=time_unit, ops=ops, tensors=tensors)


def partitions(graph: CostGraph, instance: Instance) -> Iterator[Partition]:
    """Yield every partition, empty stages at the end."""
    for stages in oracles.monotone_assignments(graph, instance.k):
        yield Partition.from_stages(instance, stages)


def with_costs(graph: CostGraph, cost: Callable[[Exact], Exact], *, unit: str | None = None) -> CostGraph:
    """Return the graph with other costs, of ops first and of tensors then; bytes stay."""
    names = graph.op_names
    ops = [
        Op(name, cost(work), kind, int(size))
        for name, work, kind, size in zip(names, graph.work, graph.op_kinds, graph.param_bytes, strict=True)
    ]
    tensors = [
        Tensor(
            graph.tensor_names[t],
            names[graph.tensor_producer[t]],
            tuple(names[v] for v in graph.tensor_consumers(t)),
            int(graph.tensor_bytes[t]) if graph.tensor_bytes[t] >= 0 else None,
            None if graph.transfer[t] is None else cost(graph.transfer[t]),
        )
        for t in range(graph.tensor_count)
    ]
    return CostGraph.build(name=graph.name, time_unit=unit or graph.time_unit, ops=ops, tensors=tensors)
