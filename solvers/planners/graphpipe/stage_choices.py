"""Choices of an option for each stage of a grouping of layers, without those that a bound on their iteration rules out.

The bound is that of :func:`~mtpp.solvers.planners.graphpipe.kernels.path_bound.path_bound` with transfers at their
least: options are chosen from the last stage to the first, so that what follows a stage is known, and stages before it
take what their fastest options do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mtpp.solvers.planners.graphpipe.stage_options import StageOption
from mtpp.training.graph_problem import GraphProblem


class StageChoices:
    """Choices for groupings of the layers of a problem.

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
        found = {(s, s + 1): 2 * self._problem.costs.latency_ticks for s in range(line_of - 1)}
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
