"""Equal division: the baseline with the same degrees for all stages (Tarnawski et al. 2021, section 5, "equi")."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mtpp.host.stop_reason import StopReason
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.bounds.work import no_plan_because, work_bound
from mtpp.solvers.planners.layer_options import most_degrees
from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.training.model import TrainingModel
from mtpp.training.plan import LayerStage, NoPlan, TrainingPlan
from mtpp.training.problem import Choice, PlanningProblem

NAME = "equi"

ROUNDING = 1e-12
"""Times are compared in floating point first: those that are closer than this to the least are compared exactly."""

LEAST_REPEATS = 3
"""So many layers of one kind make a model that consists of repetitions."""


def plan(problem: PlanningProblem, limits: PlanLimits) -> TrainingPlan | NoPlan:
    """Return the fastest plan of w equal groups of layers, each with the same d and t, with a bound on all plans.

    Activations are computed again in every layer or in none. :func:`plan_equally` says more.
    """
    return plan_equally(problem, limits, problem.degrees, NAME)


def first_plan(problem: PlanningProblem, stopped: StopReason) -> TrainingPlan | None:
    """Return a plan of equal groups made in next to no time, None if none of a few fits."""
    return first_equal_plan(problem, problem.degrees, NAME, stopped)


def first_equal_plan(
    problem: PlanningProblem, degrees: Sequence[int], planner: str, stopped: StopReason
) -> TrainingPlan | None:
    """Return the fastest plan of the greatest number of groups that fits, of those halved again and again; or None."""
    from mtpp.solvers.last_look.line_plans import look_at_line_plan

    lower = work_bound(problem)
    if lower is None:
        return None
    search = _Search(problem, degrees)
    most = min(most_degrees(problem), len(problem.model.layers))
    counts = {max(1, most - less) >> halved for halved in range(most.bit_length()) for less in (0, 1, 2)}
    for groups in sorted(counts - {0}, reverse=True):
        for division in divisions(problem.model, most, [groups]):
            search.look_at(division)
        if search.stages is not None:
            made = TrainingPlan(problem, planner, search.stages, lower, stopped)
            look_at_line_plan(problem, made)
            return made
    return None


def plan_equally(
    problem: PlanningProblem, limits: PlanLimits, degrees: Sequence[int], planner: str
) -> TrainingPlan | NoPlan:
    """Return the fastest plan among equal divisions with t in *degrees*, called *planner*.

    The groups are those of :func:`~mtpp.solvers.planners.equal.equi.divisions`. All layers run with
    recomputation or all without, as far as they can; where that leaves several configurations of a layer, either all
    take the fastest or all that which takes the least memory for the micro-batches in flight. Among the plans of that
    family the result is the fastest; the bound is one on all plans, so the two seldom meet.

    Notes
    -----
    With equal degrees s is d times the stages from here to the end, so memory does not depend on d.
    O(layers + edges) for each division, t and way to configure layers, and O(stages) for each d.
    """
    lower = work_bound(problem)
    search = _Search(problem, degrees)
    stopped = StopReason.FINISHED
    for division in divisions(problem.model, most_degrees(problem)):
        if limits.stop:
            stopped = limits.stop
            break
        if search.look_at(division) and search.time is not None:
            limits.observer.incumbent(-(-search.time.numerator // search.time.denominator))
    if lower is not None and search.stages is not None:
        return TrainingPlan(problem, planner, search.stages, lower, stopped)
    finished = stopped == StopReason.FINISHED
    found = "no equal division of the layers fits on the devices" if finished else "none was found in time"
    return NoPlan(
        problem,
        planner,
        proven=lower is None,
        least_memory_bytes=search.least_memory if finished else None,
        stopped=stopped,
        reason=no_plan_because(problem) or found,
    )


@dataclass(frozen=True, eq=False)
class _Configured:
    """What all layers and edges take at a t, each layer as *chosen*: int64, by layer, and by edge at either end."""

    chosen: Sequence[int]
    compute: NDArray[np.int64]
    weights: NDArray[np.int64]
    memory_a: NDArray[np.int64]
    memory_b: NDArray[np.int64]
    at_source: NDArray[np.int64]
    at_target: NDArray[np.int64]


@dataclass
class _Search:
    """The fastest plan so far, its time, and the least memory with which there is one."""

    problem: PlanningProblem
    degrees: Sequence[int]
    stages: list[LayerStage] | None = None
    time: Fraction | None = None
    least_memory: int | None = None

    def __post_init__(self) -> None:
        by_degree = dict(zip(self.problem.degrees, self.problem.choices, strict=True))
        self._modes = {
            t: [_Mode(by_degree[t], recompute) for recompute in (False, True)]
            for t in self.degrees
            if t in by_degree and all(by_degree[t])
        }
        self._configured: dict[tuple[int, ...], _Configured] = {}
        self._ends = np.array(self.problem.model.ends, dtype=np.int64).reshape(-1, 2).T

    def look_at(self, division: Division) -> bool:
        """Try every t, d and configuration; tell whether that gives a better plan than before."""
        before = self.time
        in_flight = np.arange(division.stages, 0, -1, dtype=np.int64)
        for t, modes in self._modes.items():
            fitting = self._data_degrees(division.stages, t)
            if not fitting:
                continue
            copies = in_flight[division.stage_of].tolist()
            for chosen in dict.fromkeys(chosen for mode in modes for chosen in mode.choices(copies)):
                configured = self._configured_as(t, chosen)
                held = in_flight * _by_stage(division, configured.memory_a) + _by_stage(division, configured.memory_b)
                memory = int(held.max())
                if self.least_memory is None or memory < self.least_memory:
                    self.least_memory = memory
                if memory <= self.problem.memory_bytes:
                    self._take(division, t, configured, fitting)
        return self.time is not before

    def _data_degrees(self, stages: int, t: int) -> Sequence[int]:
        problem = self.problem
        most = min(problem.devices // (stages * t), problem.micro_batches // stages)
        fitting = problem.data_degrees[: bisect_right(problem.data_degrees, most)]
        return [d for d in fitting if not problem.exact_micro_batches or stages * d == problem.micro_batches]

    def _configured_as(self, t: int, chosen: tuple[int, ...]) -> _Configured:
        key = (t, *chosen)
        if key not in self._configured:
            self._configured[key] = _configured(self.problem, t, chosen)
        return self._configured[key]

    def _take(self, division: Division, t: int, configured: _Configured, fitting: Sequence[int]) -> None:
        compute = _by_stage(division, configured.compute) + self._edges(division, configured)
        weights = _by_stage(division, configured.weights)
        degrees = np.array(fitting, dtype=np.int64)
        spread = np.array([self.problem.spread(d) for d in fitting], dtype=np.int64)
        # The divisor is that of all stages: the slowest has the largest numerator, an exact integer.
        numerators = (compute * spread[:, np.newaxis] + (degrees - 1)[:, np.newaxis] * weights).max(axis=1)
        roughly = numerators / (degrees.astype(np.float64) * spread)
        for i in np.flatnonzero(roughly <= roughly.min() * (1 + ROUNDING)).tolist():
            d = fitting[i]
            time = Fraction(int(numerators[i]), d * int(spread[i]))
            if self.time is None or time < self.time:
                self.time = time
                self.stages = _stages(division, configured.chosen, d, t)

    def _edges(self, division: Division, configured: _Configured) -> NDArray[np.int64]:
        sources, targets = (division.stage_of[end] for end in self._ends)
        crossing = sources != targets
        total = np.zeros(division.stages, dtype=np.int64)
        np.add.at(total, sources[crossing], configured.at_source[crossing])
        np.add.at(total, targets[crossing], configured.at_target[crossing])
        return total


class _Mode:
    """Which choices the layers have at a t where all recompute their activations, or none, as far as they can."""

    def __init__(self, by_layer: Sequence[Sequence[Choice]], recompute: bool) -> None:
        self._by_layer = by_layer
        self._options = []
        for here in by_layer:
            alike = [c for c, one in enumerate(here) if one.configuration.recomputes is recompute]
            self._options.append(alike or list(range(len(here))))
        self._fastest = tuple(self._least(v, "compute_ticks", 1) for v in range(len(by_layer)))
        self._free = [v for v, options in enumerate(self._options) if len(options) > 1]

    def choices(self, copies: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield all layers' fastest choices, and those that hold least with *copies* micro-batches in flight."""
        yield self._fastest
        if self._free:
            leanest = list(self._fastest)
            for v in self._free:
                leanest[v] = self._least(v, "memory", copies[v])
            yield tuple(leanest)

    def _least(self, layer: int, first: str, copies: int) -> int:
        def cost(c: int) -> tuple[int, int]:
            one = self._by_layer[layer][c]
            memory = one.memory_a * copies + one.memory_b
            return (memory, one.compute_ticks) if first == "memory" else (one.compute_ticks, memory)

        return min(self._options[layer], key=cost)


