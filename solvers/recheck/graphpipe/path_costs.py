"""Costs along paths of layers, as the search for chains of stages takes them: what every plan pays at least.

A stage S with b and d, and M = B/b micro-batches, is busy for M · Σ min (f + g) ticks, minima over the ways that its
layers can be run. Before and after, what enters it has to pass each layer of a path once, there and back, then a link:
every plan pays the least that any way costs, on the devices left, and of the transfer no less than with d links for the
bytes of this one edge. A channel carries all micro-batches one after the other. Costs above the limit stand for any
that are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mtpp.array_types import Int64Array, UInt64Array
from mtpp.checker.training.graphpipe.bounds import usable_passes
from mtpp.checker.training.graphpipe.costs import (
    PER_SECOND,
    GraphModel,
    LayerChoice,
    Passes,
    moved_bytes,
    transfer_ticks,
)
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.solvers.recheck.graphpipe.kernels.stage_chains import Limits, Paths
from mtpp.solvers.recheck.pipelines import LARGEST, TooLarge

MOST_COSTS = 3_000_000
"""Of layers by option."""

_BELOW = 1 - 2.0**-48
"""Makes a product of few factors in double precision at most its exact value."""


@dataclass(frozen=True)
class Chained:
    """What a search for chains is of.

    Attributes
    ----------
    ticks
        Limit of an iteration; None: only memory counts.
    memory_bytes
        Of each device.
    """

    model: GraphModel
    setting: Setting
    layers: LayerPaths
    ticks: int | None
    memory_bytes: int


def chain_arrays(asked: Chained, ways: Sequence[tuple[int, int]]) -> tuple[Paths, Limits] | None:
    """Return paths and limits for stages of so many (b, d); None if some layer can be run in none of these ways.

    Without a limit of ticks a stage's bytes take their place: those of its micro-batches in flight, the fewest that any
    stage has, are what its device has room for, and no more than its devices together leave to others.
    """
    setting = asked.setting
    order = [v for path in asked.layers.paths for v in path]
    if len(order) * len(ways) > MOST_COSTS:
        raise TooLarge(f"{len(order)} layers in {len(ways)} ways are too many")
    ways = [(b, d) for b, d in ways if any(usable_passes(asked.model, v, b // d) for v in order)]  # no stage has others
    most = max((d for _, d in ways), default=0)
    devices = min(setting.devices, most * len(order))
    limit = asked.memory_bytes if asked.ticks is None else asked.ticks
    if (len(order) + 4) * max(1, devices) * (max(limit, asked.memory_bytes) + 2) >= LARGEST:
        raise TooLarge("its costs do not fit 64 bits")
    cap = limit + 1
    least = [[_least(usable_passes(asked.model, v, b // d)) for b, d in ways] for v in order]
    if not all(any(one is not None for one in row) for row in least):
        return None
    few = min(setting.intervals)
    in_flight = [[few] * len(ways), [max(few, min(2, setting.batches(b))) for b, _ in ways]]
    bytes_cap = asked.memory_bytes + 1

    def load(v: int, o: int) -> int:
        one = least[v][o]
        if one is None:
            return cap
        if asked.ticks is None:
            return min(cap, one.fixed + few * one.kept)
        return min(cap, setting.batches(ways[o][0]) * one.both)

    places = _Places([len(path) for path in asked.layers.paths])
    loads = [[load(v, o) for v in range(len(order))] for o in range(len(ways))]
    kept = [[min(bytes_cap, one.kept) if (one := row[o]) else 0 for row in least] for o in range(len(ways))]
    work = [  # in the options that keep to the limit: no other is in a chain
        min((loads[o][v] * d for o, (_, d) in enumerate(ways) if loads[o][v] < cap), default=cap * devices)
        for v in range(len(order))
    ]
    passed = [[_fastest(row, kind, cap if asked.ticks is not None else 0) for row in least] for kind in range(2)]
    entering = _Entering(asked, ways, order, least, cap)
    paths = Paths(
        base=_int64(places.base),
        length=_int64(places.lengths),
        follows=np.array(asked.layers.follows, dtype=np.bool_),
        **entering.between_paths(),
        replicas=_int64([d for _, d in ways]),
        batches=_int64([setting.batches(b) for b, _ in ways]),
        in_flight=_int64(in_flight),
        gradients=np.array([_gradients(d, setting, asked.ticks) for _, d in ways], dtype=np.float64),
        load=_int64([places.sums(row) for row in loads]),
        kept=_int64([places.sums(row) for row in kept]),
        enter=entering.within_paths(places),
        leave=entering.out_of_paths(places),
        fixed=_int64(places.sums([min(bytes_cap, min(one.fixed for one in row if one is not None)) for row in least])),
        parameters=_int64(
            places.sums([min(2**53, min(one.parameter_bytes for one in asked.model.choices[v])) for v in order])
        ),
        work=_int64(places.sums(work)),
        passed=_int64([places.sums(row) for row in passed]),
        mixer=_mixer(len(places.lengths)),
    )
    line = setting.sequential and asked.ticks is not None
    return paths, Limits(limit, devices, asked.memory_bytes, line)


@dataclass(frozen=True)
class _Least:
    """The least that a layer costs with so many samples on a device, each over all its configurations."""

    both: int
    forward: int
    kept: int
    fixed: int


def _least(ways: Sequence[tuple[LayerChoice, Passes]]) -> _Least | None:
    if not ways:
        return None
    return _Least(
        min(passes.both for _, passes in ways),
        min(passes.forward for _, passes in ways),
        min(passes.kept_bytes for _, passes in ways),
        min(one.fixed_bytes for one, _ in ways),
    )


def _fastest(row: Sequence[_Least | None], kind: int, cap: int) -> int:
    return min(cap, min((one.forward if kind else one.both) for one in row if one is not None))


def _gradients(d: int, setting: Setting, ticks: int | None) -> float:
    return 0.0 if ticks is None else 2 * (d - 1) * PER_SECOND / (d * setting.bandwidth) * _BELOW


def _mixer(count: int) -> UInt64Array:
    drawn = np.random.default_rng(2025).integers(0, 2**63, count, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)


class _Places:
    """Places of sums along paths: one more on each path than it has layers."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths
        self.base = [sum(lengths[:c]) + c for c in range(len(lengths))]

    def sums(self, values: Sequence[int]) -> list[int]:
        """Return the sums of the layers before each place on its path."""
        found, at = [], 0
        for length in self.lengths:
            total = 0
            found.append(total)
            for value in values[at : at + length]:
                total += value
                found.append(total)
            at += length
        return found


