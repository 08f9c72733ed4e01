"""Costs by which stages on devices are scanned: on equal ones, or on several classes of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.stage_weights import stage_weights, strongest_weights
from mtpp.solvers.bounds.frontier.kernels.layers import Steps
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder

_CLOSE = 1 - 1e-12
"""Of the largest quotient: what may be as large, for all that a float can tell."""

_TINY = 1e-300


class ClassTerms(NamedTuple):
    """Costs on devices of one class: w(S) + c(S) ≤ room for every stage S within a limit of ticks.

    Attributes
    ----------
    streamed
        Whether parameters count that a fast memory does not hold.
    per_tick, per_byte
        Prices: a stage pays for its ticks, or else for the parameters that it holds in a limited memory.
    weight, transfer
        w of each op, and what cutting each tensor costs, int64, shapes (n,) and (m,).
    offset
        Room at a limit of no ticks.
    """

    streamed: bool
    per_tick: int
    per_byte: int
    weight: Int64Array
    transfer: Int64Array
    offset: int

    def room(self, ticks: int) -> int:
        """Return the most that a stage within a limit costs."""
        return self.per_tick * ticks + self.offset

    def ticks(self, cost: Int64Array) -> Int64Array:
        """Return for each cost, of those in some room, the least limit that has room for it."""
        return cost - self.offset if self.per_tick else np.zeros_like(cost)


@dataclass(frozen=True, eq=False)
class DeviceTerms:
    """Costs by class of device. With transport by neighbours a stage pays once at least for each tensor that it cuts.

    Attributes
    ----------
    classes
        Of equal devices a single one.
    class_of
        Class of each device.
    limits
        All that is known to hold of the stages of each class, of which :attr:`classes` has one: they keep to ticks, and
        to bytes where memory is limited.
    """

    classes: list[ClassTerms]
    class_of: list[int]
    limits: list[list[ClassTerms]]

    @classmethod
    def of(cls, instance: Instance, limit: int) -> DeviceTerms:
        """Return the costs that say most of stages within about so many ticks."""
        if instance.uniform:
            streamed, weight, constant = strongest_weights(instance)
            found = [ClassTerms(streamed, 1, 0, weight, instance.transfer, constant)]
        else:
            found = [_in_ticks(instance.of_class(c), limit) for c in range(len(instance.machine.classes))]
        held = [_in_bytes(instance, c, one) for c, one in enumerate(found)]
        limits = [[one] if other is None else [one, other] for one, other in zip(found, held, strict=True)]
        parts = [_part_of_memory(*rows, limit=limit) for rows in limits]
        largest = max(parts)  # one class at least pays for ticks, or limits would say nothing
        classes = [rows[-1] if part < min(1, largest) else rows[0] for rows, part in zip(limits, parts, strict=True)]
        return cls(classes, instance.cost.class_of(instance.k).tolist(), limits)

    @property
    def of_devices(self) -> list[ClassTerms]:
        """The costs on each device."""
        return [self.classes[c] for c in self.class_of]

    def steps(self, order: ScanOrder) -> list[Steps]:
        """Return the ops along an order with the costs of each class."""
        return [order.steps(one.weight, one.transfer) for one in self.classes]

    @cached_property
    def measures(self) -> list[Int64Array]:
        """Amounts of the ops by which rooms of devices are told: ticks of each class, and bytes; int64, shape (n,)."""
        return list({id(one.weight): one.weight for rows in self.limits for one in rows}.values())

    def rooms(self, ticks: int) -> list[list[int]]:
        """Return for each measure the most of it that each device holds within a limit of ticks.

        A set S within the room of a device with w' has w'(S) ≤ room, so y(S) ≤ room · max y/w', unless an op has y
        alone.
        """
        found = []
        for measure in self.measures:
            held = [min(_most(measure, one.weight, one.room(ticks)) for one in rows) for rows in self.limits]
            found.append([held[c] for c in self.class_of])
        return found


def _in_ticks(instance: Instance, limit: int) -> ClassTerms:
    """Return what stages pay on devices that are all of one class, so that they do the smallest part of all work."""
    streamed, along, constant = min(
        stage_weights(instance), key=lambda weights: (limit + weights.constant) / max(1, weights.total)
    )
    weight = np.empty_like(along)
    weight[instance.order] = along
    return ClassTerms(streamed, 1, 0, weight, instance.transfer, constant)


def _in_bytes(instance: Instance, c: int, in_ticks: ClassTerms) -> ClassTerms | None:
    """Return what stages hold of parameters on a class of devices; None if its memory is not limited.

    A proof says of each class what its ticks are, also where stages do not pay for them.
    """
    device = instance.machine.classes[c]
    if device.memory_bytes is None:
        return None
    held = device.memory_bytes - (device.activation_reserve_bytes if device.peak == "reserve" else 0)
    return ClassTerms(in_ticks.streamed, 0, 1, instance.param_bytes, np.zeros_like(instance.transfer), held)


def _part_of_memory(in_ticks: ClassTerms, in_bytes: ClassTerms | None = None, *, limit: int) -> float:
    """Return the part of all parameters that a device holds, as a multiple of that of all work that it can do."""
    if in_bytes is None or not in_bytes.weight.any():
        return inf
    can_do = in_ticks.room(limit) / max(1, int(in_ticks.weight.sum()))
    return in_bytes.offset / int(in_bytes.weight.sum()) / max(can_do, _TINY)


def _most(measured: Int64Array, own: Int64Array, room: int) -> int:
    """Return the most of a measure that ops of so much weight of their own have, all of it where nothing limits that.

    O(n), and exact: the quotients that are largest as floats are compared as fractions.
    """
    some = measured > 0
    if measured is own or not some.any():
        return room if some.any() else 0
    if not own[some].all():
        return int(measured.sum())
    ratio = measured[some] / own[some]
    near = ratio >= ratio.max() * _CLOSE
    pairs = set(zip(measured[some][near].tolist(), own[some][near].tolist(), strict=True))
    return int(max(Fraction(y, w) for y, w in pairs) * room)
