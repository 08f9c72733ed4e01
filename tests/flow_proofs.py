"""Proofs of bounds that rest on flows, made with networkx's maximum flow from the bounds' statements alone."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import networkx as nx
import oracles
from graph_strategies import random_graph
from plan_documents import embedded_document

from mtpp.graph import CostGraph
from mtpp.instance import Instance
from mtpp.solvers.reduction import merge_record, reduce_instance
from mtpp.system import System
from mtpp.verify_claim import BoundClaim
from mtpp.verify_graph import embedded_in_ticks
from mtpp.verify_merged import MergedGraph

SOURCE, SINK = "source", "sink"
MULTIPLIERS = [
    Fraction(0),
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(2, 3),
    Fraction(9, 10),
    Fraction(1),
    Fraction(7, 5),
]


def random_problem(seed: int, *, op_count: int | None = None) -> tuple[CostGraph, System, int, list[list[str]]]:
    """Make a small graph, a system with or without a fast memory, a number of stages, and groups kept together."""
    pick = random.Random(seed)
    graph = random_graph(
        seed,
        op_count or pick.randint(2, 6),
        time_unit="ps",
        largest_cost=pick.choice([5, 20, 100]),
        consumers_per_tensor=pick.choice([1, 1.5, 3]),
    )
    system = System("random", 1, 1, 10**12 // pick.choice([1, 2, 3]))
    if pick.random() < 0.4:
        params = sum(int(size) for size in graph.param_bytes)
        reserve = pick.choice([0, 7])
        fast = reserve + pick.randint(0, max(1, params // 2))
        limit = fast + pick.randint(0, params) if pick.random() < 0.3 else None
        system = System("random", 1, 1, 10**12 // 3, fast, reserve, pick.choice(["reserve", "order"]), limit)
    together = [pick.sample(list(graph.op_names), 2)] if pick.random() < 0.2 else []
    return graph, system, pick.randint(1, 5), together


def claim_of(
    graph: CostGraph, system: System, k: int, together: list[list[str]], value: int, proof: dict[str, Any]
) -> BoundClaim:
    """Return a claim on the graph in ticks."""
    ticks = embedded_in_ticks(embedded_document(graph, system, k))
    return BoundClaim(ticks, system.to_document(), k, together, value, proof)


def merges_of(graph: CostGraph, system: System, k: int) -> list[list[Any]]:
    """Return the merges that the reduction makes."""
    instance = Instance.build(graph, system, k)
    return merge_record(reduce_instance(instance), instance.first_members.tolist())


def weights(graph: MergedGraph, system: System, *, streamed: bool) -> tuple[list[int], int]:
    """Return the weights of groups and what the sum over a stage may be above its cost, transfers aside."""
    if not streamed:
        return list(graph.work), 0
    assert system.fast_memory_bytes is not None
    per_byte = Fraction(10**12, system.bandwidth_bytes_per_s)
    ticks = [int(size * per_byte) for size in graph.param_bytes]
    reserve = system.activation_reserve_bytes if system.peak == "reserve" else 0
    spare = oracles.ceil((system.fast_memory_bytes - reserve) * per_byte)
    return [work + extra for work, extra in zip(graph.work, ticks, strict=True)], spare


def name_of(graph: MergedGraph, group: int, pick: random.Random) -> int:
    """Return the number in the file of some op of a group."""
    return pick.choice([op for op, other in enumerate(graph.group_of) if other == group])


def least_flow(
    graph: MergedGraph, terminal: list[int], scale: int, here: int, pick: random.Random
) -> tuple[int, list[list[int]]]:
    """Return min over S with *here* of Σ terminals + scale · cut(S), by brute force, and a flow that proves it."""
    network = nx.DiGraph()
    network.add_nodes_from([SOURCE, SINK])
    network.add_edge(SOURCE, ("op", here))
    for group, ticks in enumerate(terminal):
        if group != here and ticks > 0:
            network.add_edge(("op", group), SINK, capacity=ticks)
        if group != here and ticks < 0:
            network.add_edge(SOURCE, ("op", group), capacity=-ticks)
    for t, (transfer, producer, consumers) in enumerate(graph.tensors):
        network.add_edge(("in", t), ("out", t), capacity=scale * transfer)
        for group in (producer, *consumers):
            network.add_edge(("op", group), ("in", t))
            network.add_edge(("out", t), ("op", group))
    _, flow = nx.maximum_flow(network, SOURCE, SINK)
    rows = []
    for t, (_, producer, consumers) in enumerate(graph.tensors):
        row = [t]
        for group in (producer, *consumers):
            amount = flow["op", group]["in", t] - flow["out", t]["op", group]
            if amount != 0:
                row += [name_of(graph, group, pick), amount]
        if len(row) > 1:
            rows.append(row)
    return _least(graph, terminal, scale, here), rows


def _least(graph: MergedGraph, terminal: list[int], scale: int, here: int) -> int:
    n = len(terminal)
    best = None
    for chosen in range(1 << n):
        if chosen >> here & 1:
            cost = sum(ticks for group, ticks in enumerate(terminal) if chosen >> group & 1)
            for transfer, producer, consumers in graph.tensors:
                sides = {chosen >> group & 1 for group in (producer, *consumers)}
                cost += scale * transfer * (len(sides) == 2)
            best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def node_proof(
    graph: MergedGraph, system: System, here: int, merges: list[list[Any]], pick: random.Random
) -> tuple[int, dict[str, Any]]:
    """Return the bound of one group and its proof, with streamed parameters if there is a fast memory to exceed."""
    streamed = system.fast_memory_bytes is not None and pick.random() < 0.7
    weight, spare = weights(graph, system, streamed=streamed)
    least, flow = least_flow(graph, weight, 1, here, pick)
    proof = {"op": name_of(graph, here, pick), "streamed": streamed, "flow": flow, "drawn": []}
    return least - spare, proof | ({"merges": merges} if merges else {})


def fraction_proof(
    graph: MergedGraph, system: System, k: int, cutoff: int, merges: list[list[Any]], pick: random.Random
) -> tuple[bool, dict[str, Any]]:
    """Return whether the fraction bound shows by the :data:`MULTIPLIERS` that no partition is below the cutoff."""
    limit = cutoff - 1
    rows = []
    total, alone = Fraction(0), False
    for here, work in enumerate(graph.work):
        most, row = min(limit, sum(graph.work)), None
        for multiplier in MULTIPLIERS:
            for streamed in {False, system.fast_memory_bytes is not None}:
                p, q = multiplier.numerator, multiplier.denominator
                weight, spare = weights(graph, system, streamed=streamed)
                terminal = [p * weight[u] - q * graph.work[u] for u in range(len(weight))]
                least, flow = least_flow(graph, terminal, p, here, pick)
                largest = (p * (limit + spare) - least) // q
                if largest < most:
                    most, row = largest, [name_of(graph, here, pick), p, q, int(streamed), flow, [], []]
        if row is not None:
            rows.append(row)
        alone = alone or work > most
        total += Fraction(work, most) if 0 < work <= most else 0
    proof = {"cutoff": cutoff, "stages": k, "ops": rows}
    return alone or total > k, proof | ({"merges": merges} if merges else {})


def crossings_proof(
    graph: MergedGraph, system: System, k: int, cutoff: int, merges: list[list[Any]], pick: random.Random
) -> tuple[bool, dict[str, Any]]:
    """Return whether what crosses between stages shows that no partition is below the cutoff, and the proof."""
    streamed = system.fast_memory_bytes is not None and pick.random() < 0.7
    weight, spare = weights(graph, system, streamed=streamed)
    most, total, n = cutoff - 1 + spare, sum(weight), len(weight)
    edges = nx.DiGraph([(u, v) for _, u, readers in graph.tensors for v in readers])
    edges.add_nodes_from(range(n))
    before = [sum(weight[u] for u in nx.ancestors(edges, v) | {v}) for v in range(n)]
    after = [sum(weight[u] for u in nx.descendants(edges, v) | {v}) for v in range(n)]
    number = {kind: [0] * (k + 1) for kind in ("made", "read", "across")}
    steps: list[list[Any]] = []

    def windows() -> tuple[list[int], list[int]]:
        made, read, across = number.values()
        low, high = [], []
        for i in range(k + 1):
            high.append(min(total, i * most - sum(made[: i + 1]) - sum(read[: i + 1])))
            later = sum(made[i + 1 :])
            reading = max(sum(read[i + 1 :]), max(across[i], made[i]) + later)
            low.append(max(0, total - (k - i) * most + later + reading))
        return low, high

    def surely(i: int) -> tuple[set[int], set[int]]:
        low, high = windows()
        inside = {v for v in range(n) if i == k or (i > 0 and total - after[v] < low[i])}
        return inside, {v for v in range(n) if i == 0 or (i < k and before[v] > high[i])}

    def contradicts() -> bool:
        low, high = windows()
        crossing = zip(number["made"], number["read"], strict=True)
        if any(a > b for a, b in zip(low, high, strict=True)) or any(sum(both) > most for both in crossing):
            return True
        return any(set.intersection(*surely(i)) for i in range(k + 1))

    grown = True
    while grown and not contradicts():
        grown = False
        for kind, i in [(kind, i) for i in range(1, k + 1) for kind in number]:
            if (i == k and kind != "read") or (i == 1 and kind == "read") or contradicts():
                continue
            inside, outside = surely(i - 1 if kind == "read" else i)
            network = nx.DiGraph()
            network.add_edges_from([(SOURCE, v) for v in inside] + [(v, SINK) for v in outside])
            network.add_nodes_from([SOURCE, SINK])
            network.add_edges_from((v, u) for u, v in edges.edges)
            for t, (transfer, producer, readers) in enumerate(graph.tensors):
                if kind != "made" or producer in surely(i - 1)[1]:
                    network.add_edge(producer, ("tensor", t), capacity=transfer)
                    taking = [v for v in readers if kind != "read" or v in surely(i)[0]]
                    network.add_edges_from((("tensor", t), v) for v in taking)
            amount, flow = nx.maximum_flow(network, SOURCE, SINK)
            if amount > number[kind][i]:
                rows = []
                for t, (_, producer, _) in enumerate(graph.tensors):
                    given = flow.get(producer, {}).get(("tensor", t), 0)
                    taken = [(v, ticks) for v, ticks in flow.get(("tensor", t), {}).items() if ticks]
                    if given:
                        moves = [(producer, given), *((v, -ticks) for v, ticks in taken)]
                        rows.append([t, *(cell for u, ticks in moves for cell in (name_of(graph, u, pick), ticks))])
                back = [(v, u, flow[v][u]) for u, v in edges.edges if flow[v].get(u)]
                drawn = [[name_of(graph, v, pick), name_of(graph, u, pick), ticks] for v, u, ticks in back]
                steps.append([kind, i, amount, rows, drawn])
                number[kind][i] = amount
                grown = True
    proof = {"cutoff": cutoff, "stages": k, "streamed": streamed, "steps": steps}
    return contradicts(), proof | ({"merges": merges} if merges else {})


def mutated(value: Any, pick: random.Random) -> Any:
    """Return JSON values with one number changed, one row left out or doubled, or two rows swapped in part."""
    if isinstance(value, dict):
        key = pick.choice([key for key in value if value[key] != []] or list(value))
        return {**value, key: mutated(value[key], pick)}
    if isinstance(value, list) and value:
        i = pick.randrange(len(value))
        if isinstance(value[i], list) and pick.random() < 0.15:
            return value[:i] + value[i + 1 :] if pick.random() < 0.5 else [*value, value[i]]
        return [*value[:i], mutated(value[i], pick), *value[i + 1 :]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return pick.choice([value + 1, value - 1, value + pick.randint(-20, 20), 2 * value, -value, 0])
    return value