def _configured(problem: PlanningProblem, t: int, chosen: Sequence[int]) -> _Configured:
    by_layer = problem.choices[problem.degrees.index(t)]
    choices = [here[c] for here, c in zip(by_layer, chosen, strict=True)]
    at_source, at_target = list(problem.edge_ticks), list(problem.edge_ticks)
    for v, one in enumerate(choices):
        for e, sync in zip(problem.edges_out[v], one.sync_out_ticks, strict=True):
            at_source[e] += sync
        for e, sync in zip(problem.edges_in[v], one.sync_in_ticks, strict=True):
            at_target[e] += sync

    def column(values: Sequence[int]) -> NDArray[np.int64]:
        return np.array(values, dtype=np.int64)

    return _Configured(
        chosen,
        compute=column([one.compute_ticks for one in choices]),
        weights=column([one.weight_ticks for one in choices]),
        memory_a=column([one.memory_a for one in choices]),
        memory_b=column([one.memory_b for one in choices]),
        at_source=column(at_source),
        at_target=column(at_target),
    )


def _by_stage(division: Division, by_layer: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.zeros(division.stages, dtype=np.int64)
    np.add.at(total, division.stage_of, by_layer)
    return total


def _stages(division: Division, chosen: Sequence[int], d: int, t: int) -> list[LayerStage]:
    layers = [np.flatnonzero(division.stage_of == i).tolist() for i in range(division.stages)]
    return [LayerStage(group, d, t, [chosen[v] for v in group]) for group in layers]


@dataclass(frozen=True)
class RepeatedLayers:
    """Layers of one kind, each of which needs the one before it, and where the others stand towards them.

    Attributes
    ----------
    kind
        Their name without numbers.
    layers
        Positions in the model, in the order in which they follow each other.
    place
        For each layer of the model: the number of the last repeated layer that it is or needs; -1 for those before all.
    feeds
        Layers that need nothing themselves and are needed only by repeated layers and what comes after them: masks and
        the like.
    """

    kind: str
    layers: Sequence[int]
    place: Sequence[int]
    feeds: Sequence[int]


def kind_of(name: str) -> str:
    """Return what a layer's name says without its numbers: ``h.3.mlp`` is ``h.#.mlp``, ``Layer #5`` is ``Layer``."""
    return re.sub(r"\d+", "#", name).rstrip("# ._-/:()[]'")


def repeated_layers(model: TrainingModel) -> RepeatedLayers | None:
    """Return the layers of the kind that comes up most often, if they follow one another; None if they do not.

    There have to be :data:`LEAST_REPEATS` of them, and each needs the one before it, directly or by way of others.
    Where several kinds come up equally often, the first that does counts. O(layers + edges) for each of these.
    """
    by_kind: dict[str, list[int]] = {}
    for v in model.order:
        by_kind.setdefault(kind_of(model.layers[v].name), []).append(v)
    before: list[list[int]] = [[] for _ in model.layers]
    after: list[list[int]] = [[] for _ in model.layers]
    for source, target in model.ends:
        before[target].append(source)
        after[source].append(target)
    most = max(map(len, by_kind.values()))
    if most < LEAST_REPEATS:
        return None
    for kind, layers in by_kind.items():
        if len(layers) < most:
            continue
        number = {v: i for i, v in enumerate(layers)}
        place = [-1] * len(model.layers)
        for v in model.order:
            needed = max((place[u] for u in before[v]), default=-1)
            # Of a chain each layer needs the one before it; any other is reached from an earlier one, or from none.
            if v in number and needed != number[v] - 1:
                break
            place[v] = number.get(v, needed)
        else:
            feeds = [
                v
                for v in range(len(model.layers))
                if place[v] < 0 and not before[v] and after[v] and all(place[w] >= 0 for w in after[v])
            ]
            return RepeatedLayers(kind, layers, place, feeds)
    return None


@dataclass(frozen=True, eq=False)
class Division:
    """A stage for each layer of the model, int64, shape (layers,), and their number; edges lead on."""

    stage_of: NDArray[np.int64]
    stages: int


def divisions(model: TrainingModel, most: int, counts: Iterable[int] | None = None) -> Iterator[Division]:
    """Yield the divisions of the layers into equal groups that have at most *most* stages, all different.

    They come by number of groups, as in *counts* if given, else from 1 on.

    If the model has :func:`repeated_layers`, these are divided. What comes before goes with the first group and what
    comes after with the last (Tarnawski et al. 2021, section 5); or both become stages of their own, where there is
    anything; and the same once more with those that feed repeated layers left with the first group. Otherwise all
    layers are divided, along each of several topological orders.

    Groups of n layers divided by w have n // w of them, the last n mod w groups one more: stages farther on have fewer
    micro-batches in flight, so that their devices have more room.
    """
    seen: set[bytes] = set()
    repeated = repeated_layers(model)
    bases = list(_orders(model)) if repeated is None else list(_around(repeated))
    for groups in range(1, most + 1) if counts is None else counts:
        for base in bases:
            division = base.divided(groups)
            if division is None or division.stages > most:
                continue
            key = division.stage_of.tobytes()
            if key not in seen:
                seen.add(key)
                yield division


@dataclass(frozen=True, eq=False)
class _Base:
    """Layers by number 0 … count - 1 of what is divided; -1 and count: stages of their own before and after that."""

    number: NDArray[np.int64]
    count: int

    def divided(self, groups: int) -> Division | None:
        if groups > self.count:
            return None
        size, longer = divmod(self.count, groups)
        shorter = groups - longer
        sizes = [size] * shorter + [size + 1] * longer
        first, last = bool((self.number < 0).any()), bool((self.number >= self.count).any())
        group_of = np.concatenate(([-1], np.repeat(np.arange(groups), sizes), [groups])).astype(np.int64)
        return Division(group_of[self.number + 1] + first, groups + first + last)


def _orders(model: TrainingModel) -> Iterator[_Base]:
    for order in topological_orders(model):
        number = np.empty(len(order), dtype=np.int64)
        number[list(order)] = np.arange(len(order))
        yield _Base(number, len(order))


def _around(repeated: RepeatedLayers) -> Iterator[_Base]:
    count = len(repeated.layers)
    place = np.array(repeated.place, dtype=np.int64)
    yield _Base(np.maximum(place, 0), count)
    # What needs the last repeated layer comes after all of them; the last itself does not.
    apart = place.copy()
    apart[place == count - 1] = count
    apart[repeated.layers[-1]] = count - 1
    yield _Base(apart, count)
    if repeated.feeds:
        fed = apart.copy()
        fed[list(repeated.feeds)] = 0
        yield _Base(fed, count)
