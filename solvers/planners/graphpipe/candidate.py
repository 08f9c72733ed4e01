"""Candidate plan: stages with exact costs, the numbers of micro-batches in flight that they may have, and its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.planners.graphpipe.kernels.path_bound import path_bound
from mtpp.solvers.planners.graphpipe.stage_options import StageOption
from mtpp.solvers.planners.simulation.kernels.pipeline_iteration import pipeline_iteration
from mtpp.training.graph_problem import GraphProblem, more_before
from mtpp.training.model import Configuration

_ROUNDS = 3
"""Times at most that the numbers in flight of all stages are looked at one by one."""

_TRIPS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Times the micro-batches that round trips ask for."""

_NEAR = 1.005
"""Times an iteration that is to be beaten: pipelines above are not varied."""


@dataclass(frozen=True)
class GraphPipeline:
    """Stages with what they have in flight, in the order of the line where they form one."""

    stages: Sequence[StageOption]
    in_flight: Sequence[int]
    iteration: int


class PipelineCandidate:
    """Stages, without the numbers of micro-batches in flight.

    Attributes
    ----------
    fits
        Whether sizes of neighbours divide each other, and memory holds the fewest in flight.
    bound
        J, in ticks; 0 where it does not fit.
    """

    def __init__(self, problem: GraphProblem, stages: Sequence[StageOption]) -> None:
        self.stages = stages
        self._problem = problem
        self._ends, self._ticks = self._transfers()
        self._behind: list[list[tuple[int, int, int]]] = [[] for _ in stages]
        """By stage: stages that read from it, samples of their micro-batches, samples that it keeps beyond theirs."""
        self._from: list[list[tuple[int, int]]] = [[] for _ in stages]
        for (a, b), ticks in zip(self._ends.tolist(), self._ticks.tolist(), strict=True):
            one, other = stages[a], stages[b]
            more = more_before(one.micro_batch, one.interval, other.micro_batch, other.interval)
            self._behind[a].append((b, other.micro_batch, more))
            self._from[b].append((a, sum(ticks)))
        self._fewest = self._least() if self._sizes_divide() else ()
        self.fits = bool(self._fewest)
        self._rows = [
            (one.mix.forward, one.mix.backward, one.synchronisation, problem.mini_batch // one.micro_batch)
            for one in stages
        ]
        self._costs = np.array(self._rows, dtype=np.int64)
        self._sizes = np.array([(one.micro_batch, one.interval) for one in stages], dtype=np.int64)
        self.bound = int(path_bound(self._costs, self._ends, self._ticks)) if self.fits else 0

    def _transfers(self) -> tuple[Int64Array, Int64Array]:
        """Return the ends of all transfers, and what they take forward and back."""
        problem, stages = self._problem, self.stages
        costs, shares = problem.costs, problem.ways.shares
        stage_of = [0] * len(shares)
        for s, stage in enumerate(stages):
            for layer in stage.layers:
                stage_of[layer] = s
        scaled = [costs.scaled_edges(stage.micro_batch) for stage in stages]
        moved: dict[tuple[int, int], list[int]] = {}
        for e, (u, v) in enumerate(problem.model.ends):
            a, b = stage_of[u], stage_of[v]
            if a != b:
                if (a, b) not in moved:
                    moved[a, b] = [0, 0]
                both = moved[a, b]
                if shares[u] or shares[v]:
                    for i, (s, size) in enumerate(zip((a, b), self._shared(e, a, b), strict=True)):
                        both[i] += costs.scaled(size, stages[s].micro_batch)
                else:
                    both[0] += scaled[a][e]
                    both[1] += scaled[b][e]
        if problem.rules.sequential:
            for s in range(len(stages) - 1):
                moved.setdefault((s, s + 1), [0, 0])
        ticks = []
        for (a, b), (there, back) in moved.items():
            width = min(stages[a].data_parallel, stages[b].data_parallel)
            ticks.append((costs.moved(there, width), costs.moved(back, width)))
        return (np.array(list(moved), dtype=np.int64).reshape(-1, 2), np.array(ticks, dtype=np.int64).reshape(-1, 2))

    def _shared(self, e: int, a: int, b: int) -> tuple[int, int]:
        """Return the bytes over an edge between stages, forward and back, with handing them to several devices."""
        edge, (u, v) = self._problem.model.edges[e], self._problem.model.ends[e]
        source, target = self._runs_as(a, u), self._runs_as(b, v)
        return (
            edge.communication_bytes + target.forward_sync_bytes.get(edge.source, 0),
            edge.communication_bytes + source.backward_sync_bytes.get(edge.target, 0),
        )

    def _runs_as(self, s: int, layer: int) -> Configuration:
        one = self.stages[s]
        return self._problem.choices[layer][one.mix.chosen[one.layers.index(layer)]]

    def _sizes_divide(self) -> bool:
        if len({one.micro_batch for one in self.stages}) == 1:
            return True
        pairs = ((self.stages[a].micro_batch, self.stages[b].micro_batch) for a, b in self._ends.tolist())
        return all(max(pair) % min(pair) == 0 for pair in pairs)

    def _least(self) -> tuple[int, ...]:
        """Return the fewest micro-batches that all stages may have in flight; nothing if memory does not hold them."""
        counts = [0] * len(self.stages)
        for s in range(len(self.stages) - 1, -1, -1):
            counts[s] = self._needed(s, counts)
            if counts[s] > self.stages[s].most_in_flight:
                return ()
        return tuple(counts)

    def counts(self, rule: str) -> Iterator[tuple[int, ...]]:
        """Go through the micro-batches in flight that stages may have by a rule of ``IN_FLIGHT``, the fewest first.

        They are chosen from the last stage to the first. Only the fewest of all stages are ``least``.
        """
        stages, least = self.stages, rule == "least"
        chosen = [0] * len(stages)

        def choose(s: int) -> Iterator[tuple[int, ...]]:
            if s < 0:
                yield tuple(chosen)
                return
            one = stages[s]
            fewest = self._needed(s, chosen)
            for count in range(fewest, (fewest if least else one.most_in_flight) + 1):
                if count > one.most_in_flight:
                    return
                chosen[s] = count
                yield from choose(s - 1)

        return choose(len(stages) - 1)

    def _needed(self, s: int, counts: Sequence[int]) -> int:
        """Return the fewest micro-batches that a stage has to have in flight, given those of the stages behind it."""
        one = self.stages[s]
        needed = one.interval * one.micro_batch
        for y, size, more in self._behind[s]:
            needed = max(needed, counts[y] * size + more)
        return self._problem.micro_batches_with(one.micro_batch, needed)

    @property
    def passes(self) -> int:
        """Passes of all stages in an iteration."""
        return 2 * sum(self._problem.mini_batch // one.micro_batch for one in self.stages)

    def time(self, in_flight: Sequence[int]) -> int:
        """Return the simulated iteration in ticks, −1 if passes wait for each other."""
        counts = np.array(in_flight, dtype=np.int64)
        return int(pipeline_iteration(self._costs, self._sizes, counts, self._ends, self._ticks))

    def timed(self, in_flight: Sequence[int]) -> GraphPipeline | None:
        """Return the pipeline with so many micro-batches in flight, simulated; None if its rules forbid them.

        By the rule of the fewest it has those, whatever is asked for.
        """
        if not self.fits:
            return None
        fewest = self._fewest
        counts = fewest if self._problem.rules.in_flight == "least" else tuple(in_flight)
        time = self.time(counts) if self._allowed(counts, fewest) else -1
        return GraphPipeline(self.stages, counts, time) if time >= 0 else None

    def by(self, problem: GraphProblem) -> PipelineCandidate:
        """Return the same stages by the rule of numbers in flight of another problem, which differs in nothing else."""
        other = copy(self)
        other._problem = problem
        return other

    def best_in_flight(
        self, below: int | None = None, ended: Callable[[], bool] = lambda: False
    ) -> GraphPipeline | None:
        """Return the pipeline with numbers in flight that are good: as few, or as many as memory allows, and between.

        None if passes wait for each other however many there are.

        Parameters
        ----------
        below
            Ticks that are of no interest when they are reached: numbers are varied one by one only where a pipeline
            comes near. None: always.
        ended
            Whether to return the best so far, once there is one.

        Notes
        -----
        O(log M + stages) simulations.
        """
        fewest = self._fewest
        tried = [fewest] if self._problem.rules.in_flight == "least" else self._levels(fewest)
        timed: list[GraphPipeline] = []
        for in_flight in tried:
            if timed and ended():
                break
            time = self.time(in_flight)
            if time >= 0:
                timed.append(GraphPipeline(self.stages, in_flight, time))
        if not timed:
            return None
        best = min(timed, key=lambda one: one.iteration)
        if self._problem.rules.in_flight == "least" or (below is not None and best.iteration > _NEAR * below):
            return best
        for _ in range(_ROUNDS):
            before = best.iteration
            for s in range(len(self.stages)):
                if ended():
                    return best
                for changed in (best.in_flight[s] + 1, best.in_flight[s] - 1):
                    counts = list(best.in_flight)
                    counts[s] = changed
                    if best.iteration > self.bound and self._allowed_at(s, counts, fewest):
                        time = self.time(counts)
                        if 0 <= time < best.iteration:
                            best = GraphPipeline(self.stages, tuple(counts), time)
            if best.iteration == before:
                break
        return best

    def with_fewer_in_flight(self, found: GraphPipeline) -> GraphPipeline:
        """Return the pipeline with as few micro-batches in flight as do not make its iteration longer, about.

        Notes
        -----
        O(log M) simulations.
        """
        fewest = self._fewest
        low, high = 0, max(count - few for count, few in zip(found.in_flight, fewest, strict=True))
        best = found
        while low < high:
            more = (low + high) // 2
            counts = tuple(min(few + more, count) for few, count in zip(fewest, found.in_flight, strict=True))
            time = self.time(counts) if self._allowed(counts, fewest) else -1
            if 0 <= time <= found.iteration:
                best, high = GraphPipeline(self.stages, counts, time), more
            else:
                low = more + 1
        return best

    def _levels(self, fewest: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the fewest in flight, the most, and between them what round trips ask for, and 1, 2, 4, … more."""
        most = self._most(fewest)
        levels = {tuple(fewest): None, tuple(most): None}
        wanted = [self._round_trips(fewest, most, times) for times in _TRIPS]
        more = 1
        while more < max(many - few for few, many in zip(fewest, most, strict=True)):
            wanted.append(tuple(min(few + more, many) for few, many in zip(fewest, most, strict=True)))
            more *= 2
        for counts in wanted:
            if counts not in levels and self._allowed(counts, fewest):
                levels[counts] = None
        return list(levels)

    def _round_trips(self, fewest: Sequence[int], most: Sequence[int], times: float) -> tuple[int, ...]:
        """Return as many micro-batches as keep every stage busy while one goes there and back, times so many.

        The pipeline takes a micro-batch in as often as its slowest stage or transfer does (Little 1961).
        """
        batches = [row[3] for row in self._rows]
        period = max(1, *((forward + backward) * count for forward, backward, _, count in self._rows))
        for (a, b), (there, back) in zip(self._ends.tolist(), self._ticks.tolist(), strict=True):
            period = max(period, there * batches[a], back * batches[b])
        trips = [0] * len(self.stages)
        counts = [0] * len(self.stages)
        for s in range(len(self.stages) - 1, -1, -1):
            trips[s] += self._rows[s][0] + self._rows[s][1]
            for x, ticks in self._from[s]:
                trips[x] = max(trips[x], trips[s] + ticks)
            counts[s] = min(max(math.ceil(times * trips[s] * batches[s] / period), fewest[s]), most[s])
        for s in range(len(self.stages) - 1, -1, -1):
            counts[s] = min(max(counts[s], self._needed(s, counts)), most[s])
        return tuple(counts)

    def _most(self, fewest: Sequence[int]) -> tuple[int, ...]:
        """Return as many micro-batches in flight as memory allows, of all stages together, for sizes that are equal.

        A stage has to have more than those behind it, or all there are.
        """
        counts = [stage.most_in_flight for stage in self.stages]
        for s in range(len(self.stages)):
            batches = self._problem.mini_batch // self.stages[s].micro_batch
            for a, b in self._ends.tolist():
                if a == s and counts[a] < batches:
                    counts[b] = min(counts[b], counts[a] - 1)
        return tuple(counts) if self._allowed(counts, fewest) else tuple(fewest)

    def _allowed_at(self, s: int, counts: Sequence[int], fewest: Sequence[int]) -> bool:
        """Tell whether numbers in flight are allowed that were so before that of one stage was changed."""
        if not fewest[s] <= counts[s] <= self.stages[s].most_in_flight:
            return False
        return all(counts[x] >= self._needed(x, counts) for x in (s, *(a for a, _ in self._from[s])))

    def _allowed(self, counts: Sequence[int], fewest: Sequence[int]) -> bool:
        """Tell whether the stages may have so many micro-batches in flight."""
        for s, one in enumerate(self.stages):
            if not fewest[s] <= counts[s] <= one.most_in_flight:
                return False
            if counts[s] < self._needed(s, counts):
                return False
        return True
