"""Cost of any set of ops on a device, whether or not it is a stage of a partition.

The definition is that of :mod:`mtpp.inference.stage_cost` with direct transport, where f_j(S) depends on S and on the
class of the device alone. Sets may overlap, leave ops out, and read each other's results in a circle.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.weights import sum_by
from mtpp.inference.working_memory import peaks_in_order


@dataclass(frozen=True)
class SetCost:
    """Parts of f_j(S) in ticks, and memory in bytes, as :class:`mtpp.inference.objective.StageCosts` has them.

    Attributes
    ----------
    work, input, output, overflow
        Their sum is :attr:`cost`.
    param_bytes, state_bytes, peak_bytes
        Parameters with weights that several ops read, each once; states of all sequences; working memory.
    """

    work: int = 0
    input: int = 0
    output: int = 0
    overflow: int = 0
    param_bytes: int = 0
    state_bytes: int = 0
    peak_bytes: int = 0

    @property
    def cost(self) -> int:
        """f_j(S)."""
        return self.work + self.input + self.output + self.overflow

    @property
    def held_bytes(self) -> int:
        """Bytes that count in the memory limit."""
        return self.param_bytes + self.state_bytes + self.peak_bytes


def cost_of_set(instance: Instance, ops: Collection[int], class_of_device: int) -> SetCost:
    """Evaluate f_j for a set of ops, given by their numbers; O(n + pins).

    Parameters
    ----------
    class_of_device
        Number of the device's class. Transport between neighbours is charged as direct transport over its best link.
    """
    if not ops:
        return SetCost()
    cost = instance.cost
    outside = np.ones(instance.op_count, dtype=np.int32)
    inside = np.array(sorted(ops), dtype=np.int64)
    outside[inside] = 0
    arriving, leaving = _transfers(instance, outside, class_of_device)
    device = cost.machine.classes[class_of_device]
    params = int(cost.held_bytes(outside, 2)[0])
    peak = device.activation_reserve_bytes
    if instance.device.peak == "order":
        peak = int(peaks_in_order(instance, outside, 2)[0])
    return SetCost(
        work=int(cost.work[class_of_device, inside].sum()),
        input=arriving,
        output=leaving,
        overflow=cost.overflow(params, peak, device),
        param_bytes=params,
        state_bytes=int(cost.state_bytes(outside, 2)[0]),
        peak_bytes=peak,
    )


def _transfers(instance: Instance, outside: np.ndarray, class_of_device: int) -> tuple[int, int]:
    """Ticks of tensors that come from outside the set, and of those that others need."""
    cost = instance.cost
    if not instance.tensor_count:
        return 0, 0
    begins = instance.pin_offsets[:-1]
    apart = outside[instance.pins]
    cut = np.minimum.reduceat(apart, begins) < np.maximum.reduceat(apart, begins)
    tensors = np.flatnonzero(cut)
    ticks = cost.transfer[cost.link_of[class_of_device], tensors]
    made_outside = outside[instance.producer[tensors]].astype(np.int32)
    by_side = sum_by(made_outside, ticks, 2)
    return int(by_side[1]), int(by_side[0])
