"""All training plans of several levels of devices, searched again: that none is faster, or that there is none at all.

Written from :mod:`mtpp.checker.training.levels`, which states what plans take, never from what planners do.

Take a split at level l, with P copies of it, P being the product of the degrees around. Nothing in it may take as long
as the limit T: its stages and superstages, by themselves, not as long as P · T. Say that β micro-batches are in flight
*behind* the split, those of parts that come later, in whatever device they are. With x as its own sum of degrees, β + x
are in flight from it on. The *slack* of the split is the largest β with which all of its stages have room.

* A stage of degree d keeps ⌈(β + d) / d⌉ = ⌈β / d⌉ + 1 of them. If it has room for f at most, its slack is d · (f - 1).
* Inside a superstage of degree d, whose inner split has a sum of y, ⌈(β + d · y) / d⌉ = ⌈β / d⌉ + y are in flight, so
  that ⌈β / d⌉ are behind the inner split: the slack of the superstage is d times that of the inner split.
* A split that begins with a part and goes on with a rest, whose sum is x', has the less of the part's slack - x' and
  of the rest's.

Splits of the same layers with the same devices and sum differ by their slack alone, and more of it never harms. Unless
sums have to be met exactly, no more devices with no larger sum and no less slack are as good as well: a smaller sum
leaves fewer in flight in every part before. There is a plan if the split of all layers at the last level has a slack.

Splits are left out where the layers outside cannot be run by the devices outside: if these are m devices of level 1,
then Σ of the least t · compute over those layers is less than m · T. Nor can they be run where those inside are too
many for the devices inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array
from mtpp.checker.training.bounds import usable_degrees, usable_options
from mtpp.checker.training.model import LayerOption, TickModel, transfer_ticks
from mtpp.solvers.recheck.pipelines import (
    LARGEST,
    Searched,
    TooLarge,
    Watcher,
    all_downsets,
    choice_arrays,
    least_of_options,
    less_than,
    sums_over,
)

if TYPE_CHECKING:
    from mtpp.solvers.recheck.kernels.levels import Pairs, Parts, StageKinds, Tables
    from mtpp.solvers.recheck.kernels.splits import SplitRows, SplitRules

MOST_DOWNSETS = 4000
"""Downsets that a model may have to be searched: all pairs of them are kept."""

MOST_BYTES = 1_000_000_000
"""Memory that the search may take for what it keeps."""

_EFFORT_AT_ONCE = 30_000_000
"""Splits looked at between two looks at the watcher: about a tenth of a second."""

_STAGES_AT_ONCE = 750_000
"""The same of stages: pairs of downsets, times layers, times kinds of stages."""

_ROW_BYTES = 36
"""A part, or a split, takes 12; twice that in room to grow, and once more as it is copied."""


def search_levels(
    model: TickModel, system: dict[str, Any], below: Fraction | None, memory_bytes: int, watcher: Watcher
) -> Searched:
    """Tell whether there is any plan within which nothing takes as long as *below* ticks; None: whatever it takes.

    Parameters
    ----------
    system
        Of the plan, with a topology; its memory counts for nothing, *memory_bytes* is what devices have.

    Notes
    -----
    For D downsets, K devices at a level and each product of outer degrees, O(D³) times the parts that a set of layers
    can be and the splits that no other one is as good as; both are at most K · x, x being the largest sum of degrees.
    O(D²) memory times the same.
    """
    most = min(system["devices"], system["max_micro_batches"])
    if below == 0 or (system["exact_micro_batches"] and system["max_micro_batches"] > most):
        return Searched(False, 0, 0)
    degrees = usable_degrees(model, system)
    options = [[usable_options(model, system, v, t) for v in range(len(model.ids))] for t in degrees]
    if not all(any(by_layer[v] for by_layer in options) for v in range(len(model.ids))):
        return Searched(False, 0, 0)
    _refuse_large(model, system, options, most)
    return _Search(model, system, below, memory_bytes, watcher, degrees, options).run()


def _refuse_large(
    model: TickModel, system: dict[str, Any], options: Sequence[Sequence[Sequence[LayerOption]]], most: int
) -> None:
    """Refuse costs that could wrap: d · d times the time of a stage or superstage, and bytes of a stage."""
    levels = system["topology"]
    time = 2 * sum(ticks for _, _, ticks in model.edges)
    memory = 0
    for v in range(len(model.ids)):
        here = [option for by_layer in options for option in by_layer[v]]
        time += max(
            option.compute + option.weights + sum([*option.sync_in.values(), *option.sync_out.values()])
            for option in here
        )
        memory += max(option.a * (1 + most) + option.b for option in here)
    largest = [levels[0]["devices"] * time, memory]
    for level in levels[1:]:
        rate = level["bandwidth_bytes_per_s"]
        ticks = sum(transfer_ticks(2 * size, rate) for size in model.edge_bytes)
        largest.append(level["devices"] * (ticks + sum(transfer_ticks(4 * size, rate) for size in model.weight_bytes)))
    if max(largest) >= LARGEST:
        raise TooLarge("its costs do not fit 64 bits")


@dataclass(frozen=True)
class _Table:
    """Options of pairs of downsets inside one device of the next level: one table as the kernels have several."""

    start: Int64Array
    sums: NDArray[np.int32]
    slack: NDArray[np.int32]

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return self.start.nbytes + self.sums.nbytes + self.slack.nbytes


class _Search:
    """One search, level by level from the innermost one on."""

    def __init__(
        self,
        model: TickModel,
        system: dict[str, Any],
        below: Fraction | None,
        memory_bytes: int,
        watcher: Watcher,
        degrees: Sequence[int],
        options: Sequence[Sequence[Sequence[LayerOption]]],
    ) -> None:
        self._model, self._system, self._below, self._watcher = model, system, below, watcher
        self._degrees, self._options = degrees, options
        self._memory = min(memory_bytes, LARGEST)
        self._exactly: bool = system["exact_micro_batches"]
        self._cap: int = min(system["devices"], system["max_micro_batches"])
        self._counts: list[int] = [level["devices"] for level in system["topology"]]
        self._top = len(self._counts)
        self._looked_at = 0
        masks, grow = all_downsets(model, MOST_DOWNSETS, watcher.alive)
        costs = (
            lambda t, option: t * option.compute,
            lambda _, option: option.compute,
            lambda _, option: option.a + option.b,
        )
        sums = [sums_over(masks, grow, least_of_options(model, degrees, options, cost)) for cost in costs]
        self._weights = np.ascontiguousarray(np.array(sums, dtype=np.int64).T)
        self._work = np.ascontiguousarray(self._weights[:, 0])
        self._pairs = all_pairs(masks, len(model.ids), watcher.alive)
        self._held = sum(array.nbytes for array in self._pairs)
        self._room(8 * len(self._pairs.outer) * self._top)

    def run(self) -> Searched:
        """Search."""
        pairs, copies = self._pairs, self._copies()
        self._steps, self._step = sum(map(len, copies)), 0
        rates = [level["bandwidth_bytes_per_s"] for level in self._system["topology"]]
        self._outer = [outer_ticks(self._model, pairs, rate) for rate in rates[1:]]
        tables = self._of_stages(copies[0])
        for level in range(2, self._top + 1):
            tables = self._of_superstages(level, copies[level - 1], tables)
        (whole,) = tables.values()
        everything = pairs.place[pairs.below[-2]]  # the first pair of the largest downset is that with the empty one
        rows = whole.sums[whole.start[everything] : whole.start[everything + 1]]
        found = bool((rows == self._cap).any()) if self._exactly else len(rows) > 0
        return Searched(found, len(pairs.members), self._looked_at)

    def _copies(self) -> list[list[int]]:
        """Return for each level how many copies there can be of a split, ascending.

        One alone where time does not count: with fewer copies there is only more that can be in flight.
        """
        copies = [{1}]
        for level in range(self._top, 1, -1):
            copies.append({p * d for p in copies[-1] for d in self._data_degrees(level, p)})
        if self._below is None:
            copies = [{1} for _ in copies]
        return [sorted(one) for one in reversed(copies)]

    def _data_degrees(self, level: int, copies: int) -> range:
        """Return the degrees that a superstage can have in each of so many copies of a split."""
        most = min(self._counts[level - 1], self._cap // copies) if self._system["data_parallel"] else 1
        return range(1, most + 1)

    def _inside(self, copies: int) -> int:
        """Return under which number of copies a table is found."""
        return 1 if self._below is None else copies

    def _largest_sum(self, level: int, copies: int) -> int:
        """Return the largest sum of degrees that a split can have."""
        return min(prod(self._counts[:level]), self._cap // copies)

    def _most_slack(self, copies: int) -> int:
        """Return how many micro-batches can be in flight behind a part."""
        return -(-self._cap // copies)

    def _budget(self, factor: int) -> int:
        """Return the largest integer at least 0 that is below the limit of time times *factor*; 0 if none is."""
        return max(0, less_than(None if self._below is None else self._below * factor))

    def _room(self, size: int = 0) -> int:
        """Return how many bytes may be taken besides what is held already and *size*."""
        room = MOST_BYTES - self._held - size
        if room <= 0:
            raise TooLarge(f"it needs more than {MOST_BYTES // 10**6} MB of memory")
        return room

    def _seen(self, done: int, of: int) -> None:
        """Tell the watcher that a part of a step is done."""
        count = len(self._pairs.members)
        self._watcher.searched(min(self._step * count + done * count // of, self._steps * count), self._steps * count)

    def _of_stages(self, copies: Sequence[int]) -> dict[int, _Table]:
        """Return what splits into stages come to, by the number of their copies."""
        from mtpp.solvers.recheck.kernels.levels import fit_stages, stages_as_parts
        from mtpp.solvers.recheck.kernels.stages import Choices

        count = len(self._pairs.outer)
        kinds = self._stage_kinds()
        by_devices = sorted(range(len(kinds)), key=lambda g: (kinds[g][2], kinds[g][1]))
        order = np.array(by_devices, dtype=np.int64)
        self._room(4 * count * len(kinds))
        fits = np.zeros((count, len(kinds)), dtype=np.int32)
        self._held += fits.nbytes
        choices = Choices(**choice_arrays(self._model, self._options))
        at_once = max(1, _STAGES_AT_ONCE // (len(self._model.ids) * len(kinds)))
        tables = {}
        for p in copies:
            limited = self._limited(kinds, p)
            for first in range(0, count, at_once):
                self._seen(0, 1)
                last = min(first + at_once, count)
                rest = (self._pairs, self._weights, choices, limited, self._memory, fits)
                self._looked_at += fit_stages(first, last, *rest)
            most = (self._largest_sum(1, p), self._most_slack(p), self._exactly, self._room() // _ROW_BYTES)
            tables[p] = self._split(1, p, stages_as_parts(fits, limited, order, *most))
        self._held -= fits.nbytes
        return tables

    def _stage_kinds(self) -> list[tuple[int, int, int]]:
        """Return the place of t, d, and d · t of all kinds of stages."""
        most = self._cap if self._system["data_parallel"] else 1
        kinds = []
        for place, t in enumerate(self._degrees):
            kinds += [(place, d, d * t) for d in range(1, min(most, self._counts[0] // t) + 1)]
        return kinds

    def _limited(self, kinds: Sequence[tuple[int, int, int]], copies: int) -> StageKinds:
        """Return kinds of stages with what limits them in so many copies of a split."""
        from mtpp.solvers.recheck.kernels.levels import StageKinds

        largest, behind = self._largest_sum(1, copies), self._most_slack(copies)
        rows = [
            (
                place,
                d,
                uses,
                self._budget(copies * d * d),
                self._budget(copies * uses),
                self._budget(copies * d),
                -(-behind // d) if d <= largest else 0,
            )
            for place, d, uses in kinds
        ]
        return StageKinds(*(np.ascontiguousarray(column) for column in np.array(rows, dtype=np.int64).T))

    def _of_superstages(self, level: int, copies: Sequence[int], inside: Mapping[int, _Table]) -> dict[int, _Table]:
        """Return what splits into superstages of a level come to, *inside* being what the splits in these come to."""
        from mtpp.solvers.recheck.kernels.levels import SuperstageKinds, superstages_as_parts

        found = {}
        for p in copies:
            degrees = list(self._data_degrees(level, p))
            needed = sorted({self._inside(p * d) for d in degrees})
            kinds = [(d, self._budget(p * d * d), needed.index(self._inside(p * d))) for d in degrees]
            together = sum(inside[one].size for one in needed)
            self._room(together)
            self._held += together
            parts = superstages_as_parts(
                self._pairs,
                *self._outer[level - 2],
                SuperstageKinds(*(np.array(column, dtype=np.int64) for column in zip(*kinds, strict=True))),
                _together([inside[one] for one in needed]),
                self._largest_sum(level, p),
                self._most_slack(p),
                self._exactly,
                self._room() // _ROW_BYTES,
            )
            self._held -= together
            found[p] = self._split(level, p, parts)
        self._held -= sum(table.size for table in inside.values())
        return found

    def _split(self, level: int, copies: int, parts: Parts) -> _Table:
        """Split all sets of layers at a level; *parts* is what they can be as parts."""
        from mtpp.solvers.recheck.kernels.splits import SplitRules

        if parts.start[-1] < 0:
            raise TooLarge(f"it needs more than {MOST_BYTES // 10**6} MB of memory")
        held = self._held
        self._held += sum(array.nbytes for array in parts)
        devices, inside = self._counts[level - 1], prod(self._counts[: level - 1])
        largest = self._largest_sum(level, copies)
        self._room(12 * (devices + 1) * (largest + 1))
        outside = self._budget(self._system["devices"] - copies * devices * inside)
        rules = SplitRules(
            devices,
            largest,
            self._most_slack(copies),
            self._exactly,
            self._room() // (2 * _ROW_BYTES),
            np.array([self._budget(copies * k * inside) for k in range(devices + 1)], dtype=np.int64),
            int(self._work[-1]) - outside,
        )
        found = []
        for rows in self._slices(level, parts, rules, self._wanted(level, copies, rules)):
            found.append(rows)
            self._held += rows.counts.nbytes + rows.sums.nbytes + rows.slack.nbytes
        self._step += 1
        counts = np.zeros(len(self._pairs.outer), dtype=np.int32)  # of the last level, only some are known
        known = np.concatenate([rows.counts for rows in found])
        counts[: len(known)] = known
        table = _Table(
            offsets_of(counts),
            np.concatenate([rows.sums for rows in found]),
            np.concatenate([rows.slack for rows in found]),
        )
        self._held = held + table.size
        return table

    def _wanted(self, level: int, copies: int, rules: SplitRules) -> Int64Array:
        """Return which splits are asked for: those that can stand in a superstage, or of everything.

        As :func:`mtpp.solvers.recheck.levels.ends_of` does.
        """
        pairs = self._pairs
        wanted = self._work[pairs.outer] - self._work[pairs.inner] >= rules.least_work
        if level == self._top:
            wanted &= pairs.outer == len(pairs.members) - 1
        elif self._below is not None:
            edges, weights = self._outer[level - 1]
            communicated = np.zeros_like(wanted)
            for d in self._data_degrees(level + 1, 1):
                if copies % d == 0:  # copies / d of the split around, whatever the degrees around that are
                    communicated |= d * edges + (d - 1) * weights <= self._budget(copies * d)
            wanted &= communicated
        return ends_of(wanted, pairs)

    def _slices(self, level: int, parts: Parts, rules: SplitRules, wanted: Int64Array) -> Iterator[SplitRows]:
        """Split the layers above downsets, a few of these at a time; at the last level those above the empty one."""
        from mtpp.solvers.recheck.kernels.splits import split_layers

        last, effort = (1, 1) if level == self._top else (len(self._pairs.members), _EFFORT_AT_ONCE)
        first = 0
        while first < last:
            self._seen(first, last)
            rows = split_layers(first, effort, self._pairs, parts, self._work, rules, wanted)
            self._looked_at += rows.looked_at
            if rows.reached < 0:
                raise TooLarge(f"it needs more than {MOST_BYTES // 10**6} MB of memory")
            first = rows.reached
            yield rows


def _together(tables: Sequence[_Table]) -> Tables:
    """Return tables one after the other."""
    from mtpp.solvers.recheck.kernels.levels import Tables

    starts = np.cumsum([0, *(len(one.sums) for one in tables)])
    return Tables(
        np.stack([one.start + offset for one, offset in zip(tables, starts, strict=False)]),
        np.concatenate([one.sums for one in tables]),
        np.concatenate([one.slack for one in tables]),
    )


def all_pairs(masks: Sequence[int], layers: int, alive: Callable[[], None]) -> Pairs:
    """Return all pairs of a downset and a smaller one that it holds. O(downsets² · layers / 64).

    *alive* is called for each downset; it may raise what ends the search.
    """
    from mtpp.solvers.recheck.kernels.levels import Pairs

    count, words = len(masks), -(-layers // 64)
    members = np.array([[mask >> 64 * word & (2**64 - 1) for word in range(words)] for mask in masks], dtype=np.uint64)

    def held_by(o: int) -> NDArray[np.int32]:
        alive()
        return np.flatnonzero(((members[:o] & ~members[o]) == 0).all(axis=1)).astype(np.int32)

    below = [held_by(o) for o in range(count)]
    sizes = np.array([len(one) for one in below])
    inner = np.concatenate(below)
    above_pair = np.argsort(inner, kind="stable").astype(np.int32)
    place = np.empty_like(above_pair)
    place[above_pair] = np.arange(len(inner), dtype=np.int32)
    return Pairs(
        members,
        np.repeat(np.arange(count, dtype=np.int32), sizes),
        inner,
        offsets_of(sizes),
        offsets_of(np.bincount(inner, minlength=count)),
        above_pair,
        place,
    )


def outer_ticks(model: TickModel, pairs: Pairs, bandwidth_bytes_per_s: int) -> tuple[Int64Array, Int64Array]:
    """Return for each pair the ticks of edges that cross it, and of its layers' weights, in an outer network."""
    from mtpp.solvers.recheck.kernels.levels import crossing_ticks

    ends = np.array([(u, v) for u, v, _ in model.edges], dtype=np.int64).reshape(-1, 2)
    edges = np.array([transfer_ticks(2 * size, bandwidth_bytes_per_s) for size in model.edge_bytes], dtype=np.int64)
    by_layer = np.array(
        [transfer_ticks(4 * size, bandwidth_bytes_per_s) for size in model.weight_bytes], dtype=np.int64
    )
    bits = np.unpackbits(pairs.members.view(np.uint8), axis=1, bitorder="little")[:, : len(by_layer)]
    by_downset = bits.astype(np.int64) @ by_layer
    weights = by_downset[pairs.outer] - by_downset[pairs.inner]
    return crossing_ticks(pairs, ends[:, 0].copy(), ends[:, 1].copy(), edges), weights


def ends_of(wanted: NDArray[np.bool_], pairs: Pairs) -> Int64Array:
    """Return where in ``above_pair`` the last *wanted* pair of each smaller downset ends; 0 if there is none."""
    ends = np.zeros(len(pairs.members), dtype=np.int64)
    places = np.flatnonzero(wanted[pairs.above_pair])
    ends[pairs.inner[pairs.above_pair[places]]] = places + 1  # of several, the last one stays
    return ends


def offsets_of(counts: NDArray[Any]) -> Int64Array:
    """Return where rows of so many items each begin, and the end."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
