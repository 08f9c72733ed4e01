"""Small random graphs in which merges of the reduction are common, and every partition of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import oracles

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.system import System

NO_MEMORY = System("s", 1, 1, 10**9)


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
