"""Searches for weights that no stage can exceed, on small graphs with their optima, and what has to hold of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from typing import Any, Protocol

import oracles
from flow_proofs import claim_of
from graph_strategies import LINK, merging_graph, random_graph, with_costs

from mtpp.checker.bounds.registry import CHECKERS
from mtpp.checker.claim import Verdict
from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.frontier.scan import TooManyStates
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder, scan_orders
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.bounds.relaxed_race import LimitSearch
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance


class Begins(Protocol):
    """Makes a search along an order."""

    def __call__(self, order: ScanOrder, limits: BoundLimits) -> LimitSearch:
        """Begin."""


@dataclass(frozen=True)
class Searched:
    """A small problem, as it is or reduced, with its optimum by brute force, and an order of its ops."""

    seed: int
    graph: CostGraph
    system: Device
    k: int
    reduced: ReducedInstance
    order: ScanOrder
    optimum: int

    @property
    def instance(self) -> Instance:
        """The instance that is searched."""
        return self.order.instance

    def verdict(self, method: str, search: LimitSearch) -> Verdict:
        """Check the proof of what was reached."""
        proof: dict[str, Any] = json.loads(json.dumps(search.document()))
        if self.reduced.rounds:
            proof["merges"] = self.reduced.record()
        return CHECKERS[method](claim_of(self.graph, self.system, self.k, [], search.reached + 1, proof))

    def hold(self, method: str, search: LimitSearch, known: int) -> bool:
        """Check what a search has come to; tell whether there is a proof, which passes."""
        assert search.reached < self.optimum, self.seed
        if search.partition is not None:
            costs = stage_costs(self.instance, search.partition)
            assert self.optimum <= costs.bottleneck < known, self.seed
            assert keeps_stage_memory(self.instance, costs), self.seed
        if search.reached < 0:
            return False
        passes, why = self.verdict(method, search)
        assert passes, (self.seed, why)
        return True


def searched(seeds: Sequence[int]) -> Iterator[Searched]:
    """Draw problems of up to 8 ops: hyperedges, ties, zeros and large costs, memories, 2 to 5 stages."""
    for seed in seeds:
        pick = random.Random(seed)
        n, unit = pick.randint(1, 8), pick.choice(("1", "ps"))
        if pick.random() < 0.4:
            graph = merging_graph(seed, n, time_unit=unit, largest_params=pick.choice((0, 60)))
        else:
            largest, spread = pick.choice((0, 1, 3, 20, 200)), pick.choice((0.8, 1.5, 3.0))
            graph = random_graph(seed, n, time_unit=unit, largest_cost=largest, consumers_per_tensor=spread)
        factor = pick.choice((1, 1, 1, 10**9))
        graph = with_costs(graph, partial(mul, factor))
        system = _system(pick, unit)
        k = pick.randint(2, 5)
        try:
            instance = Instance.build(graph, Machine.uniform(k, system))
        except InputError:
            continue
        optimum, _ = oracles.best_partition(graph, system, k)
        if optimum < oracles.NEVER:
            reduced = reduce_instance(instance) if pick.random() < 0.4 else ReducedInstance(instance)
            order = pick.choice(scan_orders(reduced.instance))
            yield Searched(seed, graph, system, k, reduced, order, optimum)


def _system(pick: random.Random, unit: str) -> Device:
    system = LINK
    if unit != "1" and pick.random() < 0.4:
        fast = pick.randint(0, 150)
        reserve, peak = pick.randint(0, fast), pick.choice(("reserve", "order"))
        system = replace(system, fast_memory_bytes=fast, activation_reserve_bytes=reserve, peak=peak)
    if pick.random() < 0.2:
        system = replace(system, memory_bytes=system.activation_reserve_bytes + pick.randint(20, 300))
    return system


def hold_around_optimum(method: str, begin: Begins, seeds: Sequence[int]) -> tuple[int, int]:
    """Search below limits around the optimum; return how many searches there were, and how many proved all."""
    tried = met = 0
    for case in searched(seeds):
        pick = random.Random(case.seed)
        for known in {case.optimum, case.optimum + 1, case.optimum + pick.randint(2, 9 + case.optimum // 3)}:
            search = begin(case.order, BoundLimits(known))
            search.run(BoundLimits(known, deadline=Deadline(5)))
            case.hold(method, search, known)
            assert search.ended
            tried += 1
            met += search.reached + 1 == case.optimum
    return tried, met


def hold_when_resumed(method: str, begin: Begins, seeds: Sequence[int]) -> int:
    """Go on with little time each, with what others find in between; return how many proofs pass in the end."""
    passed = 0
    for case in searched(seeds):
        pick = random.Random(case.seed)
        known = case.optimum + pick.randint(0, 2 + case.optimum // 3)
        search = begin(case.order, BoundLimits(known))
        lower, target, before = 0, known, -1
        for _ in range(pick.randint(2, 8)):
            deadline = Deadline(pick.choice((0, 0, 1e-4, 1e-3, 1e-2)))
            search.run(BoundLimits(target, lower=lower, deadline=deadline))
            assert before <= search.reached < case.optimum
            before = search.reached
            if pick.random() < 0.5:
                search.put_off()
            if pick.random() < 0.3:
                target = max(case.optimum, target - pick.randint(0, 3))
            if pick.random() < 0.3:
                lower = pick.randint(lower, case.optimum)
        search.run(BoundLimits(target, lower=lower, deadline=Deadline(10)))
        assert search.ended, case.seed
        passed += case.hold(method, search, known)
    return passed


def hold_when_stopped(method: str, begin: Begins, seeds: Sequence[int]) -> int:
    """Be interrupted after any number of looks at the clock; return how many proofs pass."""
    passed = 0
    for case in searched(seeds):
        known, left = case.optimum + 1 + case.optimum // 4, [random.Random(case.seed).randint(1, 80)]

        def stopped(left: list[int] = left) -> bool:
            left[0] -= 1
            return left[0] <= 0

        limits = BoundLimits(known, interrupted=stopped)
        search = begin(case.order, limits)
        search.run(limits)
        passed += case.hold(method, search, known)
    return passed


def hold_in_little_memory(method: str, begin: Begins, seeds: Sequence[int]) -> tuple[int, int]:
    """Search in some kilobytes; return how many searches there was no room for, and how many proofs pass."""
    refused = passed = 0
    for case in searched(seeds):
        known = case.optimum + 1 + case.optimum // 4
        for memory in (64, 2000, 6000, 20_000):
            try:
                search = begin(case.order, BoundLimits(known, memory_bytes=memory))
            except TooManyStates:
                refused += 1
                continue
            search.run(BoundLimits(known, memory_bytes=memory, deadline=Deadline(10)))
            assert search.ended, (case.seed, memory)
            passed += case.hold(method, search, known)
    return refused, passed


def edge_cases() -> Iterator[tuple[str, CostGraph, int]]:
    """Return graphs of a single op, of no tensors, of no costs, and with more stages than ops."""

    def graph(works: list[int], tensors: list[tuple[int, tuple[int, ...], int]]) -> CostGraph:
        ops = [Op(f"op{v}", work) for v, work in enumerate(works)]
        read = [
            Tensor(f"t{t}", f"op{maker}", tuple(f"op{v}" for v in readers), None, ticks)
            for t, (maker, readers, ticks) in enumerate(tensors)
        ]
        return CostGraph.build(name="edge", time_unit="1", ops=ops, tensors=read)

    for k in (2, 3, 7):
        yield "single op", graph([5], []), k
        yield "single free op", graph([0], []), k
        yield "no tensors", graph([3, 1, 4, 1, 5], []), k
        yield "no costs", graph([0] * 5, [(v, (v + 1,), 0) for v in range(4)]), k
        yield "free ops", graph([0] * 5, [(v, (v + 1,), 2) for v in range(4)]), k
        yield "free tensors", graph([2, 2, 2, 9], [(0, (1, 2), 0), (1, (3,), 0), (2, (3,), 0)]), k


def hold_on_edge_cases(method: str, begin: Begins) -> None:
    """Search below limits around the optimum, from 0 on."""
    for name, graph, k in edge_cases():
        instance = Instance.build(graph, Machine.uniform(k, LINK))
        optimum, stages = oracles.best_partition(graph, LINK, k)
        best = Partition.from_stages(instance, stages)
        for order in scan_orders(instance):
            case = Searched(0, graph, LINK, k, ReducedInstance(instance), order, optimum)
            for known in {0, optimum, optimum + 1, 2 * optimum + 3}:
                start = best if known == optimum else None
                limits = BoundLimits(known, start, deadline=Deadline(5))
                search = begin(order, limits)
                search.run(limits)
                assert search.ended, (name, k, known)
                case.hold(method, search, known)


def wide_graph(branches: int, length: int, joins: int) -> CostGraph:
    """Return chains side by side that meet several times."""
    ops, tensors = [Op("start", 3)], []
    last = "start"
    for join in range(joins):
        ends = []
        for branch in range(branches):
            before = last
            for i in range(length):
                name = f"op{join}-{branch}-{i}"
                ops.append(Op(name, 5 + (7 * branch + 3 * i + join) % 11))
                tensors.append(Tensor(f"to {name}", before, (name,), None, 1 + (branch + i) % 4))
                before = name
            ends.append(before)
        last = f"join{join}"
        ops.append(Op(last, 4))
        tensors += [Tensor(f"{end} to {last}", end, (last,), None, 2) for end in ends]
    return CostGraph.build(name="wide", time_unit="1", ops=ops, tensors=tensors)
