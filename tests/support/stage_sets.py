"""Sets of ops that can be stages of small graphs, all of them."""

from __future__ import annotations

import oracles
from graph_strategies import LINK, random_graph

from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine


def stages_within(instance: Instance, limit: int) -> list[frozenset[int]]:
    """Return the convex sets of ops that keep to budget and rest within a limit."""
    n, k = instance.op_count, instance.k
    edges = list(zip(*(ends.tolist() for ends in instance.edges), strict=True))
    after: list[set[int]] = [set() for _ in range(n)]
    for u in reversed(instance.order.tolist()):
        for tail, head in edges:
            if tail == u:
                after[u] |= {head} | after[head]
    pins = [
        set(instance.pins[instance.pin_offsets[t] : instance.pin_offsets[t + 1]].tolist())
        for t in range(instance.tensor_count)
    ]
    total, found = int(instance.work.sum()), []
    for bits in range(1, 1 << n):
        ops = {v for v in range(n) if bits >> v & 1}
        outside = set(range(n)) - ops
        if any(after[x] & ops and any(x in after[u] for u in ops) for x in outside):
            continue
        work = sum(int(instance.work[v]) for v in ops)
        cut = sum(int(instance.transfer[t]) for t, own in enumerate(pins) if own & ops and own - ops)
        if work + cut <= limit and total - work + cut <= (k - 1) * limit:
            found.append(frozenset(ops))
    return found


def drawn_limit(seed: int) -> tuple[Instance, int]:
    """Return an instance of at most eight ops and a limit around its optimum."""
    graph = random_graph(seed, 4 + seed % 5, consumers_per_tensor=1.3)
    k = 2 + seed % 3
    optimum = oracles.brute_force_optimum(graph, LINK, k)
    return Instance.build(graph, Machine.uniform(k, LINK)), int(optimum * (0.8 + 0.1 * (seed % 4)))
