"""Weights of ops whose sum, with what a stage cuts, is at most its cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.units import PICOSECONDS


class StageWeights(NamedTuple):
    """w and C with w(S) + c(S) − C ≤ f(S) for every stage S; see :mod:`mtpp.solvers.bounds.node`.

    Attributes
    ----------
    streamed
        Whether parameters count that a fast memory does not hold.
    weight
        w in ticks, ops numbered along the instance's order, int64, shape (n,).
    constant
        C in ticks, at least 0.
    """

    streamed: bool
    weight: Int64Array
    constant: int

    @property
    def total(self) -> int:
        """Weight of all ops."""
        return int(self.weight.sum())


def stage_weights(instance: Instance) -> list[StageWeights]:
    """Return the plain weights, and the streamed ones where there is a fast memory that not everything fits into."""
    plain = StageWeights(False, instance.work[instance.order], 0)
    system = instance.device
    memory = system.fast_memory_bytes
    if memory is None or memory >= instance.most_bytes:
        return [plain]
    held = instance.param_bytes[instance.order].tolist()
    rate = system.link.rate
    second, bandwidth = PICOSECONDS["s"] * rate.denominator, rate.numerator
    streamed = np.array([size * second // bandwidth for size in held], dtype=np.int64)
    reserve = system.activation_reserve_bytes if system.peak == "reserve" else 0
    return [plain, StageWeights(True, plain.weight + streamed, (memory - reserve) * second // bandwidth)]


def strongest_weights(instance: Instance) -> StageWeights:
    """Return the weights that give the more expensive average stage, ops numbered as in the instance."""
    strongest = max(stage_weights(instance), key=lambda weights: weights.total - instance.k * weights.constant)
    weight = np.empty_like(strongest.weight)
    weight[instance.order] = strongest.weight
    return strongest._replace(weight=weight)
