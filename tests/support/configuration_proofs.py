"""Proofs of configuration bounds on small graphs, made from the bound's statement alone by trying all sets of ops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from flow_proofs import SINK, SOURCE, name_of, weights
from networkx.algorithms.flow import edmonds_karp
from scipy.optimize import linprog

from mtpp.checker.merged import MergedGraph
from mtpp.machine.device import Device

Tree = list[Any]
State = tuple[frozenset[int], frozenset[int]]
"""Ops that every set of a family holds, and that none does."""


@dataclass
class Problem:
    """What a set of ops has to be like to be a stage of a partition below a cutoff.

    Attributes
    ----------
    most
        M: the weight of a stage and what it cuts are no more.
    reach
        Pairs of ops, of which the first leads to the second or is it.
    """

    graph: MergedGraph
    weight: list[int]
    most: int
    k: int
    reach: set[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        """Follow the edges."""
        n = len(self.weight)
        network = nx.DiGraph(self.edges)
        network.add_nodes_from(range(n))
        self.reach = {(u, v) for u in range(n) for v in {u, *nx.descendants(network, u)}}

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of a producer and a reader."""
        return sorted({(producer, v) for _, producer, consumers in self.graph.tensors for v in consumers})

    @property
    def rest(self) -> int:
        """What all stages but one may weigh at most."""
        return (self.k - 1) * self.most

    def cut(self, ops: frozenset[int]) -> int:
        """Return the transfers that a set cuts."""
        return sum(
            transfer
            for transfer, producer, consumers in self.graph.tensors
            if ops & {producer, *consumers} and not ops >= {producer, *consumers}
        )

    def between(self, ops: frozenset[int]) -> frozenset[int]:
        """Return a set with all that lies between its ops."""
        n = len(self.weight)
        return frozenset(
            x for x in range(n) if any((u, x) in self.reach for u in ops) and any((x, v) in self.reach for v in ops)
        )

    def weigh(self, ops: frozenset[int]) -> int:
        """Return the weight of a set."""
        return sum(self.weight[u] for u in ops)

    def stages(self) -> Iterator[frozenset[int]]:
        """Yield the sets that can be stages."""
        n = len(self.weight)
        for chosen in range(1, 1 << n):
            ops = frozenset(u for u in range(n) if chosen >> u & 1)
            weight, cut = self.weigh(ops), self.cut(ops)
            if weight + cut <= self.most and sum(self.weight) - weight + cut <= self.rest and self.between(ops) == ops:
                yield ops

    def apart(self, inside: frozenset[int], outside: frozenset[int]) -> list[int]:
        """Return the tensors of which no set of a family holds all ops, by the rules in any order."""
        found: list[int] = []
        while True:
            spare = self.spare(inside, found)
            more = [
                t
                for t, (_, producer, consumers) in enumerate(self.graph.tensors)
                if t not in found
                and len({producer, *consumers}) > 1
                and not {producer, *consumers} <= inside
                and (
                    outside & (drawn := self.between(inside | {producer, *consumers}))
                    or self.weigh(drawn - inside) > spare
                )
            ]
            if not more:
                return found
            found += more

    def paid(self, ops: frozenset[int], apart: list[int]) -> int:
        """Return the transfers of tensors apart that a set touches."""
        return sum(
            self.graph.tensors[t][0] for t in apart if ops & {self.graph.tensors[t][1], *self.graph.tensors[t][2]}
        )

    def spare(self, inside: frozenset[int], apart: list[int]) -> int:
        """Return what is left for ops beside those inside."""
        return self.most - self.weigh(inside) - self.paid(inside, apart)

    def closed(self, state: State) -> State | None:
        """Apply the rules of closure in any order until nothing changes; None if the family is empty by them."""
        inside, outside = set(state[0]), set(state[1])
        n, reach = len(self.weight), self.reach
        while True:
            before = len(inside), len(outside)
            held = frozenset(inside)
            inside |= self.between(held)
            for x in range(n):
                for y in outside.copy():
                    if (x, y) in reach and any((y, z) in reach for z in held):
                        outside.add(x)
                    if (y, x) in reach and any((z, y) in reach for z in held):
                        outside.add(x)
            held = frozenset(inside)
            apart = self.apart(held, frozenset(outside))
            spare = self.spare(held, apart)
            for x in set(range(n)) - inside - outside:
                dear = self.weight[x] + self.paid(held | {x}, apart) - self.paid(held, apart)
                if self.weigh(self.between(held | {x}) - held) > spare or dear > spare:
                    outside.add(x)
            allowed = frozenset(range(n)) - outside
            least = sum(self.weight) - self.rest + self.paid(held, apart)
            if inside & outside or spare < 0 or self.weigh(allowed) < least:
                return None
            if before == (len(inside), len(outside)):
                return frozenset(inside), frozenset(outside)