class _Entering:
    """When what enters a stage may arrive at the earliest, by edge and option; nothing takes time without a limit.

    Layers before a stage of d devices are in other stages, of K - d devices at most.
    """

    def __init__(
        self,
        asked: Chained,
        ways: Sequence[tuple[int, int]],
        order: Sequence[int],
        least: Sequence[Sequence[_Least | None]],
        cap: int,
    ) -> None:
        self._asked, self._ways, self._cap = asked, ways, cap
        self._sizes = sorted({b for b, _ in ways})
        self._arrivals: dict[int, list[dict[int, int]]] = {}
        self._behind: dict[int, dict[int, int]] = {}
        for d in {d for _, d in ways}:
            others = [o for o, (_, other) in enumerate(ways) if other <= asked.setting.devices - d]
            self._arrivals[d] = [self._paths(order, least, others, kind) for kind in range(2)]
            self._behind[d] = self._paths_out(order, least, others)

    def _paths(
        self, order: Sequence[int], least: Sequence[Sequence[_Least | None]], others: Sequence[int], kind: int
    ) -> dict[int, int]:
        """Return the longest path up to and with each layer, of both passes or of the forward pass."""
        arrival: dict[int, int] = {}
        for v, row in zip(order, least, strict=True):
            before = max((arrival[u] for u, _ in self._asked.layers.before[v]), default=0)
            known = [one for o in others if (one := row[o]) is not None]
            fastest = min(((one.forward if kind else one.both) for one in known), default=self._cap)
            arrival[v] = min(self._cap, before + fastest)
        return arrival

    def _paths_out(
        self, order: Sequence[int], least: Sequence[Sequence[_Least | None]], others: Sequence[int]
    ) -> dict[int, int]:
        """Return the longest path from each layer on, or all its micro-batches: from its first forward pass to its end.

        The stage of a layer has all its micro-batches to do after the first, and those behind it as well.
        """
        batches = [self._asked.setting.batches(self._ways[o][0]) for o in others]
        taken: dict[int, int] = {}
        after: dict[int, int] = {}
        for v, row in zip(reversed(order), reversed(least), strict=True):
            known = [(count, one.both) for count, o in zip(batches, others, strict=True) if (one := row[o]) is not None]
            once = min((both for _, both in known), default=self._cap) + after.get(v, 0)
            taken[v] = min(self._cap, max(once, min((count * both for count, both in known), default=self._cap)))
            for u, _ in self._asked.layers.before[v]:
                after[u] = max(after.get(u, 0), taken[v])
        return taken

    def _left(self, v: int, size: int) -> list[int]:
        """Return what follows a forward pass until gradients are back over an edge to layer v, by option."""
        setting = self._asked.setting
        if self._asked.ticks is None:
            return [0] * len(self._ways)
        own = [transfer_ticks(moved_bytes(size, b, setting.times_of), d, setting) for b, d in self._ways]
        least = moved_bytes(size, self._sizes[0], setting.times_of)  # the reader's size may be any
        back = [transfer_ticks(least, d, setting) for _, d in self._ways]
        behind = [self._behind[d][v] for _, d in self._ways]
        return [min(self._cap, sum(parts)) for parts in zip(own, back, behind, strict=True)]

    def _ticks(self, u: int, size: int) -> list[list[int]]:
        """Return arrivals over an edge from layer u by option: there and back, there alone, all through the channel.

        All micro-batches but one go there, or come back, before the last one can, so that the channel to a stage takes
        M transfers one way and one the other, and the stage its passes of one micro-batch besides.
        """
        setting = self._asked.setting
        if self._asked.ticks is None:
            return [[0] * len(self._ways)] * 3

        def moved(b: int, d: int) -> int:
            return transfer_ticks(moved_bytes(size, b, setting.times_of), d, setting)

        there = {d: moved(self._sizes[0], d) for _, d in self._ways}  # the sender's size may be any, the least is first
        through = {d: min(setting.batches(b) * moved(b, d) for b in self._sizes) for _, d in self._ways}

        def channel(b: int, d: int) -> int:
            back = moved(b, d)
            return max(through[d] + back, there[d] + setting.batches(b) * back)

        return [
            [min(self._cap, self._arrivals[d][0][u] + there[d] + moved(b, d)) for b, d in self._ways],
            [min(self._cap, self._arrivals[d][1][u] + there[d]) for _, d in self._ways],
            [min(self._cap, self._arrivals[d][0][u] + channel(b, d)) for b, d in self._ways],
        ]

    def between_paths(self) -> dict[str, Int64Array]:
        """Return the CSR of edges between paths, both ways."""
        paths, before = self._asked.layers.paths, self._asked.layers.before
        path_of = {v: c for c, path in enumerate(paths) for v in path}
        sources = [[(path_of[u], self._ticks(u, size)) for u, size in before[path[0]]] for path in paths]
        after: list[list[tuple[int, list[int]]]] = [[] for _ in paths]
        for c, path in enumerate(paths):
            for u, size in before[path[0]]:
                after[path_of[u]].append((c, self._left(path[0], size)))
        left = [ticks for row in after for _, ticks in row]
        ticks = [ticks for row in sources for _, ticks in row]
        return {
            "before_start": _starts(sources),
            "before": _int64([b for row in sources for b, _ in row]),
            "before_ticks": _int64(ticks).reshape(len(ticks), 3, len(self._ways)),
            "after_start": _starts(after),
            "after": _int64([c for row in after for c, _ in row]),
            "after_ticks": _int64(left).reshape(len(left), len(self._ways)),
        }

    def out_of_paths(self, places: _Places) -> Int64Array:
        """Return what follows a stage that ends at each place of a path, but its last."""
        left = np.zeros((len(self._ways), places.base[-1] + places.lengths[-1] + 1), dtype=np.int64)
        for c, path in enumerate(self._asked.layers.paths):
            for q in range(1, len(path)):
                ((_, size),) = self._asked.layers.before[path[q]]
                left[:, places.base[c] + q] = self._left(path[q], size)
        return left

    def within_paths(self, places: _Places) -> Int64Array:
        """Return what enters a stage that begins at each place of a path, but its first."""
        enter = np.zeros((3, len(self._ways), places.base[-1] + places.lengths[-1] + 1), dtype=np.int64)
        for c, path in enumerate(self._asked.layers.paths):
            for q in range(1, len(path)):
                ((u, size),) = self._asked.layers.before[path[q]]
                enter[:, :, places.base[c] + q] = self._ticks(u, size)
        return enter


