"""Cost, latency and feasibility of every interval of a chain, as each alternative of a class of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray, Int64Array
from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.inference.weights import Weights
from mtpp.machine.device import Device
from mtpp.solvers.layer_chains.interval_sums import Pins, cuts_between, peaks_of_intervals, streamed, summed

NEVER = 2**62 - 1
"""Ticks of an interval that cannot be a stage; two of them do not overflow."""

LONGEST = 1_000
"""Ops of a chain at most: tables have a number for each interval and alternative."""


class Alternative(NamedTuple):
    """A way to run a stage: class of its device, by position in the machine's classes, and degree."""

    device_class: int
    degree: int = 1


class Choice(NamedTuple):
    """An alternative with the instance that it has its sizes and times from.

    Attributes
    ----------
    row
        Class of the device by its position in the instance's machine; None: as in the alternative.
    """

    alternative: Alternative
    instance: Instance
    row: int | None = None

    @property
    def device(self) -> Device:
        """Device that its stages stand on."""
        return self.instance.machine.classes[self.at]

    @property
    def at(self) -> int:
        """Class of the device in the instance's machine."""
        return self.alternative.device_class if self.row is None else self.row


@dataclass(frozen=True, eq=False)
class ChainTables:
    """Costs of all intervals [start, stop) of a chain of n ops.

    Attributes
    ----------
    alternatives
        In the order of the tables.
    cost
        Ticks that count for the bottleneck, int64, shape (alternatives, n + 1, n + 1).
    latency
        Ticks that count for the latency, of the same shape: the same ones, unless they are of another phase.
    feasible
        Whether the interval can be a stage: it has ops, cuts no group, and keeps to the memory of its device.
    """

    alternatives: tuple[Alternative, ...]
    cost: Int64Array
    latency: Int64Array
    feasible: BoolArray

    @classmethod
    def of(cls, choices: Sequence[Choice], groups: Iterable[Iterable[str]] = ()) -> ChainTables:
        """Return the tables of a chain, whose order is the same in all instances.

        Parameters
        ----------
        groups
            Names of ops that one stage has to hold.

        Raises
        ------
        InputError
            If there are too many ops, a group names none of them, or tensors pass from neighbour to neighbour.

        Notes
        -----
        O(n³ + pins · n²) for each instance, in array operations, and O(n²) for each alternative.
        """
        order = [choices[0].instance.op_names[v] for v in choices[0].instance.order.tolist()]
        if len(order) > LONGEST:
            raise InputError(f"a chain of {len(order):,} layers is longer than {LONGEST:,}", parameter="model")
        whole = _whole(order, groups)
        parts: dict[int, _Parts] = {}
        costs, feasible = [], []
        for choice in choices:
            instance = choice.instance
            if [instance.op_names[v] for v in instance.order.tolist()] != order:
                raise InputError("degrees differ in the order of layers", parameter="model")
            if id(instance) not in parts:
                parts[id(instance)] = _Parts.of(instance)
            cost, fits = parts[id(instance)].on(choice.at)
            costs.append(np.where(fits & whole, cost, NEVER))
            feasible.append(fits & whole)
        ticks = np.array(costs)
        return cls(tuple(choice.alternative for choice in choices), ticks, ticks, np.array(feasible))

    @property
    def op_count(self) -> int:
        """Length of the chain, n."""
        return int(self.cost.shape[1]) - 1

    @cached_property
    def classes(self) -> list[int]:
        """Classes of devices that have an alternative, ascending."""
        return sorted({one.device_class for one in self.alternatives})

    def with_latency(self, other: ChainTables) -> ChainTables:
        """Return the same costs with the latencies of another phase; feasible is what both phases can hold."""
        if other.alternatives != self.alternatives or other.cost.shape != self.cost.shape:
            raise InputError("the phases differ in layers or alternatives", parameter="phase")
        return replace(self, latency=other.latency, feasible=self.feasible & other.feasible)

    def at(self, degree: int) -> ChainTables:
        """Return the tables with alternatives of one degree alone; others keep their places and can have no stage."""
        own = np.array([one.degree == degree for one in self.alternatives])
        return replace(self, feasible=self.feasible & own[:, np.newaxis, np.newaxis])

    @property
    def degrees(self) -> list[int]:
        """Degrees of the alternatives, ascending."""
        return sorted({one.degree for one in self.alternatives})

    def allowed(self, most: int) -> BoolArray:
        """Return which intervals can be stages of at most so many ticks, bool, by alternative."""
        return self.feasible & (self.cost <= most)

    def by_class(self, rows: Sequence[int], most: int) -> BoolArray:
        """Return whether any alternative of each class can have the interval within *most* ticks, bool.

        Parameters
        ----------
        rows
            Classes in the order wanted.
        """
        allowed = self.allowed(most)
        return np.array([allowed[self._of_class(c)].any(axis=0) for c in rows])

    def latency_by_class(self, rows: Sequence[int], most: int) -> Int64Array:
        """Return the least latency of each interval on each class within *most* ticks, else :data:`NEVER`."""
        latency = np.where(self.allowed(most), self.latency, NEVER)
        return np.array([latency[self._of_class(c)].min(axis=0, initial=NEVER) for c in rows])

    def _of_class(self, c: int) -> list[int]:
        return [a for a, one in enumerate(self.alternatives) if one.device_class == c]

    def best_alternative(self, c: int, start: int, stop: int, most: int) -> int:
        """Return the alternative of a class for an interval: least latency, then cost, then degree."""
        allowed = self.allowed(most)[:, start, stop]
        return min(
            (a for a in self._of_class(c) if allowed[a]),
            key=lambda a: (self.latency[a, start, stop], self.cost[a, start, stop], self.alternatives[a].degree),
        )

    @cached_property
    def levels(self) -> Int64Array:
        """All costs of intervals that can be stages, ascending, each once."""
        return np.unique(self.cost[self.feasible])


