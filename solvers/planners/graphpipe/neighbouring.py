"""Simulated moves: layers go to a stage that they read from or are read by, as long as the iteration gets shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mtpp.inference.topological import first_come_order
from mtpp.solvers.planners.graphpipe.candidate import GraphPipeline, PipelineCandidate
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions
from mtpp.training.graph_problem import GraphProblem


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