class Maker:
    """Makes the proof of one problem.

    Attributes
    ----------
    value, capacity
        Y and Z: no stage holds more than Z. None if there are none of which k stages cannot hold all.
    """

    def __init__(self, problem: Problem, pick: random.Random, denominator: int, scale: int) -> None:
        self.problem = problem
        self.pick = pick
        self.denominator = denominator
        n = len(problem.weight)
        stages = list(problem.stages())
        self.capacity = scale
        self.value: list[int] | None = [scale] * n
        if stages:
            rows = np.array([[u in ops for u in range(n)] for ops in stages], dtype=float)
            found = linprog(-np.ones(n), rows, np.ones(len(stages)), bounds=(0, problem.k + 1))
            self.value = [max(0, int(share * scale)) for share in found.x]
            self.capacity = max(sum(self.value[u] for u in ops) for ops in stages)
        if sum(self.value) <= problem.k * self.capacity:
            self.value = None

    def proof(self) -> dict[str, Any]:
        """Return weights, capacity and families with their trees."""
        assert self.value is not None
        problem, pick = self.problem, self.pick
        order = [u for u, value in enumerate(self.value) if value]
        rest = set(range(len(self.value))) - set(order)
        order += pick.sample(sorted(rest), pick.randint(0, len(rest)))
        pick.shuffle(order)
        while (
            order
            and problem.weigh(frozenset(range(len(self.value))) - set(order[:-1])) < sum(problem.weight) - problem.rest
        ):
            order.pop()
        families = []
        for i, op in enumerate(order):
            state = problem.closed((frozenset([op]), frozenset(order[:i])))
            families.append([self._name(op), self._tree(state)])
        return {
            "capacity": self.capacity,
            "denominator": self.denominator,
            "weights": [[self._name(u), value] for u, value in enumerate(self.value) if value],
            "families": families,
        }

    def _name(self, op: int) -> int:
        return name_of(self.problem.graph, op, self.pick)

    def _tree(self, state: State | None) -> Tree:
        if state is None:
            return ["none"]
        leaf = self._leaf(state)
        if leaf is not None:
            return leaf
        inside, outside = state
        op = self.pick.choice(sorted(set(range(len(self.problem.weight))) - inside - outside))
        return [
            "split",
            self._name(op),
            self._tree(self.problem.closed((inside | {op}, outside))),
            self._tree(self.problem.closed((inside, outside | {op}))),
        ]

    def _leaf(self, state: State) -> Tree | None:
        problem, d = self.problem, self.denominator
        step = max(1, self.capacity * d // max(1, problem.most))
        pairs = [(0, 0), (step, 0), (0, step), (step // 2, 0), (step // 2, step // 3), (2 * step, step)]
        self.pick.shuffle(pairs)
        huge = 100 * (self.capacity + 1) * d * len(problem.weight)
        for a, b in [*pairs, (huge, 0), (0, huge)]:
            constant = -(-a * problem.most // d) - (-b * (problem.rest - sum(problem.weight)) // d)
            if self.pick.random() < 0.7:
                shared = self._shared(state, a, b)
                if constant + shared <= self.capacity:
                    return ["shares", a, b, *self._some_shares(state, a, b)]
            least, flow = self._flow(state, a, b)
            if constant + least <= self.capacity:
                return ["leaf", a, b, flow]
        return None

    def _shared(self, state: State, a: int, b: int) -> int:
        """Return what a family's sets have at most if tensors apart are shared out equally and others are free."""
        assert self.value is not None
        problem, d = self.problem, self.denominator
        inside, outside = state
        apart = problem.apart(inside, outside)
        gain = {
            u: value - (a - b) * weight // d
            for u, (value, weight) in enumerate(zip(self.value, problem.weight, strict=True))
        }
        paid = 0
        for t in apart:
            transfer, producer, consumers = problem.graph.tensors[t]
            touching = {producer, *consumers}
            capacity = (a + b) * transfer // d
            if touching & inside:
                paid += capacity
                continue
            for u in touching - outside:
                gain[u] -= capacity if len(touching) == 2 else capacity // len(touching - outside)
        free = [max(0, gain[u]) for u in gain if u not in inside | outside]
        return sum(gain[u] for u in inside) + sum(free) - paid

    def _some_shares(self, state: State, a: int, b: int) -> list[Any]:
        """Return rows of equal shares for some of the tensors that have none without."""
        problem, d = self.problem, self.denominator
        inside, outside = state
        rows = []
        for t in problem.apart(inside, outside):
            transfer, producer, consumers = problem.graph.tensors[t]
            free = sorted({producer, *consumers} - outside)
            if not {producer, *consumers} & inside and len({producer, *consumers}) > 2 and self.pick.random() < 0.5:
                share = (a + b) * transfer // d // len(free) if free else 0
                rows.append([t, *(number for u in free for number in (self._name(u), share))])
        return [rows, []]

    def _flow(self, state: State, a: int, b: int) -> tuple[int, list[Any]]:
        assert self.value is not None
        problem, d = self.problem, self.denominator
        inside, outside = state
        network = nx.DiGraph()
        network.add_nodes_from([SOURCE, SINK])
        most = 0
        for u, (value, weight) in enumerate(zip(self.value, problem.weight, strict=True)):
            gain = value - (a - b) * weight // d
            network.add_node(("op", u))
            if u in inside:
                network.add_edge(SOURCE, ("op", u))
                most += gain
            elif u in outside:
                network.add_edge(("op", u), SINK)
            elif gain > 0:
                network.add_edge(SOURCE, ("op", u), capacity=gain)
                most += gain
            elif gain < 0:
                network.add_edge(("op", u), SINK, capacity=-gain)
        for t, (transfer, producer, consumers) in enumerate(problem.graph.tensors):
            network.add_edge(("in", t), ("out", t), capacity=(a + b) * transfer // d)
            for u in (producer, *consumers):
                network.add_edge(("op", u), ("in", t))
                network.add_edge(("out", t), ("op", u))
        for u, v in problem.edges:
            if any((v, z) in problem.reach for z in inside):
                network.add_edge(("op", u), ("op", v))
            if any((z, u) in problem.reach for z in inside):
                network.add_edge(("op", v), ("op", u))
        total, flow = nx.maximum_flow(network, SOURCE, SINK, flow_func=edmonds_karp)
        rows, arcs = [], []
        for t, (_, producer, consumers) in enumerate(problem.graph.tensors):
            row = [t]
            for u in (producer, *consumers):
                amount = flow["op", u]["in", t] - flow["out", t]["op", u]
                if amount != 0:
                    row += [self._name(u), amount]
            if len(row) > 1:
                rows.append(row)
        for u in range(len(problem.weight)):
            for end, amount in flow["op", u].items():
                if end[0] == "op" and amount > 0:
                    arcs.append([self._name(u), self._name(end[1]), amount])
        return most - total, [rows, arcs]


def configuration_proof(
    graph: MergedGraph, system: Device, k: int, cutoff: int, merges: list[list[Any]], pick: random.Random
) -> dict[str, Any] | None:
    """Return a proof that no partition is below the cutoff; None if the configuration bound is no more than it."""
    streamed = system.fast_memory_bytes is not None and pick.random() < 0.7
    weight, spare = weights(graph, system, streamed=streamed)
    problem = Problem(graph, weight, cutoff - 1 + spare, k)
    maker = Maker(problem, pick, pick.choice([1, 7, 1000]), pick.choice([60, 10_000, 10**9]))
    if maker.value is None:
        return None
    proof = {"cutoff": cutoff, "stages": k, "streamed": streamed, **maker.proof()}
    return proof | ({"merges": merges} if merges else {})
