"""Random series-parallel graphs, with costs."""

from __future__ import annotations

import random

from mtpp.inference.graph import CostGraph, Op, Tensor


def composed_edges(op_count: int, seed: int, *, series: float = 0.6) -> list[tuple[int, int]]:
    """Return the edges of a random series-parallel multigraph, ops and edges in random order.

    Beginning with one edge, an edge is subdivided by a new op (with probability *series*) or doubled, again and again.
    """
    draw = random.Random(seed)
    edges = [(0, 1)] if op_count > 1 else []
    made = min(op_count, 2)
    while made < op_count:
        i = draw.randrange(len(edges))
        tail, head = edges[i]
        if draw.random() < series:
            edges[i] = (tail, made)
            edges.append((made, head))
            made += 1
        else:
            edges.append((tail, head))
    names = list(range(op_count))
    draw.shuffle(names)
    draw.shuffle(edges)
    return [(names[tail], names[head]) for tail, head in edges]


def composed_graph(op_count: int, seed: int, *, shared: float = 0.5, largest_cost: int = 20) -> CostGraph:
    """Return a random series-parallel graph with integer costs.

    Parameters
    ----------
    shared
        Of the edges that leave an op, the share that carries its first tensor; each of the others carries its own.
    """
    draw = random.Random(seed)
    readers: list[list[list[int]]] = [[] for _ in range(op_count)]
    for tail, head in composed_edges(op_count, seed):
        if readers[tail] and head not in readers[tail][0] and draw.random() < shared:
            readers[tail][0].append(head)
        else:
            readers[tail].append([head])
    ops = [Op(f"op{v}", draw.randint(0, largest_cost), param_bytes=draw.randint(0, 60)) for v in range(op_count)]
    tensors = [
        Tensor(f"t{v}.{i}", f"op{v}", tuple(f"op{w}" for w in found), transfer=draw.randint(0, largest_cost // 2))
        for v, sets in enumerate(readers)
        for i, found in enumerate(sets)
    ]
    return CostGraph.build(name=f"composed-{op_count}-{seed}", time_unit="1", ops=ops, tensors=tensors)


def branches(count: int, length: int) -> CostGraph:
    """Return an op that feeds one tensor to *count* equal chains of *length* ops, and an op that joins them."""
    ops, tensors = [Op("in", 5)], [Tensor("t", "in", tuple(f"b{b}.0" for b in range(count)), transfer=3)]
    for b in range(count):
        for i in range(length):
            ops.append(Op(f"b{b}.{i}", 4 + 7 * i % 5))
            reader = f"b{b}.{i + 1}" if i + 1 < length else "out"
            tensors.append(Tensor(f"t{b}.{i}", f"b{b}.{i}", (reader,), transfer=2 + 3 * i % 4))
    return CostGraph.build(name=f"{count}x{length}", time_unit="1", ops=[*ops, Op("out", 6)], tensors=tensors)
