"""Proofs by downset search, from the oracles alone: every downset and every pair of them, all costs by definition."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import oracles
from graph_strategies import LINK, random_graph
from plan_documents import embedded_document

from mtpp.checker.claim import together_classes
from mtpp.checker.graph import TickGraph, embedded_in_ticks
from mtpp.checker.merged import MergedGraph
from mtpp.checker.merges import replay_merges
from mtpp.checker.report import Outcome
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.solvers.recheck.claim import DownsetClaim
from mtpp.solvers.recheck.downset import recheck_downset

Groups = tuple[frozenset[int], ...]


def singles(graph: CostGraph) -> Groups:
    """Return each op as a group of its own."""
    return tuple(frozenset([v]) for v in range(graph.op_count))


def downset_proof(
    graph: CostGraph,
    system: Device,
    k: int,
    cutoff: int,
    rules: Sequence[str],
    groups: Groups | None = None,
    shares: tuple[Sequence[int], int] | None = None,
) -> dict[str, Any] | None:
    """Return the proof that no partition into k stages stays below *cutoff*, without merges; None if one does.

    Parameters
    ----------
    groups
        Ops that share a stage, by their first op in the file, each op in one group; for at most 8 groups.
    shares
        Weights of the groups, and the most of them that a stage holds; None: any.
    """
    search = _Search(graph, system, k, cutoff, groups or singles(graph))
    search.shares = shares
    return search.run(rules)


class _Search:
    """Sets of groups of ops are frozensets of their numbers."""

    def __init__(self, graph: CostGraph, system: Device, k: int, cutoff: int, groups: Groups) -> None:
        self.graph, self.system, self.asked, self.cutoff, self.groups = graph, system, k, cutoff, groups
        self.shares: tuple[Sequence[int], int] | None = None
        self.k, self.limit = min(k, len(groups)), cutoff - 1
        self.all = frozenset(range(len(groups)))
        home = {v: g for g, ops in enumerate(groups) for v in ops}
        ticks = oracles.to_ticks(graph, system, k)
        self.work = [sum(ticks.work[v] for v in ops) for ops in groups]
        self.tensors = [
            (cost, home[u], frozenset(home[v] for v in readers) - {home[u]})
            for cost, (u, readers) in zip(ticks.transfer, oracles.tensors_of(graph), strict=True)
        ]
        self.before = [frozenset(u for _, u, readers in self.tensors if v in readers) for v in range(len(groups))]
        self.figures = lru_cache(maxsize=None)(self._figures)

    def _figures(self, stage: frozenset[int]) -> dict[str, int]:
        return oracles.stage_figures(self.graph, self.system, [v for g in stage for v in self.groups[g]], self.asked)

    def allowed(self, stage: frozenset[int]) -> bool:
        figures, limit = self.figures(stage), self.system.memory_bytes
        held = figures["param_bytes"] + figures["peak_bytes"]
        return figures["cost"] <= self.limit and (limit is None or held <= limit)

    def downsets(self) -> Iterator[frozenset[int]]:
        for mask in range(1 << len(self.groups)):
            ops = frozenset(v for v in self.all if mask >> v & 1)
            if all(self.before[v] <= ops for v in ops):
                yield ops

    def crossing(self, source: frozenset[int], target: frozenset[int]) -> int:
        return sum(cost for cost, u, readers in self.tensors if u in source and readers & target)

    def work_of(self, ops: frozenset[int]) -> int:
        return sum(self.work[v] for v in ops)

    def giver(self, v: int) -> bool:
        saved = self.work[v] + sum(cost for cost, _, readers in self.tensors if readers == {v})
        return saved >= sum(cost for cost, u, readers in self.tensors if u == v and readers)

    def accepted(self, before: frozenset[int], after: frozenset[int], level: int, rules: Sequence[str]) -> bool:
        stage, rest, left = after - before, self.all - after, self.k - level - 1
        if not stage or not before <= after or not self.allowed(stage):
            return False
        due = self.work_of(rest) + self.crossing(after, rest) + 2 * sum(self.least[level + 2 :])
        if due > left * self.limit:
            return False
        memory, reserve = self.system.memory_bytes, self.system.activation_reserve_bytes
        params = sum(int(self.graph.param_bytes[v]) for g in rest for v in self.groups[g])
        if memory is not None and params > left * (memory - (reserve if self.system.peak == "reserve" else 0)):
            return False
        if self.shares is not None:
            weights, capacity = self.shares
            if sum(weights[v] for v in stage) > capacity or sum(weights[v] for v in rest) > left * capacity:
                return False
        ready = [v for v in rest if self.before[v] <= after]
        return "maximal" not in rules or not any(self.giver(v) and self.allowed(stage | {v}) for v in ready)

    def run(self, rules: Sequence[str]) -> dict[str, Any] | None:
        self.least = [0] * (self.k + 1)
        downsets = list(self.downsets())
        if self.allowed(self.all):
            return None
        feasible = "crossings" not in rules or self.find_crossings(downsets)
        level, pairs = {frozenset[int](): 0}, 0
        if self.shares is not None:
            feasible = feasible and sum(self.shares[0]) <= self.k * self.shares[1]
        for j in range(self.k - 1 if feasible else 0):
            for before in [ops for ops, reached in level.items() if reached == j]:
                for after in downsets:
                    if self.accepted(before, after, j, rules):
                        pairs += 1
                        level.setdefault(after, j + 1)
        if any(ops and self.allowed(self.all - ops) for ops in level):
            return None
        return {
            "merges": [],
            "cutoff": self.cutoff,
            "k": self.asked,
            "rules": list(rules),
            "downsets": len(level),
            "pairs": pairs,
            "digest": hashlib.sha256(b"".join(sorted(self.record(*item) for item in level.items()))).hexdigest(),
        }

    def record(self, ops: frozenset[int], level: int) -> bytes:
        bits = [1 if v in ops else 0 for v in range(-(-len(self.groups) // 8) * 8)]
        packed = [sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8)]
        return bytes([level >> 24 & 255, level >> 16 & 255, level >> 8 & 255, level & 255, *packed])

    def find_crossings(self, downsets: list[frozenset[int]]) -> bool:
        """Set what has to cross from each stage at least; return False if there can be no partition."""
        upto = [min(self.work_of(d) for d in downsets if v in d) for v in range(len(self.groups))]
        onward = [min(self.work_of(self.all - d) for d in downsets if v not in d) for v in range(len(self.groups))]
        total = sum(self.work)
        for _ in range(8):
            windows = self.windows()
            if any(low > high for low, high in windows):
                return False
            found = list(self.least)
            for i, ((_, earlier), (low, high)) in enumerate(pairwise(windows), start=1):
                if i == self.k:
                    break
                inside = {v for v in self.all if total - onward[v] < low}
                outside = {v for v in self.all if upto[v] > high}
                new = frozenset(v for v in self.all if upto[v] > earlier)
                cuts = [self.crossing(d & new, self.all - d) for d in downsets if inside <= d and not outside & d]
                if not cuts or min(cuts) > self.limit:
                    return False
                found[i] = max(found[i], min(cuts))
            if found == self.least:
                break
            self.least = found
        return all(low <= high for low, high in self.windows())

    def windows(self) -> list[tuple[int, int]]:
        total, least = sum(self.work), self.least
        lows = [total - (self.k - i) * self.limit + least[i] + 2 * sum(least[i + 1 :]) for i in range(self.k + 1)]
        highs = [i * self.limit - sum(least[: i + 1]) for i in range(self.k + 1)]
        return [(max(0, low), min(total, high)) for low, high in zip(lows, highs, strict=True)]


RULES = (["fit"], ["fit", "maximal"], ["crossings", "fit"], ["crossings", "fit", "maximal"])


class Case(NamedTuple):
    """A small problem, with what a verifier reads of it."""

    graph: CostGraph
    system: Device
    k: int
    groups: Groups
    ticks: TickGraph
    merged: MergedGraph
    optimum: int

    @property
    def document(self) -> dict[str, Any]:
        """The system as in a plan."""
        return self.system.to_document()

    @property
    def rules(self) -> list[list[str]]:
        """Lists of rules that a proof may go by."""
        memories = (self.system.fast_memory_bytes, self.system.memory_bytes)
        counted = self.system.peak == "order" and any(size is not None for size in memories)
        return [rules for rules in RULES if not (counted and "maximal" in rules)]

    def proof(self, cutoff: int, rules: Sequence[str]) -> dict[str, Any] | None:
        """Return the oracle's proof."""
        return downset_proof(self.graph, self.system, self.k, cutoff, rules, self.groups)

    def claim(self, cutoff: int, rules: Sequence[str]) -> DownsetClaim:
        """Return what such a proof claims."""
        return DownsetClaim.of(self.merged, self.ticks, self.document, self.k, cutoff, rules)

    def recheck(self, proof: dict[str, Any], *, value: int | None = None, k: int | None = None) -> Outcome:
        """Run a search again."""
        value = proof["cutoff"] if value is None else value
        return recheck_downset(self.merged, self.ticks, self.document, k or self.k, value, proof)


