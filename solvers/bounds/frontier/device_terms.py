"""Ticks by which stages on devices are scanned: equal ones, or several classes of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights, stage_weights, strongest_weights
from mtpp.solvers.bounds.frontier.kernels.layers import Steps
from mtpp.solvers.bounds.frontier.scan_order import ScanOrder

_CLOSE = 1 - 1e-12
"""Of the largest quotient: what may be as large, for all that a float can tell."""


@dataclass(frozen=True, eq=False)
class DeviceTerms:
    """What stages cost at least, by class of device: w(S) + c(S) − C ≤ f(S), C being the same for all.

    With transport by neighbours a stage pays for each tensor that it cuts at least once, over the best link that its
    device has to any other one.

    Attributes
    ----------
    weights
        w and C of each class, ops as in the instance.
    transfer
        Ticks of each tensor on each class, int64, shape (m,).
    class_of
        Class of each device; of equal ones 0.
    """

    weights: list[StageWeights]
    transfer: list[Int64Array]
    class_of: list[int]

    @classmethod
    def of(cls, instance: Instance) -> DeviceTerms:
        """Return them; parameters are streamed where that makes the average stage more expensive on all classes."""
        if instance.uniform:
            return cls([strongest_weights(instance)], [instance.transfer], [0] * instance.k)
        classes = [instance.of_class(c) for c in range(len(instance.machine.classes))]
        weights = [strongest_weights(one) for one in classes]
        if len({(one.streamed, one.constant) for one in weights}) > 1:
            weights = [_plain(one) for one in classes]
        return cls(weights, [one.transfer for one in classes], instance.cost.class_of(instance.k).tolist())

    def steps(self, order: ScanOrder) -> list[Steps]:
        """Return the ops along an order with the ticks of each class."""
        return [order.steps(one.weight, ticks) for one, ticks in zip(self.weights, self.transfer, strict=True)]

    def rooms(self, room: int) -> list[list[int]]:
        """Return for each class as a measure the most of it that each device holds within a limit.

        A set S within *room* on a device with w' has w'(S) ≤ room, so w(S) ≤ room · max w/w', unless an op has w alone.
        """
        found = []
        for measure in self.weights:
            held = [_most(measure.weight, one.weight, room) for one in self.weights]
            found.append([held[c] for c in self.class_of])
        return found


def _plain(instance: Instance) -> StageWeights:
    weights = stage_weights(instance)[0]
    weight = np.empty_like(weights.weight)
    weight[instance.order] = weights.weight
    return weights._replace(weight=weight)


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