class _Parts:
    """Parts of what intervals of an instance cost and hold, on any class of devices."""

    def __init__(self, instance: Instance, position: Int64Array) -> None:
        self._instance, n = instance, instance.op_count
        cost, in_chain = instance.cost, np.argsort(position)
        pins = Pins(instance.pin_offsets, position[instance.pins], n)
        self._order = in_chain
        self._moved = [pins.touched(row) - pins.inside(row) for row in cost.transfer]
        self._params = summed(cost.own_bytes[in_chain]) + _read(cost.weights, position, n)
        self._states = _read(cost.states, position, n)
        self._peaks = peaks_of_intervals(instance, position) if instance.device.peak == "order" else None
        ends = np.arange(n + 1)
        self._lengths = ends[np.newaxis, :] - ends[:, np.newaxis]

    @classmethod
    def of(cls, instance: Instance) -> _Parts:
        if instance.cost.boundary is not None:
            raise InputError(
                "neighbours do not go with degrees of tensor parallelism", where="/transport", remedy='use "direct"'
            )
        position = np.empty(instance.op_count, dtype=np.int64)
        position[instance.order] = np.arange(instance.op_count)
        return cls(instance, position)

    def on(self, c: int) -> tuple[Int64Array, BoolArray]:
        """Return the ticks of all intervals on a class of devices, and which of them it holds."""
        cost = self._instance.cost
        device = cost.machine.classes[c]
        ops = self._lengths > 0
        peak = self._peaks
        if peak is None:
            peak = np.where(ops, device.activation_reserve_bytes, 0)
        feasible = ops
        if device.memory_bytes is not None:
            feasible = ops & (self._params + self._states + peak <= device.memory_bytes)
        times = cost.stage_ticks[c]
        if times is not None:
            feasible = feasible & (self._lengths < len(times))
            return times[np.clip(self._lengths, 0, len(times) - 1)], feasible
        ticks = summed(cost.work[c][self._order]) + self._moved[int(cost.link_of[c])]
        if device.fast_memory_bytes is not None:
            ticks = ticks + streamed(device, np.where(feasible, self._params + peak, 0))
        return ticks, feasible


def _read(weights: Weights, position: Int64Array, op_count: int) -> Int64Array:
    """Return the bytes that each interval reads of some weights."""
    if not weights.names:
        return np.zeros((op_count + 1, op_count + 1), dtype=np.int64)
    return Pins(weights.offsets, position[weights.readers], op_count).touched(weights.bytes)


def _whole(order: Sequence[str], groups: Iterable[Iterable[str]]) -> BoolArray:
    """Return which intervals cut no group, bool, shape (n + 1, n + 1).

    Raises
    ------
    InputError
        If a group names an op that there is not.
    """
    position = {name: i for i, name in enumerate(order)}
    places = []
    for group in groups:
        members = list(group)
        unknown = next((name for name in members if name not in position), None)
        if unknown is not None:
            raise InputError(f"no op is called {unknown!r}", parameter="together")
        places.append([position[name] for name in members])
    cuts = cuts_between(filter(None, places), len(order))
    whole: BoolArray = cuts[:, np.newaxis] & cuts[np.newaxis, :]
    return whole