def _starts(rows: Sequence[Sequence[object]]) -> Int64Array:
    return _int64(np.cumsum([0, *map(len, rows)]))


def _int64(values: object) -> Int64Array:
    return np.array(values, dtype=np.int64)


@dataclass(frozen=True)
class LayerPaths:
    """Layers by position, cut into paths in a topological order.

    Take two paths whose layers cost the same one by one, with the same bytes between them, that read from the same
    layers outside and are read by the same, with the same bytes. Exchanging them maps the graph, with all its costs,
    onto itself. So a chain of stages from a downset on exists exactly if one does from the downset with the two
    exchanged, with as many devices; and of two stages that differ by exchanging paths of which the downset has taken as
    much, one is enough. As paths of a group have the same layers before them, none reads from another of its group, nor
    do two groups read from each other: they can be put in a topological order, equal ones side by side.

    Attributes
    ----------
    follows
        Whether a path is equal to the one before it.
    before
        Of each layer: those it reads from, with bytes.
    """

    paths: Sequence[Sequence[int]]
    follows: Sequence[bool]
    before: Mapping[int, Sequence[tuple[int, int]]]


def layer_paths(model: GraphModel, left_out: frozenset[int]) -> LayerPaths:
    """Cut the layers that are not left out into paths; edges of the others are ignored. O(layers + edges)."""
    kept = [v for v in range(len(model.ids)) if v not in left_out]
    before: dict[int, list[tuple[int, int]]] = {v: [] for v in kept}
    after: dict[int, list[tuple[int, int]]] = {v: [] for v in kept}
    for u, v, size in model.edges:
        if u not in left_out and v not in left_out:
            before[v].append((u, size))
            after[u].append((v, size))
    begins = [v for v in kept if not (len(before[v]) == 1 and len(after[before[v][0][0]]) == 1)]
    paths = []
    for v in begins:
        path = [v]
        while len(after[path[-1]]) == 1 and len(before[after[path[-1]][0][0]]) == 1:
            path.append(after[path[-1]][0][0])
        paths.append(path)
    groups: dict[object, list[list[int]]] = {}
    for path in paths:
        inner = tuple(after[u][0][1] for u, _ in pairwise(path))
        ends = tuple(sorted(before[path[0]])), tuple(sorted(after[path[-1]]))
        groups.setdefault((tuple(_costs(model, v) for v in path), inner, ends), []).append(path)
    order = _ordered(list(groups.values()), before)
    return LayerPaths(
        [path for group in order for path in group], [i > 0 for group in order for i in range(len(group))], before
    )


def _costs(model: GraphModel, layer: int) -> object:
    return tuple(
        (
            one.parameter_bytes,
            one.fixed_bytes,
            tuple(sorted(one.listed.items())),
            one.per_sample,
            one.kept_per_sample,
        )
        for one in model.choices[layer]
    )


def _ordered(
    groups: Sequence[list[list[int]]], before: Mapping[int, Sequence[tuple[int, int]]]
) -> list[list[list[int]]]:
    """Return groups so that those that a path reads from come first."""
    group_of = {v: g for g, group in enumerate(groups) for path in group for v in path}
    needed = [{group_of[u] for u, _ in before[group[0][0]]} for group in groups]
    order: list[int] = []
    placed: set[int] = set()
    left = list(range(len(groups)))
    while left:
        ready = [g for g in left if needed[g] <= placed]
        order += ready
        placed.update(ready)
        left = [g for g in left if g not in placed]
    return [groups[g] for g in order]
