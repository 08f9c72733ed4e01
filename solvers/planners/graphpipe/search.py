"""Search for a stage graph with a short iteration: annealed pipelines, simulated, with layers moved one by one.

Rules are taken apart into kinds of plans: one size of micro-batches or two of them, one or two kFkB orders, stages in
one line or not, any or the fewest micro-batches in flight, with replicas and recomputation or without. Which kinds
there are does not depend on what is asked for, and each is searched by itself in the same way; a result is the best of
all kinds that the rules allow. So rules that allow more kinds have a result that is no slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from mtpp.inference.topological import first_come_order
from mtpp.names import IN_FLIGHT
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.annealed_pipelines import AnnealedPipelines
from mtpp.solvers.planners.graphpipe.bound import none_below
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.least_costs import LeastCosts
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions
from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.training.graph_problem import GraphProblem, GraphRules

ANY, LEAST = IN_FLIGHT

_SIMULATED = 16
"""Pipelines of a kind that are simulated, those of the least J, for each kFkB order."""

_IMPROVED = 3
"""Pipelines of a kind whose layers are moved one by one, those of the shortest iterations."""

_MOST_LAYERS = 400
"""Of models whose kinds of plans are ruled out by a bound, which takes longer than a search of larger ones."""


def kinds_of_plans(problem: GraphProblem) -> list[GraphProblem]:
    """Return the kinds by size, replicas and recomputation; those that may have the shortest iterations come first."""
    rules, found = problem.rules, []
    singles = [(size,) for size in problem.sizes]
    for sizes in [*singles, *(combinations(problem.sizes, 2) if rules.per_stage else ())]:
        for data_parallel, recompute in _schemes(problem, sizes):
            own = replace(rules, data_parallel=data_parallel, recompute=recompute, per_stage=len(sizes) > 1)
            kind = problem.narrowed(own, sizes)
            if not kind.lacking(sizes):
                found.append(kind)
    return sorted(found, key=_estimate)


def _estimate(kind: GraphProblem) -> float:
    """Return about the ticks of an iteration: of a line of equal stages, or of the slowest layer in a stage by itself.

    A good plan that is found first rules out kinds whose bound is above it, before they are searched.
    """
    costs, layers = LeastCosts(kind), kind.ways.examples
    slowest = max(min(costs.load(layer, one) for one in costs.every) for layer in layers)
    return max(slowest, min(_line_of_equal_stages(kind, costs, one) for one in costs.every))


def _line_of_equal_stages(kind: GraphProblem, costs: LeastCosts, size: StageSize) -> float:
    """Return about the ticks of an iteration of a line of equal stages of a size, on all devices."""
    stages = min(max(1, kind.devices // size.data_parallel), len(kind.model.layers))
    pair = kind.ways.total(lambda layer: costs.passes(layer, size).both)
    gradients = kind.ways.total(lambda layer: costs.synchronisation(layer, size))
    slowest = max(costs.load(layer, size) for layer in kind.ways.examples)
    return max(slowest, ((costs.batches(size) + stages - 1) * pair + gradients) / stages)


def _schemes(problem: GraphProblem, sizes: Sequence[int]) -> list[tuple[bool, bool]]:
    """Return whether there are replicas and recomputation, for each kind of plans with such micro-batches that differ.

    Those asked for come first.
    """
    rules = problem.rules
    replicas = rules.data_parallel and any(d > 1 for size in sizes for d in problem.degrees(size))
    recomputes = rules.recompute and all(any(not one.recomputes for one in here) for here in problem.choices)
    recomputes = recomputes and any(one.recomputes for here in problem.choices for one in here)
    without = (rules.data_parallel, False) if replicas else (rules.data_parallel,)
    return list(product(without, (rules.recompute, False) if recomputes else (rules.recompute,)))


def forms(rules: GraphRules) -> Iterator[GraphRules]:
    """Go through orders of passes and forms of pipelines, those asked for first, of one or two kFkB orders.

    A line with the fewest micro-batches in flight may have more of them than the same stages as a graph, so that it
    counts as a plan of other forms only where any number may be in flight.
    """
    intervals = sorted(set(rules.intervals))
    ks = [*combinations(intervals, 2), *((k,) for k in intervals)]
    lines = [(rules.sequential, rules.in_flight)]
    if rules.in_flight == ANY:
        lines = list(dict.fromkeys(product((rules.sequential, True), IN_FLIGHT)))
    for (line, in_flight), chosen in product(lines, ks):
        yield replace(rules, sequential=line, in_flight=in_flight, intervals=chosen)


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

    def best(self) -> GraphPipeline | None:
        """Return the pipeline with the shortest iteration found, None if none fits into memory."""
        best: GraphPipeline | None = None
        for kind in kinds_of_plans(self._problem):
            if best is not None and (self._limits.ended() or self._ruled_out(kind, best.iteration)):
                continue
            best = self._better(kind, best)
        return best and PipelineCandidate(self._problem, best.stages).with_fewer_in_flight(best)

    def like_asked(self) -> GraphPipeline | None:
        """Return a pipeline that is found among those of the rules themselves, without looking at stricter ones."""
        best: GraphPipeline | None = None
        for sizes in [(size,) for size in self._problem.sizes]:
            kind = self._problem.narrowed(self._problem.rules, sizes)
            if not kind.lacking(sizes) and (best is None or not self._limits.ended()):
                best = self._better(kind, best, [self._problem.rules])
        return best

    def _ruled_out(self, kind: GraphProblem, ticks: int) -> bool:
        return len(kind.model.layers) <= _MOST_LAYERS and none_below(kind, ticks)

    def _better(
        self, kind: GraphProblem, best: GraphPipeline | None, of: Sequence[GraphRules] = ()
    ) -> GraphPipeline | None:
        """Return the best pipeline of a kind, or one that is no slower."""
        options = StageOptions(kind)
        found = list(AnnealedPipelines(kind, self._limits).found(options))
        fitting: dict[tuple[object, ...], list[PipelineCandidate]] = {}
        lines_ruled_out: bool | None = None
        for rules in of or forms(kind.rules):
            if best is not None and self._limits.ended():
                return best
            if best is not None and rules.sequential and not kind.rules.sequential:
                if lines_ruled_out is None:
                    lines = kind.narrowed(replace(kind.rules, sequential=True), kind.sizes)
                    lines_ruled_out = self._ruled_out(lines, best.iteration)
                if lines_ruled_out:
                    continue
            timed = self._by(kind.narrowed(rules, kind.sizes), options, found, fitting)
            timed = timed and self._as_asked(kind, timed)
            if timed is not None and (best is None or timed.iteration < best.iteration):
                best = timed
        return best

    def _as_asked(self, kind: GraphProblem, found: GraphPipeline) -> GraphPipeline | None:
        """Return a pipeline of a kind as one by the rules asked for."""
        problem, made = self._problem, []
        for one in found.stages:
            chosen = tuple(
                problem.choices[layer].index(kind.choices[layer][c])
                for layer, c in zip(one.layers, one.mix.chosen, strict=True)
            )
            stage = self._options.chosen(one.layers, one.micro_batch, one.data_parallel, chosen, one.interval)
            if stage is None:
                return None
            made.append(stage)
        return PipelineCandidate(problem, made).timed(found.in_flight)

    def _by(
        self,
        problem: GraphProblem,
        options: StageOptions,
        found: list[list[StageOption]],
        fitting: dict[tuple[object, ...], list[PipelineCandidate]],
    ) -> GraphPipeline | None:
        """Return the fastest of some pipelines by some rules, improved.

        Parameters
        ----------
        found
            Stages of each pipeline, in a topological order.
        fitting
            Candidates by form of the pipeline and kFkB orders, which is filled.
        """
        rules = problem.rules
        key = rules.sequential, tuple(rules.intervals)
        if key not in fitting:
            candidates = sorted(self._that_fit(problem, found), key=lambda one: one.bound)
            fitting[key] = candidates[: _SIMULATED * len(rules.intervals)]
        best: list[GraphPipeline] = []
        for candidate in (one.by(problem) for one in fitting[key]):
            if len(best) == _IMPROVED and candidate.bound >= best[-1].iteration:
                break
            beaten = best[-1].iteration if len(best) == _IMPROVED else None
            timed = candidate.best_in_flight(below=beaten, ended=self._limits.ended)
            if timed is not None:
                best = sorted([*best, timed], key=lambda one: one.iteration)[:_IMPROVED]
            if best and self._limits.ended():
                return best[0]
        neighbouring = NeighbouringPipelines(problem, options, self._limits.ended)
        return min((neighbouring.improved(one) for one in best), key=lambda one: one.iteration, default=None)

    def _that_fit(self, problem: GraphProblem, found: list[list[StageOption]]) -> Iterator[PipelineCandidate]:
        """Go through candidates that fit into memory; to the first one, once the search has to end."""
        for stages in _in_orders(found, problem.rules):
            candidate = PipelineCandidate(problem, stages)
            if candidate.fits:
                yield candidate
                if self._limits.ended():
                    return


def _in_orders(found: list[list[StageOption]], rules: GraphRules) -> Iterator[list[StageOption]]:
    """Go through pipelines with each of the kFkB orders in all stages, as far as they fit."""
    for stages, interval in product(found, rules.intervals):
        if all(interval <= one.most_in_flight for one in stages):
            yield [replace(one, interval=interval) for one in stages]


class NeighbouringPipelines:
    """Pipelines that differ from one by a layer, or by what a stage is replicated or interleaved.

    Parameters
    ----------
    ended
        Whether to stop here.
    """

    def __init__(self, problem: GraphProblem, options: StageOptions, ended: Callable[[], bool]) -> None:
        self._problem = problem
        self._options = options
        self._ended = ended
        self._place: dict[int, int] = {layer: place for place, layer in enumerate(problem.model.order)}

    def improved(self, best: GraphPipeline) -> GraphPipeline:
        """Return a pipeline that no neighbour found is faster than.

        Notes
        -----
        O(edges · log M) simulations for each improvement.
        """
        while True:
            better = self._better(best)
            if better is None:
                return best
            best = better

    def _better(self, best: GraphPipeline) -> GraphPipeline | None:
        for stages in self._neighbours(best):
            if self._ended():
                return None
            candidate = PipelineCandidate(self._problem, stages)
            if candidate.fits and candidate.bound < best.iteration:
                timed = candidate.best_in_flight(best.iteration, self._ended)
                if timed is not None and timed.iteration < best.iteration:
                    return timed
        return None

    def _neighbours(self, best: GraphPipeline) -> Iterator[list[StageOption]]:
        stage_of = {layer: s for s, one in enumerate(best.stages) for layer in one.layers}
        chosen = {v: c for one in best.stages for v, c in zip(one.layers, one.mix.chosen, strict=True)}
        tried = set()
        for u, v in self._problem.model.ends:
            for layer, target in ((u, stage_of[v]), (v, stage_of[u])):
                if stage_of[layer] != target and (layer, target) not in tried:
                    tried.add((layer, target))
                    moved = self._moved(best, layer, stage_of[layer], target, chosen)
                    if moved is not None:
                        yield moved
        for s, one in enumerate(best.stages):
            for changed in self._changed(one):
                yield [*best.stages[:s], changed, *best.stages[s + 1 :]]

    def _changed(self, one: StageOption) -> Iterator[StageOption]:
        """Go through other orders of a stage, and other sizes of its micro-batches where stages may differ."""
        rules = self._problem.rules
        for interval in rules.intervals:
            if interval != one.interval:
                yield from self._made(one, one.micro_batch, one.data_parallel, interval)
        if rules.per_stage:
            for size in self._problem.sizes:
                if size != one.micro_batch and one.data_parallel in self._problem.degrees(size):
                    yield from self._made(one, size, one.data_parallel, one.interval)

    def _made(self, one: StageOption, size: int, d: int, interval: int) -> Iterator[StageOption]:
        """Yield layers as another stage, if they can be: in other configurations where theirs have no costs."""
        chosen = self._options.closest(one.layers, one.mix.chosen, size // d)
        made = None if chosen is None else self._options.chosen(one.layers, size, d, chosen, interval)
        if made is not None:
            yield made

    def _moved(
        self, best: GraphPipeline, layer: int, source: int, target: int, chosen: Mapping[int, int]
    ) -> list[StageOption] | None:
        """Return the stages with a layer in another one; None if they make a cycle or do not fit.

        Parameters
        ----------
        chosen
            Configuration of each layer.
        """
        stages = list(best.stages)
        for s in (source, target):
            one = stages[s]
            layers = tuple(sorted({*one.layers} ^ {layer}, key=self._place.__getitem__))
            here = self._options.closest(layers, tuple(chosen[v] for v in layers), one.micro_batch // one.data_parallel)
            if here is None:
                return None
            made = self._options.chosen(layers, one.micro_batch, one.data_parallel, here, one.interval)
            if made is None:
                return None
            stages[s] = made
        return self._in_order([one for one in stages if one.layers])

    def _in_order(self, stages: list[StageOption]) -> list[StageOption] | None:
        """Return the stages in a topological order, that which they had as far as can be; None if there is none."""
        stage_of = {layer: s for s, one in enumerate(stages) for layer in one.layers}
        ends = {(stage_of[u], stage_of[v]) for u, v in self._problem.model.ends if stage_of[u] != stage_of[v]}
        order = first_come_order(len(stages), ends)
        return [stages[s] for s in order] if len(order) == len(stages) else None
