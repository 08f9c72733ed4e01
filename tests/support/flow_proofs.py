"""Proofs of bounds that rest on flows, made with networkx from the bounds' statements alone, and relaxations."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import oracles
from graph_strategies import LINK, random_graph
from plan_documents import embedded_document

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.claim import BoundClaim, Verdict
from mtpp.checker.graph import TickGraph, embedded_in_ticks
from mtpp.checker.merged import MergedGraph
from mtpp.checker.relaxed import Relaxation as Said
from mtpp.checker.relaxed import relaxed_graph
from mtpp.errors import InputError
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation, relax
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.reduction.reduction import reduce_instance

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


def random_problem(seed: int, *, op_count: int | None = None) -> tuple[CostGraph, Device, int, list[list[str]]]:
    """Make a small graph, a system with or without a fast memory, a number of stages, and groups kept together."""
    pick = random.Random(seed)
    graph = random_graph(
        seed,
        op_count or pick.randint(2, 6),
        time_unit="ps",
        largest_cost=pick.choice([5, 20, 100]),
        consumers_per_tensor=pick.choice([1, 1.5, 3]),
    )
    system = Device("random", 1, 1, Link(10**12 // pick.choice([1, 2, 3])))
    if pick.random() < 0.4:
        params = sum(int(size) for size in graph.param_bytes)
        reserve = pick.choice([0, 7])
        fast = reserve + pick.randint(0, max(1, params // 2))
        limit = fast + pick.randint(0, params) if pick.random() < 0.3 else None
        system = Device("random", 1, 1, Link(10**12 // 3), fast, reserve, pick.choice(["reserve", "order"]), limit)
    together = [pick.sample(list(graph.op_names), 2)] if pick.random() < 0.2 else []
    return graph, system, pick.randint(1, 5), together


def grouped(graph: CostGraph, system: Device, k: int, together: list[list[str]]) -> tuple[Instance, list[list[int]]]:
    """Return the instance in which groups are merged, and their ops by number."""
    groups = [[graph.op_names.index(op) for op in group] for group in together]
    instance = Instance.build(graph, Machine.uniform(k, system))
    return contract(instance, groups).instance if groups else instance, groups


def claim_of(
    graph: CostGraph, system: Device, k: int, together: list[list[str]], value: int, proof: dict[str, Any]
) -> BoundClaim:
    """Return a claim on the graph in ticks."""
    ticks = embedded_in_ticks(embedded_document(graph, system, k))
    return BoundClaim(ticks, system.to_document(), k, together, value, proof)


class Drawn(NamedTuple):
    """A random problem, what its checker merges, and its optimum by brute force."""

    seed: int
    pick: random.Random
    graph: CostGraph
    system: Device
    k: int
    together: list[list[str]]
    merges: list[list[Any]]
    merged: MergedGraph
    optimum: int

    def verdict(self, bound: str, value: int, proof: dict[str, Any]) -> Verdict:
        """Check a bound by name."""
        return CHECKERS[bound](claim_of(self.graph, self.system, self.k, self.together, value, proof))


def drawn_problems(seeds: Iterable[int], *, reduced: bool = False) -> Iterator[Drawn]:
    """Draw a problem for each seed, on the graph as it is or *reduced*; the latter only without groups of ops."""
    for seed in seeds:
        graph, system, k, together = random_problem(seed)
        merges = merges_of(graph, system, k) if reduced and not together else []
        merged = claim_of(graph, system, k, together, 0, {"merges": merges}).merged()
        assert not isinstance(merged, str)
        groups = [[graph.op_names.index(name) for name in group] for group in together]
        optimum = oracles.brute_force_optimum(graph, system, k, groups)
        yield Drawn(seed, random.Random(seed), graph, system, k, together, merges, merged, optimum)


def judged(
    bound: str,
    graph: CostGraph,
    k: int,
    value: int,
    proof: dict[str, Any],
    system: Device = LINK,
    together: list[list[str]] | None = None,
) -> Verdict:
    """Check a bound by name on a graph, by default without memories."""
    return CHECKERS[bound](claim_of(graph, system, k, together or [], value, proof))


def true_after_changes(bound: str, seeds: Iterable[int], prove: Callable[..., tuple[bool, dict[str, Any]]]) -> int:
    """Change proofs of the optimum and of a tick more; return how many still pass, all of which have to be true."""
    passed = 0
    for drawn in drawn_problems(seeds):
        for cutoff in (drawn.optimum, drawn.optimum + 1) if drawn.optimum not in (0, oracles.NEVER) else ():
            _, proof = prove(drawn.merged, drawn.system, drawn.k, cutoff, [], drawn.pick)
            for _ in range(30):
                changed = mutated(copy.deepcopy(proof), drawn.pick)
                try:
                    holds = drawn.verdict(bound, changed["cutoff"], changed)[0]
                except InputError:
                    continue
                assert not holds or changed["cutoff"] <= drawn.optimum, (drawn.seed, changed)
                passed += holds
    return passed


def held_to_statements(
    bound: str, seeds: Iterable[int], prove: Callable[..., tuple[bool, dict[str, Any]]], tenths: int, *, reduced: bool
) -> Iterator[tuple[bool, bool, dict[str, Any], str]]:
    """Judge proofs made from the statement of a bound, around the optimum and some tenths of it.

    Each gives whether the statement holds, whether the proof passes, the proof, and words of the case. None passes
    above the optimum, and more than twenty of either verdict are there.
    """
    proven = {True: 0, False: 0}
    for drawn in drawn_problems(seeds, reduced=reduced):
        optimum = drawn.optimum
        cutoffs = {optimum, (tenths * optimum) // 10, optimum + 1} if optimum < oracles.NEVER else {1, 50}
        for cutoff in cutoffs - {0}:
            holds, proof = prove(drawn.merged, drawn.system, drawn.k, cutoff, drawn.merges, drawn.pick)
            passed, detail = drawn.verdict(bound, cutoff, proof)
            assert not passed or cutoff <= optimum, (drawn.seed, cutoff, detail)
            yield holds, passed, proof, f"seed {drawn.seed}, cutoff {cutoff}: {detail}"
            proven[passed] += 1
    assert min(proven.values()) > 20, proven


def merges_of(graph: CostGraph, system: Device, k: int) -> list[list[Any]]:
    """Return the merges that the reduction makes."""
    return reduce_instance(Instance.build(graph, Machine.uniform(k, system))).record()


def weights(graph: MergedGraph, system: Device, *, streamed: bool) -> tuple[list[int], int]:
    """Return the weights of groups and what the sum over a stage may be above its cost, transfers aside."""
    if not streamed:
        return list(graph.work), 0
    assert system.fast_memory_bytes is not None
    per_byte = Fraction(10**12, system.link.bandwidth_bytes_per_s)
    ticks = [int(size * per_byte) for size in graph.param_bytes]
    reserve = system.activation_reserve_bytes if system.peak == "reserve" else 0
    spare = oracles.ceil((system.fast_memory_bytes - reserve) * per_byte)
    return [work + extra for work, extra in zip(graph.work, ticks, strict=True)], spare


def name_of(graph: MergedGraph, group: int, pick: random.Random) -> int:
    """Return the number in the file of some op of a group."""
    return pick.choice([op for op, other in enumerate(graph.group_of) if other == group])


def edges_of(graph: MergedGraph) -> nx.DiGraph:
    """Return the edges between groups."""
    edges = nx.DiGraph([(u, v) for _, u, readers in graph.tensors for v in readers])
    edges.add_nodes_from(range(len(graph.work)))
    return edges


def drawn_by(edges: nx.DiGraph, here: int) -> list[tuple[int, int]]:
    """Return the pairs of groups of which a stage with *here* and the first one has the second one, by one edge."""
    pairs = [(u, x) for u, x in edges.edges if here in nx.descendants(edges, x)]
    return pairs + [(u, x) for x, u in edges.edges if here in nx.ancestors(edges, x)]


def apart_from(edges: nx.DiGraph, weight: list[int], here: int, most: int) -> list[int]:
    """Return the groups that are joined to *here* by paths that weigh more than a stage may."""
    apart = []
    for other in set(edges.nodes) - {here}:
        for first, last in ((here, other), (other, here)):
            if nx.has_path(edges, first, last):
                between = ({first} | nx.descendants(edges, first)) & ({last} | nx.ancestors(edges, last))
                if sum(weight[u] for u in between) > most:
                    apart.append(other)
    return apart


class Least(NamedTuple):
    """The least Σ terminals + scale · cut over what may be a stage with an op, and a flow that proves it."""

    value: int
    flow: list[list[int]]
    drawn: list[list[int]]


def least_flow(
    graph: MergedGraph,
    terminal: list[int],
    scale: int,
    here: int,
    pick: random.Random,
    draws: Sequence[tuple[int, int]] = (),
    apart: Sequence[int] = (),
) -> Least:
    """Return the least over all sets with *here*, with all that is drawn, without what is apart, by brute force."""
    network = nx.DiGraph()
    network.add_nodes_from([SOURCE, SINK])
    network.add_edge(SOURCE, ("op", here))
    for group, ticks in enumerate(terminal):
        if group in apart:
            network.add_edge(("op", group), SINK)
        elif group != here and ticks > 0:
            network.add_edge(("op", group), SINK, capacity=ticks)
        elif group != here and ticks < 0:
            network.add_edge(SOURCE, ("op", group), capacity=-ticks)
    for t, (transfer, producer, consumers) in enumerate(graph.tensors):
        network.add_edge(("in", t), ("out", t), capacity=scale * transfer)
        for group in (producer, *consumers):
            network.add_edge(("op", group), ("in", t))
            network.add_edge(("out", t), ("op", group))
    network.add_edges_from((("op", u), ("op", x)) for u, x in draws)
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
    given = [(u, x, flow["op", u]["op", x]) for u, x in draws if flow["op", u]["op", x]]
    drawn = [[name_of(graph, u, pick), name_of(graph, x, pick), ticks] for u, x, ticks in given]
    return Least(_least(graph, terminal, scale, here, draws, apart), rows, drawn)


def _least(
    graph: MergedGraph,
    terminal: list[int],
    scale: int,
    here: int,
    draws: Sequence[tuple[int, int]],
    apart: Sequence[int],
) -> int:
    best = None
    for chosen in range(1 << len(terminal)):
        inside = {group for group in range(len(terminal)) if chosen >> group & 1}
        if here in inside and not inside & set(apart) and all(x in inside for u, x in draws if u in inside):
            cost = sum(terminal[group] for group in inside)
            for transfer, producer, consumers in graph.tensors:
                cost += scale * transfer * (0 < len(inside & {producer, *consumers}) < len({producer, *consumers}))
            best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def node_proof(
    graph: MergedGraph, system: Device, here: int, merges: list[list[Any]], pick: random.Random
) -> tuple[int, dict[str, Any]]:
    """Return the bound of one group and its proof, with streamed parameters if there is a fast memory to exceed."""
    streamed = system.fast_memory_bytes is not None and pick.random() < 0.7
    weight, spare = weights(graph, system, streamed=streamed)
    draws = drawn_by(edges_of(graph), here) if pick.random() < 0.6 else []
    least = least_flow(graph, weight, 1, here, pick, draws)
    proof = {"op": name_of(graph, here, pick), "streamed": streamed, "flow": least.flow, "drawn": least.drawn}
    return least.value - spare, proof | ({"merges": merges} if merges else {})


def fraction_proof(
    graph: MergedGraph, system: Device, k: int, cutoff: int, merges: list[list[Any]], pick: random.Random
) -> tuple[bool, dict[str, Any]]:
    """Return whether the fraction bound shows by the :data:`MULTIPLIERS` that no partition is below the cutoff."""
    limit, edges, n = cutoff - 1, edges_of(graph), len(graph.work)
    paths_count = pick.random() < 0.6
    own = pick.random() < 0.4
    shares = [pick.randint(0, 9) for _ in range(n)] if own else list(graph.work)
    rows = []
    total, alone = Fraction(0), False
    for here in range(n):
        most, row = sum(shares) if own else min(limit, sum(shares)), None
        draws = drawn_by(edges, here) if paths_count else []
        for streamed in {False, system.fast_memory_bytes is not None}:
            weight, spare = weights(graph, system, streamed=streamed)
            # What is streamed free of charge is rounded up here and down by the verifier.
            apart = apart_from(edges, weight, here, limit + spare) if paths_count else []
            for multiplier in MULTIPLIERS:
                p, q = multiplier.numerator, multiplier.denominator
                terminal = [p * weight[u] - q * shares[u] for u in range(n)]
                least = least_flow(graph, terminal, p, here, pick, draws, apart)
                largest = (p * (limit + spare) - least.value) // q
                if largest < most:
                    names = [name_of(graph, other, pick) for other in apart]
                    row = [name_of(graph, here, pick), p, q, int(streamed), least.flow, least.drawn, names]
                    most = largest
        if row is not None:
            rows.append(row)
        alone = alone or shares[here] > most
        total += Fraction(shares[here], most) if 0 < shares[here] <= most else 0
    proof: dict[str, Any] = {"cutoff": cutoff, "stages": k, "ops": rows}
    if own:
        proof["weights"] = [[name_of(graph, u, pick), share] for u, share in enumerate(shares) if share]
    return alone or total > k, proof | ({"merges": merges} if merges else {})


def crossings_proof(
    graph: MergedGraph, system: Device, k: int, cutoff: int, merges: list[list[Any]], pick: random.Random
) -> tuple[bool, dict[str, Any]]:
    """Return whether what crosses between stages shows that no partition is below the cutoff, and the proof."""
    streamed = system.fast_memory_bytes is not None and pick.random() < 0.7
    weight, spare = weights(graph, system, streamed=streamed)
    most, total, n = cutoff - 1 + spare, sum(weight), len(weight)
    edges = edges_of(graph)
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


@dataclass(frozen=True)
class RelaxedProblem:
    """A problem, a relaxation of its instance, and the verifier's graph before and after it."""

    graph: CostGraph
    system: Device
    k: int
    groups: list[list[int]]
    relaxation: Relaxation
    said: dict[str, Any]
    whole: TickGraph
    relaxed: TickGraph

    def assignments(self, pick: random.Random, most: int) -> Iterator[list[int]]:
        """Yield up to *most* random assignments of the graph's ops that keep edges and groups."""
        found = [
            list(stages)
            for stages in oracles.monotone_assignments(self.graph, self.k)
            if all(len({stages[v] for v in group}) == 1 for group in self.groups)
        ]
        yield from pick.sample(found, min(most, len(found)))

    def whole_partition(self, stages: list[int]) -> Partition:
        """Return a partition of the instance with all ops, given the stages of the graph's ops."""
        original = self.relaxation.original
        of_op = stages if original.ground is None else [stages[m] for m in original.first_members.tolist()]
        return Partition.from_stages(original, of_op)

    def restricted(self, partition: Partition) -> Partition:
        """Return a partition of all ops without those left out."""
        return Partition.from_stages(self.relaxation.instance, partition.assignment[self.relaxation.kept])


def relaxed_problem(seed: int) -> RelaxedProblem:
    """Draw a problem of up to 6 ops, with memories and groups, and leave some of its ops out."""
    pick = random.Random(seed)
    graph, system, k, together = random_problem(seed, op_count=pick.randint(2, 6))
    k = min(k, 4)
    instance, groups = grouped(graph, system, k, together)
    transfer = Instance.build(graph, Machine.uniform(k, system)).transfer.tolist()
    lowered = {t: pick.randint(0, ticks) for t, ticks in enumerate(transfer) if pick.random() < 0.2}
    left_out = np.array([pick.random() < 0.5 for _ in range(instance.op_count)], dtype=np.bool_)
    left_out[pick.randrange(instance.op_count)] = False
    relaxation = relax(instance, left_out, lowered)
    said = relaxation.record(dict(enumerate(graph.tensor_names)))
    whole = claim_of(graph, system, k, together, 0, {}).graph
    relaxed = relaxed_graph(whole, Said(**said))
    assert isinstance(relaxed, TickGraph), relaxed
    return RelaxedProblem(graph, system, k, groups, relaxation, said, whole, relaxed)
