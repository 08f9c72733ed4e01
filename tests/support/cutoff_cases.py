"""Small graphs with cutoffs at, just above and below their optimum, and the bounds that each cutoff is given to.

Costs are drawn as those were at which bounds of a MIP solver were once false: alike up to a few ticks, of all sizes,
some of them beyond double precision.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import oracles

from mtpp.errors import InputError
from mtpp.host.deadline import Deadline
from mtpp.inference.contraction import contract
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.registry import BOUNDS, bound_entry

NAMES = tuple(name for name in BOUNDS if name != "simple")
"""Bounds that take a cutoff."""

MIPS = tuple(name for name in NAMES if BOUNDS[name].tier == "solver")
PROOFS = tuple(name for name in NAMES if BOUNDS[name].tier != "solver")

LIMIT_S = 20.0
"""Of a bound on a graph of eight ops: one that hangs must not hang the run."""

_LINK = Device("link", 10**12, 10**11, Link(10**9))

_POOLS: tuple[tuple[int, ...], ...] = (
    (0, 1, 2, 3, 5, 7, 20),
    (0, 1, 10**9, 999_999_999, 999_999_937, 3 * 10**8),
    (0, 1, 2, 10**3, 10**6, 10**12, 10**12 + 1, 10**13, 10**14),
    (0, 1, 2, 10**13, 10**14, 153_722_867_280_912_929, 76_861_433_640_456_465),
)
_LARGEST_DIGITS = 13


@dataclass(frozen=True)
class CutoffCase:
    """An instance with its optimum, and a cutoff.

    Attributes
    ----------
    optimum, best
        By brute force: ticks, and a partition of *instance* that has them.
    cutoff
        Ticks, of no partition for all that the bounds know.
    """

    seed: int
    instance: Instance
    optimum: int
    best: Partition
    cutoff: int


def drawn_cutoff(seed: int) -> CutoffCase | None:
    """Draw a case; None if its costs are refused, or no partition keeps to the memory."""
    pick = random.Random(seed)
    graph = _graph(pick)
    k = pick.randint(2, 4)
    system = _system(pick)
    try:
        instance = Instance.build(graph, Machine.uniform(k, system))
    except InputError:
        return None
    groups = _groups(pick, graph)
    optimum, stages = oracles.best_partition(graph, system, k, groups)
    if optimum >= oracles.NEVER or optimum == 0:
        return None
    best = Partition.from_stages(instance, stages)
    if groups:
        contraction = contract(instance, groups)
        instance, best = contraction.instance, _carried(contraction.group_of.tolist(), contraction.instance, stages)
    return CutoffCase(seed, instance, optimum, best, _cutoff(pick, optimum))


def _carried(group_of: list[int], inner: Instance, stages: tuple[int, ...]) -> Partition:
    merged = [0] * inner.op_count
    for op, group in enumerate(group_of):
        merged[group] = stages[op]
    return Partition.from_stages(inner, merged)


def _graph(pick: random.Random) -> CostGraph:
    pool = pick.choice((*_POOLS, None))

    def cost() -> int:
        return pick.choice(pool) if pool else pick.randint(0, 10 ** pick.randint(1, _LARGEST_DIGITS))

    count = pick.randint(2, 8)
    sizes = pick.choice(((0,), (0, 5, 10, 20, 64)))
    ops = [Op(f"o{v}", cost(), None, pick.choice(sizes)) for v in range(count)]
    tensors: list[Tensor] = []
    for v in range(count - 1):
        for _ in range(pick.choice((0, 1, 1, 2))):
            readers = pick.sample(range(v + 1, count), min(count - 1 - v, pick.randint(1, 4)))
            names = tuple(f"o{reader}" for reader in readers)
            tensors.append(Tensor(f"t{len(tensors)}", f"o{v}", names, pick.choice((0, 5, 10, 30)), cost()))
    return CostGraph.build(name="g", time_unit="ps", ops=ops, tensors=tensors)


def _system(pick: random.Random) -> Device:
    system = _LINK
    if pick.random() < 0.3:
        memory = pick.randint(0, 80)
        peak = pick.choice(("reserve", "order"))
        system = replace(system, fast_memory_bytes=memory, activation_reserve_bytes=pick.randint(0, memory), peak=peak)
    if pick.random() < 0.2:
        system = replace(system, memory_bytes=system.activation_reserve_bytes + pick.randint(30, 200))
    return system


def _groups(pick: random.Random, graph: CostGraph) -> list[list[int]]:
    """Return a pair of neighbours in some cases: they are never the ends of another path, or there is no group."""
    if pick.random() > 0.2 or graph.op_count < 3:
        return []
    first = pick.randrange(graph.op_count - 1)
    return [[first, first + 1]]


def _cutoff(pick: random.Random, optimum: int) -> int:
    """Return one of the cutoffs that matter, a third of them below the optimum."""
    above = [optimum, optimum + 1, optimum + 2, *(optimum + -(-optimum // 10**digits) for digits in range(4, 9))]
    below = [optimum - 1, optimum - optimum // 10**7, optimum - optimum // 10**4, optimum // 2]
    return max(1, pick.choice(above if pick.random() < 2 / 3 else below))


@dataclass
class Tally:
    """What one bound came to on all cases.

    Attributes
    ----------
    claims, left_out
        Cases in which it gave a number, and those whose costs it does not take.
    met
        Of the claims, those that are the optimum.
    largest
        Bound / optimum at most.
    false
        Seeds of cases in which a bound was above the optimum, or, of tier ``solver``, not below the cutoff.
    """

    cases: int = 0
    claims: int = 0
    left_out: int = 0
    met: int = 0
    largest: float = 0.0
    false: list[int] = field(default_factory=list)

    def add(self, case: CutoffCase, result: BoundResult, most: int) -> None:
        """Count one result; a bound of tier ``solver`` may say *most* at most."""
        self.cases += 1
        self.left_out += bool(result.left_out)
        if result.lower is None:
            return
        value = result.lower.value
        self.claims += 1
        self.met += value == case.optimum
        self.largest = max(self.largest, value / case.optimum)
        if value > case.optimum or (result.lower.tier == "solver" and value > most):
            self.false.append(case.seed)


def results(case: CutoffCase, *, every: bool = True) -> Iterator[tuple[str, BoundResult, int]]:
    """Yield bounds' names, their results, and what a bound of tier ``solver`` may say at most.

    One case in four is asked about again with a best partition at hand, in place of the cutoff.

    Parameters
    ----------
    every
        Whether all bounds are asked; else those of tier ``solver``, and one of the others in turn.
    """
    names = NAMES if every else (*MIPS, PROOFS[case.seed % len(PROOFS)])
    for name in names:
        solve = bound_entry(name).load()
        given = BoundLimits(case.cutoff, deadline=Deadline(LIMIT_S))
        yield name, solve(case.instance, given), case.cutoff - 1
        if case.seed % 4 == 0:
            known = BoundLimits(case.optimum, case.best, deadline=Deadline(LIMIT_S))
            yield name, solve(case.instance, known), case.optimum


def tallied(seeds: range, tallies: dict[str, Tally], *, every: bool = True) -> int:
    """Give the cutoffs of all cases to bounds as :func:`results` does; return how many cases were refused."""
    refused = 0
    for seed in seeds:
        case = drawn_cutoff(seed)
        if case is None:
            refused += 1
            continue
        for name, result, most in results(case, every=every):
            tallies.setdefault(name, Tally()).add(case, result, most)
    return refused
