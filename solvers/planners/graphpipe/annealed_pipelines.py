"""Annealed pipelines: equal cuts of the layers, annealed by about their bound J, as graphs of stages and as lines.

They are annealed as graphs with any number of micro-batches in flight, the best of them as lines and with the fewest in
flight as well: so that they do not depend on which of these are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.names import IN_FLIGHT
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.graphpipe.branches import equal_branches
from mtpp.solvers.planners.graphpipe.kernels.equal_runs import equal_runs
from mtpp.solvers.planners.graphpipe.kernels.pipeline_cost import IMPOSSIBLE, AnnealedModel
from mtpp.solvers.planners.graphpipe.kernels.stage_annealing import anneal_stages
from mtpp.solvers.planners.graphpipe.stage_options import StageOption, StageOptions, closest_way
from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.solvers.threads import Threads
from mtpp.training.graph_problem import GraphProblem

_ROUNDS = ((1_000, 0.03, 3e-3), (3_000, 0.02, 1e-3), (8_000, 0.01, 5e-4))
"""Of annealing: steps, and temperatures at the beginning and at the end as parts of the cost."""

_DEVICES = 16
"""With more or fewer devices there are more or fewer steps in proportion, within :data:`_STEPS`."""

_STEPS = 0.4, 2
"""Times the steps of a round, at least and at most."""

_KEPT = 8
"""Pipelines that go on to the next round."""

_LEAST = 4
"""Pipelines that are annealed even when the time is up."""

_VARIED = 3
"""Pipelines that are annealed by other rules as well, those of the least cost."""


class AnnealedModels:
    """Models of a planning problem for annealing, by the sizes and replicas that stages may have."""

    def __init__(self, problem: GraphProblem) -> None:
        self._problem = problem

    def sizes(self, micro_batch: int) -> list[StageSize]:
        """Return the ways to have micro-batches of so many samples, with ascending replicas."""
        return [StageSize(micro_batch, d) for d in self._problem.degrees(micro_batch)]

    def build(self, sizes: Sequence[StageSize]) -> AnnealedModel:
        """Return the arrays for stages that have one of some sizes, in any graph, with any number in flight.

        Notes
        -----
        In place of a configuration that has no costs of some samples, the fastest that has counts
        (:meth:`~mtpp.solvers.planners.graphpipe.stage_options.StageOptions.closest`). A layer that has costs of as many
        in none takes for ever.
        """
        problem, costs = self._problem, self._problem.costs
        layers, of_kinds = len(problem.model.layers), problem.ways.of_kinds
        most = max(map(len, of_kinds))
        forever = 2**61 // (problem.mini_batch * problem.devices * layers)
        passes = np.full((3, len(sizes), most, len(of_kinds)), forever, dtype=np.int64)
        held = np.zeros((2, len(sizes), most, len(of_kinds)), dtype=np.int64)
        for kind, (v, here) in enumerate(zip(problem.ways.examples, of_kinds, strict=True)):
            for o, size in enumerate(sizes):
                ways = problem.layer_ways(v, size.samples)
                for c in range(len(here)) if ways else ():
                    ran, known = closest_way(ways, c)
                    passes[:, o, c, kind] = known.forward_ticks, known.backward_ticks, known.memory_bytes
                    held[:, o, c, kind] = here[ran].memory_b, here[ran].gradient_bytes
        around: list[list[int]] = [[] for _ in range(layers)]
        for u, v in problem.model.ends:
            around[u].append(v)
            around[v].append(u)
        options = [(one.data_parallel, one.micro_batch, problem.mini_batch // one.micro_batch) for one in sizes]
        rate, latency = costs.link.bandwidth_bytes_per_s, costs.link.latency_ps
        limits = [problem.devices, problem.memory_bytes, rate, latency, 0, 0]
        kinds = np.array(problem.ways.kinds)
        forward, backward, kept = (np.ascontiguousarray(one[:, :, kinds]) for one in passes)
        fixed, parameters = (np.ascontiguousarray(one[:, :, kinds]) for one in held)
        return AnnealedModel(
            options=np.array(options, dtype=np.int64),
            forward=forward,
            backward=backward,
            kept=kept,
            fixed=fixed,
            parameters=parameters,
            choices=np.array([len(here) for here in problem.choices], dtype=np.int64),
            edges=np.array(problem.model.ends, dtype=np.int64).reshape(-1, 2),
            moved=np.array([edge.communication_bytes / costs.times_of for edge in problem.model.edges]).reshape(-1),
            neighbour_start=np.cumsum([0, *map(len, around)], dtype=np.int64),
            neighbours=np.array([v for here in around for v in here], dtype=np.int64),
            limits=np.array(limits, dtype=np.int64),
            forever=forever,
        )


def by_rules(model: AnnealedModel, *, sequential: bool, in_flight: str) -> AnnealedModel:
    """Return the same model with stages in one line or not, and any number in flight or the fewest."""
    limits = model.limits.copy()
    limits[4:] = int(sequential), int(in_flight == "least")
    return model._replace(limits=limits)


class _Setting(NamedTuple):
    """What a pipeline is annealed with.

    Attributes
    ----------
    micro_batch
        Samples, the same in all stages; None: each may have its own.
    """

    micro_batch: int | None
    sequential: bool
    in_flight: str


@dataclass(frozen=True)
class _Start:
    """A pipeline as annealing has it.

    Attributes
    ----------
    first
        Option that all stages had at first.
    stage, option, choice
        As :func:`anneal_stages` takes them, int64.
    """

    setting: _Setting
    first: int
    stage: Int64Array
    option: Int64Array
    choice: Int64Array
    stages: int
    cost: float = IMPOSSIBLE


class AnnealedPipelines:
    """Pipelines with low costs, whatever their simulation will say.

    Parameters
    ----------
    limits
        Threads, and when to end; the result depends on neither, unless the search was ended.
    """

    def __init__(self, problem: GraphProblem, limits: Limits) -> None:
        self._problem = problem
        self._limits = limits
        self._models = AnnealedModels(problem)
        self._done = 0
        self._model = lru_cache(maxsize=None)(self._made_model)
        layers = [layer for group in equal_branches(problem.model, problem.ways.kinds) for layer in chain(*group)]
        self._order = np.array(layers, dtype=np.int64)

    def found(self, options: StageOptions) -> Iterator[list[StageOption]]:
        """Go through pipelines that were found, each once, as stages in a topological order.

        Those of the least cost come first where the search was ended.

        Notes
        -----
        O((sizes · degrees + 20) · 10⁴ · (layers + edges + stages)).
        """
        with Threads(self._limits.jobs) as threads:
            starts = self._annealed(threads)
        if self._limits.ended():
            starts.sort(key=lambda one: one.cost)
        seen = set()
        for start in starts:
            stages = self._stages(start, options) if start.cost < IMPOSSIBLE else None
            if stages is not None:
                key = tuple((one.layers, one.data_parallel, one.micro_batch, one.mix.chosen) for one in stages)
                if key not in seen:
                    seen.add(key)
                    yield stages

    def _annealed(self, threads: Threads) -> list[_Start]:
        problem = self._problem
        rules = False, IN_FLIGHT[0]
        settings = [_Setting(size, *rules) for size in problem.sizes if not problem.lacking([size])]
        left = [self._start(one, i) for one in settings for i in range(len(self._model(one)[0]))]
        if not left:  # no size will do for all layers: stages differ in it
            left = [self._start(_Setting(None, *rules), 0)]
        others: list[_Start] = []
        found: list[_Start] = []
        times = min(max(problem.devices / _DEVICES, _STEPS[0]), _STEPS[1])
        for number, (steps, hot, cold) in enumerate(_ROUNDS):
            work = partial(self._anneal, steps=int(times * steps), seed=number + 1, hot=hot, cold=cold)
            annealed = threads.map(work, left + others)
            found += annealed
            left, others = _cheapest(annealed[: len(left)]), annealed[len(left) :]
            if self._limits.ended():
                return found
            if number == 0:
                others = [self._start(rules, one.first) for one in left[:_VARIED] for rules in _others(one.setting)]
        if problem.rules.per_stage and settings:
            found += threads.map(work, map(self._any_size, left))
        return found

    def _start(self, setting: _Setting, first: int) -> _Start:
        """Return an equal cut of the layers into stages of one option, or into such as some option has costs of."""
        sizes, model = self._model(setting)
        fastest = np.asarray((model.forward[first] + model.backward[first]).min(axis=0))
        most = min(self._problem.devices, len(self._order))
        option = np.full(most + 2, first, dtype=np.int64)
        if fastest.max() >= model.forever:
            stage, options = runnable_runs(model, self._order, first)
            if len(options) <= most:
                option[: len(options)] = options
            else:
                stage[:] = 0
        else:
            runs = max(1, min(most, self._problem.devices // sizes[first].data_parallel))
            stage = equal_runs(fastest, self._order, runs)
        choice = np.zeros(len(self._order), dtype=np.int64)
        return _Start(setting, first, stage, option, choice, int(stage.max()) + 1)

    def _any_size(self, start: _Start) -> _Start:
        """Return a pipeline to be annealed on with any size of micro-batches in each stage."""
        setting = start.setting._replace(micro_batch=None)
        before, sizes = self._model(start.setting)[0], self._model(setting)[0]
        option = np.array([sizes.index(before[o]) for o in start.option], dtype=np.int64)
        return replace(start, setting=setting, option=option)

    def _made_model(self, setting: _Setting) -> tuple[Sequence[StageSize], AnnealedModel]:
        if setting.sequential or setting.in_flight != IN_FLIGHT[0]:
            sizes, model = self._model(setting._replace(sequential=False, in_flight=IN_FLIGHT[0]))
            return sizes, by_rules(model, sequential=setting.sequential, in_flight=setting.in_flight)
        all_sizes = self._problem.sizes if setting.micro_batch is None else [setting.micro_batch]
        sizes = [one for size in all_sizes for one in self._models.sizes(size)]
        return sizes, self._models.build(sizes)

    def _anneal(self, start: _Start, *, steps: int, seed: int, hot: float, cold: float) -> _Start:
        """Return a pipeline annealed on; the same once the search has to end."""
        if self._done >= _LEAST and self._limits.ended():
            return start
        stage, option, choice = start.stage.copy(), start.option.copy(), start.choice.copy()
        _, model = self._model(start.setting)
        cost, stages = anneal_stages(model, stage, option, choice, start.stages, steps, seed, hot, cold)
        self._done += 1
        return replace(start, stage=stage, option=option, choice=choice, stages=stages, cost=cost)

    def _stages(self, start: _Start, options: StageOptions) -> list[StageOption] | None:
        """Return the stages with exact costs, in 1F1B order; None if one does not fit at all."""
        sizes, _ = self._model(start.setting)
        made = []
        for s in range(start.stages):
            layers = tuple(layer for layer in self._problem.model.order if start.stage[layer] == s)
            size = sizes[start.option[s]]
            chosen = options.closest(layers, tuple(int(start.choice[layer]) for layer in layers), size.samples)
            if chosen is None:
                return None
            stage = options.chosen(layers, size.micro_batch, size.data_parallel, chosen)
            if stage is None:
                return None
            made.append(stage)
        return made


def _others(setting: _Setting) -> list[_Setting]:
    """Return the same as graphs and lines with any and the fewest in flight, but for the rules that it has."""
    rules = product((False, True), IN_FLIGHT)
    found = [setting._replace(sequential=line, in_flight=kept) for line, kept in rules]
    return [one for one in found if one != setting]


def _cheapest(starts: Sequence[_Start]) -> list[_Start]:
    possible = [one for one in starts if one.cost < IMPOSSIBLE]
    return sorted(possible, key=lambda one: one.cost)[:_KEPT]


def runnable_runs(model: AnnealedModel, order: Int64Array, first: int) -> tuple[Int64Array, list[int]]:
    """Cut an order of the layers into runs that can each be a stage of some option, on few devices.

    Parameters
    ----------
    first
        Option that is taken where it is as good as any.

    Returns
    -------
    Run of each layer, int64, and the option of each run. As few devices as cuts of this order need, then the longest
    runs are halved as long as devices are left.

    Notes
    -----
    O(layers · options). A layer that no option has costs of is a run by itself.
    """
    pair = np.asarray((model.forward + model.backward).min(axis=1))
    runnable = [(pair[:, layer] < model.forever).tolist() for layer in order]
    times = pair * model.options[:, 2:3]
    runs = _fewest_devices(runnable, [int(d) for d in model.options[:, 0]], first)
    left = int(model.limits[0]) - sum(int(model.options[option, 0]) for _, _, option in runs)
    while True:
        ticks = [int(times[option, order[begin:end]].sum()) for begin, end, option in runs]
        longest = sorted(range(len(runs)), key=lambda r: -ticks[r])
        halved = next(
            (r for r in longest if runs[r][1] - runs[r][0] > 1 and int(model.options[runs[r][2], 0]) <= left), None
        )
        if halved is None:
            break
        begin, end, option = runs[halved]
        sums = np.cumsum(times[option, order[begin:end]])
        middle = begin + min(max(1, int(np.searchsorted(sums, sums[-1] / 2))), end - begin - 1)
        runs[halved : halved + 1] = [(begin, middle, option), (middle, end, option)]
        left -= int(model.options[option, 0])
    stage = np.zeros(len(order), dtype=np.int64)
    for r, (begin, end, _) in enumerate(runs):
        stage[order[begin:end]] = r
    return stage, [option for _, _, option in runs]


def _fewest_devices(
    runnable: Sequence[Sequence[bool]], replicas: Sequence[int], first: int
) -> list[tuple[int, int, int]]:
    """Return begin, end and option of runs that all layers of an order can be in, on the fewest devices."""
    count, options = len(runnable), [first, *(o for o in range(len(replicas)) if o != first)]
    reach = dict.fromkeys(options, count)
    ends: list[list[int]] = [[] for _ in range(count)]
    for at in range(count - 1, -1, -1):
        for o in options:
            if not runnable[at][o]:
                reach[o] = at
        ends[at] = [reach[o] for o in options]
    used: dict[int, tuple[int, list[tuple[int, int, int]]]] = {0: (0, [])}
    for at in range(count):
        if at not in used:
            continue
        devices, runs = used.pop(at)
        for o, end in zip(options, ends[at], strict=True):
            end = max(end, at + 1)  # a layer that cannot be run makes a run that costs for ever
            found = devices + replicas[o], [*runs, (at, end, o)]
            if end not in used or found[0] < used[end][0]:
                used[end] = found
    return used[count][1]
