"""All plans of a model of few layers, searched again for one that is below a bound; in plain Python.

Groupings of layers into stages; for each of them b, d and k of every stage and how its layers are run, the stages that
are read from last, so that the path bound of what follows a stage is known; and then micro-batches in flight. What is
left is simulated by the verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from mtpp.checker.report import Outcome
from mtpp.checker.training.graphpipe.bounds import UNITS, GraphClaim, usable_passes
from mtpp.checker.training.graphpipe.costs import (
    GraphModel,
    LayerChoice,
    moved_bytes,
    synchronisation_ticks,
    transfer_ticks,
)
from mtpp.checker.training.graphpipe.pipeline import Channel, Pipeline, TimedStage, edges_between, path_bound
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.checker.training.graphpipe.simulation import simulated_iteration
from mtpp.checker.training.graphpipe.validity import Schedule, fewest_in_flight, sizes_agree
from mtpp.solvers.recheck.pipelines import TooLarge, Watcher

Grouping = Sequence[Sequence[int]]
"""Layers of each stage, stages in a topological order."""

MOST_LAYERS = 8

MOST_STEPS = 20_000_000
"""Ways to run a stage after others that are looked at, and passes that are simulated, together."""

MOST_WAYS = 2_000
"""To choose configurations for a group, of which none is better than another."""


def groupings(layers: int, edges: Sequence[tuple[int, int]], most: int, *, line: bool) -> Iterator[Grouping]:
    """Yield every grouping into at most *most* stages once; with *line* every order in which stages can be lined up.

    Notes
    -----
    Set partitions as strings of restricted growth: as many as the Bell number of *layers*.
    """
    for label in _labels(layers, most):
        count = max(label) + 1
        ends = {(label[u], label[v]) for u, v in edges if label[u] != label[v]}
        first = _topological(count, ends)
        if first is None:
            continue
        groups = [[v for v in range(layers) if label[v] == s] for s in range(count)]
        for order in _lines(count, ends) if line else [first]:
            yield [groups[s] for s in order]


def _labels(layers: int, most: int) -> Iterator[tuple[int, ...]]:
    def grow(label: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(label) == layers:
            yield label
            return
        for s in range(min(used + 1, most)):
            yield from grow((*label, s), max(used, s + 1))

    yield from grow((), 0)


def _topological(count: int, ends: set[tuple[int, int]]) -> list[int] | None:
    order: list[int] = []
    while len(order) < count:
        ready = [s for s in range(count) if s not in order and all(a in order for a, b in ends if b == s)]
        if not ready:
            return None
        order += ready
    return order


def _lines(count: int, ends: set[tuple[int, int]]) -> Iterator[Sequence[int]]:
    for order in permutations(range(count)):
        place = {s: i for i, s in enumerate(order)}
        if all(place[a] < place[b] for a, b in ends):
            yield order


def recheck_exhaustive(claim: GraphClaim, watcher: Watcher) -> Outcome:
    """Tell whether no plan is below a bound.

    Returns
    -------
    Whether there is none, and that in words; None if the search is out of reach.
    """
    if claim.value == 0:
        return True, "nothing is below zero"
    try:
        search = _Plans(claim, watcher)
        found = search.finds()
    except TooLarge as error:
        return None, f"the search cannot be run again: {error}"
    unit = UNITS[claim.measure]
    if not found:
        return True, f"no plan is below {claim.value} {unit}: {search.simulated} simulated"
    return False, f"there is a plan below {claim.value} {unit}"


@dataclass(frozen=True)
class _Limits:
    """Ticks that an iteration has to be below, None for any, and bytes of each device."""

    below: int | None
    memory_bytes: int

    def too_long(self, ticks: int) -> bool:
        return self.below is not None and ticks >= self.below


class _Plans:
    """The search: all plans of a claim's model that are below its value.

    Attributes
    ----------
    simulated
        Plans that had to be.
    """

    def __init__(self, claim: GraphClaim, watcher: Watcher) -> None:
        if len(claim.model.ids) > MOST_LAYERS:
            raise TooLarge(f"the model has {len(claim.model.ids)} layers, more than {MOST_LAYERS}")
        self.simulated = 0
        self._steps = 0
        self._model, self._setting, self._watcher = claim.model, claim.setting, watcher
        iteration = claim.measure == "iteration"
        self._limits = _Limits(claim.value, claim.setting.memory_bytes) if iteration else _Limits(None, claim.value - 1)
        self._ways: dict[tuple[int, ...], list[StageWay]] = {}

    def finds(self) -> bool:
        """Tell whether there is a plan within the limits."""
        count, setting = len(self._model.ids), self._setting
        edges = [(u, v) for u, v, _ in self._model.edges]
        sizes: Sequence[Sequence[int]] = [setting.sizes] if setting.per_stage else [(size,) for size in setting.sizes]
        for grouping in groupings(count, edges, setting.devices, line=setting.sequential):
            self._watcher.alive()
            self._note(1)
            ways = [self._ways_of(group) for group in grouping]
            if not all(ways):
                continue
            for allowed in sizes:
                chosen = [[way for way in here if way.b in allowed] for here in ways]
                if all(chosen) and _Stages(self, grouping, chosen).finds():
                    return True
        return False

    def _note(self, steps: int) -> None:
        before = self._steps
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise TooLarge(f"more than {MOST_STEPS} steps")
        if self._steps >> 10 != before >> 10:
            self._watcher.searched(self._steps, MOST_STEPS)

    def _ways_of(self, group: Sequence[int]) -> list[StageWay]:
        key = tuple(group)
        if key not in self._ways:
            setting, limits = self._setting, self._limits
            self._ways[key] = [
                way
                for way in stage_ways(self._model, setting, group)
                if way.memory(way.k) <= limits.memory_bytes
                and not limits.too_long(setting.batches(way.b) * way.both + way.synchronisation)
            ]
        return self._ways[key]


class _Stages:
    """All ways to run one grouping."""

    def __init__(self, plans: _Plans, grouping: Grouping, ways: Sequence[Sequence[StageWay]]) -> None:
        self._plans, self._ways = plans, ways
        self._setting, self._limits = plans._setting, plans._limits
        count = len(grouping)
        stage_of = {layer: s for s, group in enumerate(grouping) for layer in group}
        model = plans._model
        ends = edges_between(model, stage_of, line_of=count if self._setting.sequential else 0)
        # Of each edge between two stages: its bytes, and its place in what the sender and the receiver add to that.
        places = [{edge: i for i, edge in enumerate(dearer_edges(model, group))} for group in grouping]
        self._moved: dict[tuple[int, int], list[tuple[int, int, int]]] = {pair: [] for pair in ends}
        for u, v, size in model.edges:
            a, b = stage_of[u], stage_of[v]
            if a != b:
                self._moved[a, b].append((size, places[a].get((u, v), -1), places[b].get((u, v), -1)))
        self._behind = [[t for s, t in ends if s == x] for x in range(count)]
        self._before = [0] * count  # ticks of the fastest path to each stage
        for s, t in ends:
            self._before[t] = max(self._before[t], self._before[s] + min(way.both for way in ways[s]))
        self._fewest = [0]  # devices of the first stages
        for here in ways:
            self._fewest.append(self._fewest[-1] + min(way.d for way in here))

    def finds(self) -> bool:
        """Tell whether there is a plan within the limits."""
        return any(
            self._flies(chosen, channels) for chosen, channels in self._choices([], {}, [], self._setting.devices)
        )

    def _choices(
        self, chosen: list[StageWay], taken: dict[int, int], channels: list[Channel], devices: int
    ) -> Iterator[tuple[list[StageWay], list[Channel]]]:
        """Go through the ways of all stages, the last one first; *chosen* are in the order of stages."""
        x = len(self._ways) - len(chosen) - 1
        if x < 0:
            yield chosen, sorted(channels, key=lambda one: (one.source, one.target))
            return
        for way in self._ways[x]:
            self._plans._note(1)
            if way.d > devices - self._fewest[x]:
                continue
            behind = [(y, chosen[y - x - 1]) for y in self._behind[x]]
            if not all(sizes_agree(way.b, other.b) for _, other in behind):
                continue
            more = [self._channel(x, way, y, other) for y, other in behind]
            longest = self._setting.batches(way.b) * way.both
            for one in more:
                longest = max(longest, way.both + one.forward + one.backward + taken[one.target])
            if self._limits.too_long(self._before[x] + longest):
                continue
            yield from self._choices([way, *chosen], {**taken, x: longest}, channels + more, devices - way.d)

    def _channel(self, x: int, way: StageWay, y: int, other: StageWay) -> Channel:
        width, times_of = min(way.d, other.d), self._setting.times_of
        moved = self._moved[x, y]
        there = sum(moved_bytes(size + other.extra[into], way.b, times_of) for size, _, into in moved)
        back = sum(moved_bytes(size + way.extra[out], other.b, times_of) for size, out, _ in moved)
        there, back = (transfer_ticks(count, width, self._setting) for count in (there, back))
        return Channel(x, y, there, back)

    def _flies(self, chosen: Sequence[StageWay], channels: Sequence[Channel]) -> bool:
        """Tell whether some numbers of micro-batches in flight make a plan within the limits."""
        batch, limits = self._setting.mini_batch, self._limits
        timed = [TimedStage(way.b, way.k, way.k, way.forward, way.backward, way.synchronisation) for way in chosen]
        if limits.below is not None and path_bound(Pipeline(batch, timed, channels)) >= limits.below:
            return False
        for counts in self._in_flight(chosen, []):
            self._plans.simulated += 1
            self._plans._note(sum(2 * batch // way.b for way in chosen))
            stages = [
                TimedStage(way.b, way.k, count, way.forward, way.backward, way.synchronisation)
                for way, count in zip(chosen, counts, strict=True)
            ]
            ticks = simulated_iteration(Pipeline(batch, stages, channels))
            if ticks is not None and not limits.too_long(ticks):
                return True
        return False

    def _in_flight(self, chosen: Sequence[StageWay], counts: list[int]) -> Iterator[list[int]]:
        """Go through the numbers in flight that memory has room for; where time does not count, only the fewest."""
        x = len(chosen) - len(counts) - 1
        if x < 0:
            yield counts
            return
        way = chosen[x]
        behind = [Schedule(chosen[y].b, chosen[y].k, counts[y - x - 1]) for y in self._behind[x]]
        fewest = max(way.k, fewest_in_flight(way.b, way.k, behind, self._setting.mini_batch))
        only_fewest = self._setting.least or self._limits.below is None
        for count in range(fewest, (fewest if only_fewest else self._setting.batches(way.b)) + 1):
            self._plans._note(1)
            if way.memory(count) > self._limits.memory_bytes:
                break
            yield from self._in_flight(chosen, [count, *counts])


class StageWay(NamedTuple):
    """b, d and k of a stage with what its layers cost in sum.

    Attributes
    ----------
    extra
        Bytes besides those of each of :func:`dearer_edges`: of the forward pass where it leads into the stage, of the
        backward pass where it leads out of it; and last 0, for all other edges.
    """

    b: int
    d: int
    k: int
    forward: int
    backward: int
    synchronisation: int
    fixed_bytes: int
    kept_bytes: int
    extra: tuple[int, ...]

    @property
    def both(self) -> int:
        """Ticks of the two passes."""
        return self.forward + self.backward

    def memory(self, in_flight: int) -> int:
        """Return the bytes on each device with so many micro-batches in flight."""
        return self.fixed_bytes + in_flight * self.kept_bytes


_Costs = tuple[int, ...]
_SUMS = 5
"""Costs that are not of an edge."""


def dearer_edges(model: GraphModel, layers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the edges with one end among some layers that may move more than their own bytes, in the model's order."""
    inside = set(layers)
    return [
        (u, v)
        for u, v, _ in model.edges
        if (u in inside) != (v in inside)
        and any(_extra(one, layer, u, v) for layer in (u, v) for one in model.choices[layer])
    ]