def random_case(seed: int, most_ops: int = 7) -> Case | None:
    """Make a random problem, with memories or without, some with ops that share a stage; None if it is infeasible."""
    pick = random.Random(seed)
    timed = pick.random() < 0.7
    graph = random_graph(
        seed,
        pick.randint(1, most_ops),
        time_unit="ps" if timed else "1",
        largest_cost=pick.choice([3, 20, 100]),
        consumers_per_tensor=pick.choice([1, 1.5, 3]),
    )
    system = Device("s", 1, 1, Link(10**12 // pick.choice([1, 3, 7])))
    if pick.random() < 0.6:
        params = sum(int(size) for size in graph.param_bytes)
        system = replace(
            system,
            peak=pick.choice(["reserve", "order"]),
            activation_reserve_bytes=pick.choice([0, 5, 20]),
            fast_memory_bytes=pick.randint(20, 20 + params)
            if graph.time_unit == "ps" and pick.random() < 0.7
            else None,
            memory_bytes=pick.randint(20, 40 + params) if pick.random() < 0.6 else None,
        )
    k = pick.randint(1, 5)
    together = [pick.sample(list(graph.op_names), 2)] if graph.op_count > 2 and pick.random() < 0.3 else []
    return _case(graph, system, k, together)


def narrow_case(seed: int, most_ops: int = 8) -> Case:
    """Make a path with tensors past some of its ops, on which much is certain to cross between stages."""
    pick = random.Random(seed)
    count = pick.randint(4, most_ops)
    ops = [Op(f"op{v}", pick.randint(1, 20)) for v in range(count)]
    tensors = []
    for v in range(count - 1):
        past = (f"op{v + 3}",) if v % 3 == 0 and v + 3 < count else ()
        tensors.append(Tensor(f"t{v}", f"op{v}", (f"op{v + 1}", *past), None, pick.randint(0, 12)))
    graph = CostGraph.build(name="narrow", time_unit="1", ops=ops, tensors=tensors)
    return plain_case(graph, pick.randint(2, 4))


def plain_case(graph: CostGraph, k: int, system: Device = LINK) -> Case:
    """Make a problem without groups."""
    case = _case(graph, system, k, [])
    assert case is not None
    return case


def _case(graph: CostGraph, system: Device, k: int, together: list[list[str]]) -> Case | None:
    ticks = embedded_in_ticks(embedded_document(graph, system, k))
    classes = together_classes(ticks, together)
    members: dict[int, set[int]] = {}
    for v, number in enumerate(classes):
        members.setdefault(number, set()).add(v)
    groups = tuple(frozenset(ops) for ops in members.values())
    merged = replay_merges(ticks, classes, system.to_document(), [])
    assert not isinstance(merged, str)
    optimum = oracles.brute_force_optimum(graph, system, k, groups) if graph.op_count <= 8 else 0
    return None if optimum >= oracles.NEVER else Case(graph, system, k, groups, ticks, merged, optimum)
