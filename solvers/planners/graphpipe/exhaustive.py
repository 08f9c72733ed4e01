"""Every stage graph of a small model, in the order of its bound J: the plan with the shortest iteration.

J of a plan is a bound of its iteration by paths and loads (:func:`path_bound`). Plans are looked at from the least J
upwards, each with all numbers of micro-batches in flight that it may have; when the next J is no better than the best
iteration found, nothing is left that could be.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.graphpipe.kernels.path_bound import path_bound
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions
from mtpp.solvers.planners.simulation.kernels.pipeline_iteration import pipeline_iteration
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.in_flight import least_before


@dataclass(frozen=True)
class GraphPipeline:
    """Stages with what they have in flight, in the order of the line where they form one."""

    stages: Sequence[StageOption]
    in_flight: Sequence[int]
    iteration: int


class ExhaustiveSearch:
    """All plans of a small model.

    Parameters
    ----------
    memory_bytes
        Of a device; None: that of the problem.

    Notes
    -----
    Set partitions of n layers (203 for six, 4,140 for eight), times degrees, sizes and configurations.
    """

    def __init__(self, problem: GraphProblem, memory_bytes: int | None = None) -> None:
        self._problem = problem
        self._options = StageOptions(problem, memory_bytes)

    def best(self) -> GraphPipeline | None:
        """Return the plan with the shortest iteration, None if none fits into memory."""
        candidates = [(found.bound, i, found) for i, found in enumerate(self._candidates())]
        heapq.heapify(candidates)
        best: GraphPipeline | None = None
        while candidates:
            bound, _, found = heapq.heappop(candidates)
            if best is not None and bound >= best.iteration:
                break
            for in_flight in found.counts(self._problem.rules.in_flight):
                time = found.time(in_flight)
                if time >= 0 and (best is None or time < best.iteration):
                    best = GraphPipeline(found.stages, in_flight, time)
                    if time == bound:
                        break
        return best

    def _candidates(self) -> Iterator[_Candidate]:
        problem = self._problem
        layers = problem.model.order
        for groups in _partitions(layers, problem.devices):
            stage_of = {layer: s for s, group in enumerate(groups) for layer in group}
            ends = {(stage_of[u], stage_of[v]) for u, v in problem.model.ends if stage_of[u] != stage_of[v]}
            order = first_come_order(len(groups), ends)
            if len(order) < len(groups):
                continue
            for line in _lines(order, ends) if problem.rules.sequential else [order]:
                yield from self._of_groups([groups[s] for s in line])

    def _of_groups(self, groups: Sequence[tuple[int, ...]]) -> Iterator[_Candidate]:
        """Return every way to run groups of layers as stages, which are in a topological order."""
        problem = self._problem
        if problem.rules.per_stage:
            each = [[one for size in problem.sizes for one in self._options.of(group, size)] for group in groups]
            choices = [each]
        else:
            choices = [[list(self._options.of(group, size)) for group in groups] for size in problem.sizes]
        for each in choices:
            for stages in product(*each):
                if sum(stage.data_parallel for stage in stages) <= problem.devices:
                    candidate = _Candidate(problem, stages)
                    if candidate.fits:
                        yield candidate


class _Candidate:
    """Stages, without the numbers of micro-batches in flight.

    Attributes
    ----------
    fits
        Whether sizes of neighbours divide each other, and memory holds the fewest in flight.
    bound
        J.
    """

    def __init__(self, problem: GraphProblem, stages: Sequence[StageOption]) -> None:
        self.stages = stages
        self._problem = problem
        self._ends, self._ticks = self._transfers()
        self.fits = self._sizes_divide() and next(iter(self._counts(least=True)), None) is not None
        count = len(stages)
        self._costs = np.array(
            [
                (one.mix.forward, one.mix.backward, one.synchronisation, problem.mini_batch // one.micro_batch)
                for one in stages
            ],
            dtype=np.int64,
        )
        self._sizes = np.array([(one.micro_batch, one.interval) for one in stages], dtype=np.int64)
        self.bound = int(path_bound(np.arange(count), self._costs, self._ends, self._ticks)) if self.fits else 0

    def _transfers(self) -> tuple[Int64Array, Int64Array]:
        problem, stages = self._problem, self.stages
        stage_of = {layer: s for s, stage in enumerate(stages) for layer in stage.layers}
        moved: dict[tuple[int, int], list[int]] = {}
        for edge, (u, v) in zip(problem.model.edges, problem.model.ends, strict=True):
            if stage_of[u] != stage_of[v]:
                moved.setdefault((stage_of[u], stage_of[v]), []).append(edge.communication_bytes)
        if problem.rules.sequential:
            for s in range(len(stages) - 1):
                moved.setdefault((s, s + 1), [])
        ticks = []
        for (a, b), sizes in moved.items():
            width = min(stages[a].data_parallel, stages[b].data_parallel)
            ticks.append([problem.costs.transfer(sizes, stages[s].micro_batch, width) for s in (a, b)])
        ends = np.array(list(moved), dtype=np.int64).reshape(-1, 2)
        return ends, np.array(ticks, dtype=np.int64).reshape(-1, 2)

    def _sizes_divide(self) -> bool:
        pairs = ((self.stages[a].micro_batch, self.stages[b].micro_batch) for a, b in self._ends)
        return all(max(pair) % min(pair) == 0 for pair in pairs)

    def counts(self, rule: str) -> Iterator[tuple[int, ...]]:
        """Return the numbers of micro-batches in flight that the stages may have."""
        return self._counts(least=rule == "least")

    def _counts(self, *, least: bool) -> Iterator[tuple[int, ...]]:
        """Go through the numbers in flight, from the last stage to the first; the fewest come first."""
        stages, batch = self.stages, self._problem.mini_batch
        readers: list[list[int]] = [[] for _ in stages]
        for a, b in self._ends:
            readers[a].append(int(b))
        chosen = [0] * len(stages)

        def choose(s: int) -> Iterator[tuple[int, ...]]:
            if s < 0:
                yield tuple(chosen)
                return
            one = stages[s]
            needed = one.interval * one.micro_batch
            for y in readers[s]:
                other = stages[y]
                kept = chosen[y] * other.micro_batch
                needed = max(
                    needed, least_before(one.micro_batch, one.interval, other.micro_batch, other.interval, kept)
                )
            fewest = min(-(-needed // one.micro_batch), batch // one.micro_batch)
            for count in range(fewest, (fewest if least else one.most_in_flight) + 1):
                if count > one.most_in_flight:
                    return
                chosen[s] = count
                yield from choose(s - 1)

        return choose(len(stages) - 1)

    def time(self, in_flight: Sequence[int]) -> int:
        """Return the simulated iteration in ticks, −1 if passes wait for each other."""
        counts = np.array(in_flight, dtype=np.int64)
        return int(pipeline_iteration(self._costs, self._sizes, counts, self._ends, self._ticks))


def _partitions(items: Sequence[int], most: int) -> Iterator[list[tuple[int, ...]]]:
    """Go through the partitions of some items into at most so many groups."""
    groups: list[list[int]] = []

    def place(at: int) -> Iterator[list[tuple[int, ...]]]:
        if at == len(items):
            yield [tuple(group) for group in groups]
            return
        for group in list(groups):
            group.append(items[at])
            yield from place(at + 1)
            group.pop()
        if len(groups) < most:
            groups.append([items[at]])
            yield from place(at + 1)
            groups.pop()

    return place(0)


def _lines(order: Sequence[int], ends: set[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Go through the topological orders of few stages."""
    for line in permutations(order):
        place = {stage: at for at, stage in enumerate(line)}
        if all(place[a] < place[b] for a, b in ends):
            yield line
