"""Lower bound of the iteration over all stage graphs: the least time in which some chain of downsets could run.

The stages of any plan, in a topological order, are a chain of downsets of layers. A stage S with option o (a size of
micro-batches and a number of replicas) begins no sooner than the passes on any path into it, and they end after it. So
in time T it keeps to

* M · t(S) ≤ T − the longest path into S, forward and back, and
* M · t(S) + synchronisation ≤ T − the longest forward path into S,

where layers on the path take what they take at their fastest, and the tensors that enter S cross a link. Its memory
holds the fewest micro-batches in flight that any stage may have: one, or two if a stage is behind it. If no chain of
such stages gets by with K devices, no plan has an iteration of T ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mtpp.solvers.planners.graphpipe.kernels.downset_chains import NO, UNKNOWN, chain_exists
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration
from mtpp.training.stage_costs import PassCosts

MOST_LAYERS = 64
"""Of a model that downsets are searched of."""

_MOST_DOWNSETS = 100_000
_MOST_STEPS = 1_000_000
_PRECISION = 2_000
"""Parts of the bound to which it is found."""

_LEFT_OUT = (0.0, 0.005, 0.02, 0.05)
"""Parts of all work that branches may be left out of, one after the other, where there are too many downsets."""

_LARGEST = 2**61
_SHRUNK = 1 - 1e-9


def iteration_bound(problem: GraphProblem, upper: int, stopped: Callable[[], bool] = lambda: False) -> int:
    """Return ticks that the iteration of no plan is below, at most *upper*, which may be that of a plan.

    Parameters
    ----------
    stopped
        Whether to end early, with a bound that is lower.

    Notes
    -----
    Exponential in the width of the model at worst; equal branches are interchangeable. Where there are too many
    downsets, cheap branches are left out, which cannot raise the bound. Of more than 64 layers, the work is spread
    evenly over the devices.
    """
    low = _least_work(problem)
    if low >= upper:
        return min(low, upper)
    if len(problem.model.layers) > MOST_LAYERS or problem.devices * upper >= _LARGEST:
        return low
    branches = equal_branches(problem)
    for share in _LEFT_OUT:
        chains = _Chains(problem, _without(problem, branches, share))
        high = upper
        while high - low > 1 + high // _PRECISION and not stopped():
            middle = (low + high) // 2
            if chains.may_exist(middle - 1):
                high = middle
            else:
                low = middle
        if chains.decided:
            break
    return low


def _without(problem: GraphProblem, branches: Sequence[Sequence[Sequence[int]]], share: float) -> list[list[list[int]]]:
    """Return groups of equal branches without the cheapest ones, up to that share of all work."""
    work = [sum(_layer_work(problem, layer) for branch in group for layer in branch) for group in branches]
    left, dropped = share * sum(work), set()
    for g in sorted(range(len(work)), key=work.__getitem__):
        left -= work[g]
        if left >= 0:
            dropped.add(g)
    return [[list(branch) for branch in group] for g, group in enumerate(branches) if g not in dropped]


def _least_work(problem: GraphProblem) -> int:
    """Return the iteration if all devices did equal parts of the least work of all layers, rounded up."""
    total = sum(_layer_work(problem, layer) for layer in range(len(problem.model.layers)))
    return -(-total // problem.devices)


def _layer_work(problem: GraphProblem, layer: int) -> int:
    """Return the device-ticks that a layer takes at least in an iteration."""
    return min(
        d * (problem.mini_batch // size) * (costs.forward_ticks + costs.backward_ticks)
        for size in problem.sizes
        for d in problem.degrees(size)
        for costs in _possible(problem, problem.choices[layer], size // d)
    )


def _possible(problem: GraphProblem, choices: Sequence[Configuration], samples: int) -> list[PassCosts]:
    """Return the costs of the configurations of a layer that it can take so many samples with."""
    return [
        problem.costs.passes(one, samples) for one in choices if not one.micro_batches or samples in one.micro_batches
    ]


@dataclass(frozen=True)
class _Option:
    """Samples of micro-batches, and replicas."""

    size: int
    replicas: int


class _Chains:
    """Chains of downsets of some layers, by size of micro-batches where all stages have the same.

    Parameters
    ----------
    branches
        Groups of equal branches, in a topological order: what is not in them is left out.

    Attributes
    ----------
    decided
        Whether no search was given up.
    """

    def __init__(self, problem: GraphProblem, branches: Sequence[Sequence[Sequence[int]]]) -> None:
        self.decided = True
        self._problem = problem
        self._branches = branches
        layers = [layer for group in self._branches for branch in group for layer in branch]
        self._place = {layer: at for at, layer in enumerate(layers)}
        each = [[_Option(size, d) for d in problem.degrees(size)] for size in problem.sizes]
        sets = [[one for options in each for one in options]] if problem.rules.per_stage else each
        self._arguments = [self._arrays(layers, options) for options in sets if options]

    def may_exist(self, ticks: int) -> bool:
        """Tell whether a plan may have an iteration of so many ticks."""
        system = ticks, self._problem.devices, self._problem.memory_bytes
        for arrays in self._arguments:
            arguments: tuple[Any, ...] = (*system, *arrays, _MOST_DOWNSETS, _MOST_STEPS)
            answer, _ = chain_exists(*arguments)
            self.decided &= answer != UNKNOWN
            if answer != NO:
                return True
        return False

    def _arrays(self, layers: Sequence[int], options: Sequence[_Option]) -> tuple[Any, ...]:
        problem, model, costs = self._problem, self._problem.model, self._problem.costs
        batch = problem.mini_batch
        count = len(layers)
        loads = np.zeros((len(options), count), dtype=np.int64)
        passes = np.zeros((2, len(options), count), dtype=np.int64)
        kept = np.zeros((2, len(options), count), dtype=np.int64)
        for o, option in enumerate(options):
            batches = batch // option.size
            for v, layer in enumerate(layers):
                known = _possible(problem, problem.choices[layer], option.size // option.replicas)
                both = min(one.forward_ticks + one.backward_ticks for one in known)
                loads[o, v] = batches * both
                passes[:, o, v] = both, min(one.forward_ticks for one in known)
                memory = min(one.memory_bytes for one in known)
                kept[:, o, v] = memory * min(problem.rules.intervals), memory * min(2, batches)
        replicas = np.array([option.replicas for option in options], dtype=np.int64)
        rate = costs.bandwidth_bytes_per_s
        gradients = np.array([2 * (d - 1) * 10**12 / (d * rate) * _SHRUNK for d in replicas.tolist()])
        choices = [problem.choices[layer] for layer in layers]
        before, after = (np.zeros(count, dtype=np.uint64) for _ in range(2))
        rows: list[list[list[int]]] = [[] for _ in range(count)]
        for edge, (source, target) in zip(model.edges, model.ends, strict=True):
            if source not in self._place or target not in self._place:
                continue
            u, v = self._place[source], self._place[target]
            before[v] |= np.uint64(1 << u)
            after[u] |= np.uint64(1 << v)
            sizes = {option.size for option in options}
            row = [u]
            for directions in (2, 1):
                for option in options:  # the sender of the forward pass may have any size
                    size = edge.communication_bytes
                    forward = min(costs.transfer([size], one, option.replicas) for one in sizes)
                    back = costs.transfer([size], option.size, option.replicas)
                    row.append(forward + (back if directions == 2 else 0))
            rows[v].append(row)
        arrival = np.zeros((2, count), dtype=np.int64)
        for v in range(count):
            for kind in range(2):
                arrival[kind, v] = max((arrival[kind, row[0]] for row in rows[v]), default=0)
                arrival[kind, v] += passes[kind, :, v].min()
        starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        edges = np.array([row for here in rows for row in here], dtype=np.int64)
        lengths = [len(branch) for group in self._branches for branch in group]
        return (
            replicas,
            loads,
            kept,
            np.array([min(one.memory_b for one in here) for here in choices], dtype=np.int64),
            np.array([min(one.parameter_bytes for one in here) for here in choices], dtype=np.int64),
            gradients,
            (loads * replicas[:, None]).min(axis=0),
            before,
            starts,
            edges.reshape(-1, 1 + 2 * len(options)),
            arrival,
            after,
            np.cumsum([0, *map(len, self._branches)], dtype=np.int64),
            np.cumsum([0, *lengths], dtype=np.int64)[:-1].copy(),
            np.array(lengths, dtype=np.int64),
            np.repeat(np.arange(len(lengths)), lengths).astype(np.int64),
        )


def equal_branches(problem: GraphProblem) -> list[list[list[int]]]:
    """Return groups of equal branches in a topological order: chains of layers with the same costs and neighbours."""
    model = problem.model
    count = len(model.layers)
    before: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    after: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for edge, (u, v) in zip(model.edges, model.ends, strict=True):
        before[v].append((u, edge.communication_bytes))
        after[u].append((v, edge.communication_bytes))
    chains: list[list[int]] = []
    chain_of: dict[int, int] = {}
    for layer in model.order:
        last = before[layer][0][0] if len(before[layer]) == 1 else None
        if last is not None and len(after[last]) == 1:
            chains[chain_of[last]].append(layer)
            chain_of[layer] = chain_of[last]
        else:
            chain_of[layer] = len(chains)
            chains.append([layer])
    groups: dict[object, list[int]] = {}
    for c, chain in enumerate(chains):
        inner = tuple(after[u][0][1] for u, _ in pairwise(chain))
        costs = tuple(_signature(problem.choices[layer]) for layer in chain)
        key = costs, inner, tuple(sorted(before[chain[0]])), tuple(sorted(after[chain[-1]]))
        groups.setdefault(key, []).append(c)
    return [[chains[c] for c in groups[key]] for key in _in_order(groups, chains, chain_of, before)]


def _signature(choices: Sequence[Configuration]) -> object:
    return tuple(
        (one.time_per_sample, one.parameter_bytes, one.memory_a, one.memory_b, tuple(sorted(one.micro_batches.items())))
        for one in choices
    )


def _in_order(
    groups: dict[object, list[int]],
    chains: Sequence[Sequence[int]],
    chain_of: dict[int, int],
    before: Sequence[Sequence[tuple[int, int]]],
) -> list[object]:
    """Return the keys of groups so that the chains that a chain reads from come first."""
    group_of = {c: key for key, members in groups.items() for c in members}
    needed = {
        key: {group_of[chain_of[u]] for c in members for u, _ in before[chains[c][0]]}
        for key, members in groups.items()
    }
    order: list[object] = []
    left = list(groups)
    while left:
        ready = [key for key in left if all(one in order for one in needed[key])]
        order += ready
        left = [key for key in left if key not in ready]
    return order
