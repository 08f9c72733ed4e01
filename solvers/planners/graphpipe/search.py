"""Search for a stage graph with a short iteration: annealed pipelines, simulated, with layers moved one by one.

Pipelines by stricter rules (one line, as few micro-batches in flight as can be) are searched as well and count as plans
by the rules asked for, so that a plan is no slower than the one that stricter rules give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.annealed_pipelines import AnnealedPipelines
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.neighbouring import NeighbouringPipelines
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions
from mtpp.training.graph_problem import GraphProblem, GraphRules

_SIMULATED = 16
"""Pipelines that are simulated, those of the least J, for each kFkB order."""

_FAR, _NEAR = 1.1, 1.04
"""Times the iteration that is known already: pipelines with a bound above the first are not simulated, and those with
an iteration above the second keep their layers, for moving them mostly gains less."""

_IMPROVED = 3
"""Pipelines whose layers are moved one by one, those of the shortest iterations."""


class StageGraphSearch:
    """Search for the stage graph with the shortest iteration.

    Parameters
    ----------
    limits
        Threads, and when to end; the result depends on neither, unless the search was ended.
    """

    def __init__(self, problem: GraphProblem, limits: Limits | None = None) -> None:
        self._problem = problem
        self._limits = limits or Limits()
        self._options = StageOptions(problem)
        self._fitting: dict[tuple[object, ...], list[PipelineCandidate]] = {}

    def best(self) -> GraphPipeline | None:
        """Return the pipeline with the shortest iteration found, None if none fits into memory."""
        found = list(AnnealedPipelines(self._problem, self._limits).found(self._options))
        best: GraphPipeline | None = None
        for rules in _stricter(self._problem.rules):
            if best is not None and self._limits.ended():
                return best
            timed = self._by(rules, found, None if best is None else best.iteration)
            if timed is not None:
                timed = PipelineCandidate(self._problem, timed.stages).timed(timed.in_flight)
            if timed is not None and (best is None or timed.iteration < best.iteration):
                best = timed
        return best and PipelineCandidate(self._problem, best.stages).with_fewer_in_flight(best)

    def _by(self, rules: GraphRules, found: list[list[StageOption]], known: int | None) -> GraphPipeline | None:
        """Return the fastest of some pipelines by some rules, improved.

        Parameters
        ----------
        found
            Stages of each pipeline, in a topological order.
        known
            Iteration of a plan by other rules, in ticks.
        """
        problem = replace(self._problem, rules=rules)
        key = rules.sequential, rules.per_stage, tuple(rules.intervals)
        if key not in self._fitting:
            fitting = sorted(self._that_fit(problem, found), key=lambda one: one.bound)
            self._fitting[key] = fitting[: _SIMULATED * len(rules.intervals)]
        best: list[GraphPipeline] = []
        for candidate in (one.by(problem) for one in self._fitting[key]):
            if len(best) == _IMPROVED and candidate.bound >= best[-1].iteration:
                break
            if known is not None and candidate.bound >= _FAR * known:
                break
            beaten = [one.iteration for one in best[_IMPROVED - 1 :]] + ([] if known is None else [known])
            timed = candidate.best_in_flight(below=min(beaten, default=None), ended=self._limits.ended)
            if timed is not None:
                best = sorted([*best, timed], key=lambda one: one.iteration)[:_IMPROVED]
            if best and self._limits.ended():
                return best[0]
        neighbouring = NeighbouringPipelines(problem, self._options, self._limits.ended)
        near = [one for one in best if known is None or one.iteration < _NEAR * known]
        return min((neighbouring.improved(one) for one in near), key=lambda one: one.iteration, default=None)

    def _that_fit(self, problem: GraphProblem, found: list[list[StageOption]]) -> Iterator[PipelineCandidate]:
        """Go through candidates that fit into memory; to the first one, once the search has to end."""
        for stages in _in_orders(found, problem.rules):
            candidate = PipelineCandidate(problem, stages)
            if candidate.fits:
                yield candidate
                if self._limits.ended():
                    return


def _in_orders(found: list[list[StageOption]], rules: GraphRules) -> Iterator[list[StageOption]]:
    """Go through pipelines of allowed sizes with each of the kFkB orders in all stages, as far as they fit."""
    for stages, interval in product(found, rules.intervals):
        alike = rules.per_stage or len({one.micro_batch for one in stages}) == 1
        if alike and all(interval <= one.most_in_flight for one in stages):
            yield [replace(one, interval=interval) for one in stages]


def _stricter(rules: GraphRules) -> list[GraphRules]:
    """Return the rules themselves, and those that allow fewer plans.

    They ask for one line, as few in flight as can be, one size of micro-batches, or the least k of kFkB.
    """
    ways = dict.fromkeys(
        product(
            (rules.per_stage, False),
            (tuple(rules.intervals), (min(rules.intervals),)),
            (rules.sequential, True),
            (rules.in_flight, "least"),
        )
    )
    return [
        replace(rules, per_stage=per_stage, intervals=intervals, sequential=line, in_flight=count)
        for per_stage, intervals, line, count in ways
    ]