def stage_ways(model: GraphModel, setting: Setting, layers: Sequence[int]) -> list[StageWay]:
    """Return all ways to run some layers as a stage, whatever time and memory they take.

    Without ways that another one is at least as good as in every respect: both passes, the synchronisation and memory
    are sums over layers, the bytes that an edge to another stage moves besides its own are its layer's, and with orders
    of passes fixed an iteration never gets shorter when one of them grows.
    """
    found = []
    edges = dearer_edges(model, layers)
    for b, d in setting.ways():
        sums: list[_Costs] = [(0,) * (_SUMS + len(edges))]
        for layer in layers:
            costs = [
                (
                    *(passes.forward, passes.backward, one.parameter_bytes, one.fixed_bytes, passes.kept_bytes),
                    *(_extra(one, layer, u, v) for u, v in edges),
                )
                for one, passes in usable_passes(model, layer, b // d)
            ]
            sums = _undominated(tuple(map(sum, zip(one, more, strict=True))) for one in sums for more in costs)
        intervals = [k for k in setting.intervals if k <= setting.batches(b)]
        found += [
            StageWay(
                b, d, k, forward, backward, synchronisation_ticks(parameters, d, setting), fixed, kept, (*extra, 0)
            )
            for forward, backward, parameters, fixed, kept, *extra in sums
            for k in intervals
        ]
    return found


def _extra(one: LayerChoice, layer: int, u: int, v: int) -> int:
    """Return the bytes that a layer run so adds to an edge from u to v."""
    return one.forward_extra.get(u, 0) if layer == v else one.backward_extra.get(v, 0) if layer == u else 0


def _undominated(all_costs: Iterable[_Costs]) -> list[_Costs]:
    found: list[_Costs] = []
    for costs in sorted(set(all_costs)):  # a better one comes first
        if not any(all(a <= b for a, b in zip(other, costs, strict=True)) for other in found):
            found.append(costs)
            if len(found) > MOST_WAYS:
                raise TooLarge(f"a stage can be run in more than {MOST_WAYS} ways")
    return found
