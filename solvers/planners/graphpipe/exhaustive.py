"""Every stage graph of a small model, in the order of its bound J: the plan with the shortest iteration.

J of a plan, :func:`~mtpp.solvers.planners.graphpipe.kernels.path_bound.path_bound`, is never above its iteration. Plans
are looked at from the least J upwards, each with all numbers of micro-batches in flight that it may have; when the next
J is no better than the best iteration found, nothing is left that could be.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions
from mtpp.training.graph_problem import GraphProblem

EXHAUSTIVE = "exhaustive"
"""Method of bounds that rest on this search."""

MOST_LAYERS = 8
"""Of a model whose stage graphs can all be looked at."""


class SearchSize(NamedTuple):
    """Limits of a search of all plans.

    Attributes
    ----------
    candidates
        Plans that fit, but for what they have in flight: all of them are kept, to go through them by J.
    looked
        Options of stages, after those chosen for the stages behind.
    passes
        Simulated in all.
    """

    candidates: int
    looked: int
    passes: int


WHOLE = SearchSize(50_000, 1_000_000, 5_000_000)
"""Seconds."""

FEW = SearchSize(500, 5_000, 50_000)
"""Some hundredths of a second: less than a search that looks at some plans only."""


class ExhaustiveSearch:
    """All plans of a small model.

    Parameters
    ----------
    ended
        Whether to give up.
    size
        Limits, beyond which the search is not complete.

    Attributes
    ----------
    complete
        Whether the last search looked at all plans.

    Notes
    -----
    Set partitions of n layers (203 for six, 4,140 for eight), times degrees, sizes and configurations.
    """

    def __init__(
        self, problem: GraphProblem, ended: Callable[[], bool] = lambda: False, size: SearchSize = WHOLE
    ) -> None:
        self._problem = problem
        self._size = size
        self._options = StageOptions(problem, ended)
        self._ended = ended
        self._choices = StageChoices(problem, self._look)
        self._below: int | None = None
        self._looked = 0
        self.complete = True

    def best(self, known: GraphPipeline | None = None) -> GraphPipeline | None:
        """Return the plan with the shortest iteration, None if none fits into memory.

        Parameters
        ----------
        known
            A plan, which is returned if none is faster.
        """
        best, left = known, self._size.passes
        for bound, _, found in self._by_bound(None if known is None else known.iteration):
            if (best is not None and bound >= best.iteration) or self._gave_up():
                break
            for in_flight in found.counts(self._problem.rules.in_flight):
                left -= found.passes
                if left < 0 or self._gave_up():
                    self.complete = False
                    return best
                time = found.time(in_flight)
                if time >= 0 and (best is None or time < best.iteration):
                    best = GraphPipeline(found.stages, in_flight, time)
                    if time == bound:
                        break
        return best

    def first_that_fits(self) -> GraphPipeline | None:
        """Return a plan that fits into memory and ends, None if there is none."""
        self.complete, self._below, self._looked = True, None, 0
        left = self._size.passes
        for found in self._candidates():
            for in_flight in found.counts(self._problem.rules.in_flight):
                time = found.time(in_flight)
                if time >= 0:
                    return GraphPipeline(found.stages, in_flight, time)
                left -= found.passes
                self.complete = self.complete and left >= 0
                if self._gave_up():
                    return None
        return None

    def _gave_up(self) -> bool:
        self.complete = self.complete and not self._ended()
        return not self.complete

    def _by_bound(self, below: int | None) -> Iterator[tuple[int, int, PipelineCandidate]]:
        """Go through all plans from the least J upwards."""
        self.complete, self._below, self._looked = True, below, 0
        candidates = []
        for i, found in enumerate(self._candidates()):
            if below is None or found.bound < below:
                candidates.append((found.bound, i, found))
            if i == self._size.candidates or self._gave_up():
                self.complete = False
                break
        heapq.heapify(candidates)
        while candidates:
            yield heapq.heappop(candidates)

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
                if self._gave_up():
                    return
                yield from self._of_groups([groups[s] for s in line], {s: at for at, s in enumerate(line)}, stage_of)

    def _of_groups(
        self, groups: Sequence[tuple[int, ...]], place: Mapping[int, int], stage_of: Mapping[int, int]
    ) -> Iterator[PipelineCandidate]:
        """Return every way to run groups of layers as stages, which are in a topological order."""
        problem = self._problem
        if problem.rules.per_stage:
            each = [[one for size in problem.sizes for one in self._worth(group, size)] for group in groups]
            choices = [each]
        else:
            choices = [[list(self._worth(group, size)) for group in groups] for size in problem.sizes]
        stages_of = {layer: place[s] for layer, s in stage_of.items()}
        transfers = self._choices.least_transfers(stages_of, line_of=len(groups) if problem.rules.sequential else 0)
        for each in choices:
            for stages in self._choices.below(each, transfers, self._below):
                candidate = PipelineCandidate(problem, stages)
                if candidate.fits:
                    yield candidate
            if self._gave_up():
                return

    def _look(self) -> bool:
        """Count an option that is looked at; tell whether to look at no more."""
        self._looked += 1
        self.complete = self.complete and self._looked <= self._size.looked
        return self._gave_up()

    def _worth(self, group: tuple[int, ...], size: int) -> Iterator[StageOption]:
        """Go through the options of a stage whose passes alone do not take as long as a known plan."""
        options = self._options.of(group, size)
        self.complete = self.complete and options is not None
        for one in options or ():
            passes = self._problem.mini_batch // size * (one.mix.forward + one.mix.backward)
            if self._below is None or passes < self._below:
                yield one


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


class StageChoices:
    """Choices for groupings of the layers of a problem.

    Left out are choices that a bound on their iteration rules out:
    :func:`~mtpp.solvers.planners.graphpipe.kernels.path_bound.path_bound` with transfers at their least. Options are
    chosen from the last stage to the first, so that all that follows a stage is known, and stages before it take the
    time of their fastest options.

    Parameters
    ----------
    looked
        Called for each option that is looked at; the search ends when it says so.
    """

    def __init__(self, problem: GraphProblem, looked: Callable[[], bool]) -> None:
        self._problem = problem
        self._looked = looked
        sizes = [size for size in problem.sizes if problem.degrees(size)]
        self._moved: dict[tuple[int, int], int] = {}
        for edge, ends in zip(problem.model.edges, problem.model.ends, strict=True):
            ticks = (problem.costs.transfer([edge.communication_bytes], size, problem.devices) for size in sizes)
            self._moved[ends] = 2 * min(ticks, default=0)  # there and back

    def least_transfers(self, stage_of: Mapping[int, int], *, line_of: int = 0) -> dict[tuple[int, int], int]:
        """Return the pairs of stages that one reads from the other, with ticks there and back at least.

        Parameters
        ----------
        line_of
            Stages that follow one another besides.
        """
        found = {(s, s + 1): 2 * self._problem.costs.link.latency_ps for s in range(line_of - 1)}
        for (u, v), ticks in self._moved.items():
            pair = stage_of[u], stage_of[v]
            if pair[0] != pair[1]:
                found[pair] = max(found.get(pair, 0), ticks)
        return found

    def below(
        self, each: Sequence[Sequence[StageOption]], transfers: Mapping[tuple[int, int], int], ticks: int | None
    ) -> Iterator[list[StageOption]]:
        """Go through choices that need no more devices than there are and may have an iteration below *ticks*.

        Parameters
        ----------
        each
            Options of each stage, in a topological order.
        """
        if not all(each):
            return
        fewest, before = [0], [0] * len(each)
        for x, options in enumerate(each):
            fewest.append(fewest[-1] + min(one.data_parallel for one in options))
            fastest = min(one.mix.forward + one.mix.backward for one in options)
            for (a, b), moved in transfers.items():
                if a == x:
                    before[b] = max(before[b], before[a] + fastest + moved)
        behind = [[(b, moved) for (a, b), moved in transfers.items() if a == x] for x in range(len(each))]
        chosen: list[StageOption] = [options[0] for options in each]
        taken = [0] * len(each)

        def choose(x: int, devices: int) -> Iterator[list[StageOption]]:
            if x < 0:
                yield list(chosen)
                return
            for one in each[x]:
                if self._looked():
                    return
                if one.data_parallel > devices - fewest[x]:
                    continue
                pair = one.mix.forward + one.mix.backward
                taken[x] = self._problem.mini_batch // one.micro_batch * pair
                for y, moved in behind[x]:
                    taken[x] = max(taken[x], pair + moved + taken[y])
                if ticks is None or before[x] + taken[x] < ticks:
                    chosen[x] = one
                    yield from choose(x - 1, devices - one.data_parallel)

        yield from choose(len(each) - 1, self._problem.devices)
