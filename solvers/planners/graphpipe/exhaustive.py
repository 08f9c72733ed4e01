"""Every stage graph of a small model, in the order of its bound J: the plan with the shortest iteration.

J of a plan is a bound of its iteration by paths and loads. Plans are looked at from the least J
upwards, each with all numbers of micro-batches in flight that it may have; when the next J is no better than the best
iteration found, nothing is left that could be.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import permutations, product

from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.stage_options import StageOptions
from mtpp.training.graph_problem import GraphProblem


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

    def _candidates(self) -> Iterator[PipelineCandidate]:
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

    def _of_groups(self, groups: Sequence[tuple[int, ...]]) -> Iterator[PipelineCandidate]:
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
                    candidate = PipelineCandidate(problem, stages)
                    if candidate.fits:
                        yield candidate


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
