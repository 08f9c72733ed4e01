"""Charges on ops for left-out ops that they read from: the work, or what it costs to have it done elsewhere.

Let u be an op whose tensor v reads. A stage with v has u as well and pays for its work, or it cuts the tensor. So the
smaller of the two may be charged on v when u is left out. What is charged on u counts as work of u: whole trees of ops
may hang on one that stays. :mod:`mtpp.checker.relaxed` says why the sum holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance


@dataclass(frozen=True, eq=False)
class Charges:
    """What is charged on the readers of left-out ops.

    Attributes
    ----------
    reader
        Op that each op is charged on, −1 for none, int32, shape (n,).
    amount
        What is charged for each op, what is charged on it included: ticks, int64, shape (n,).
    on_op
        What is charged on each op: ticks, int64, shape (n,).
    spare
        Transfer of each tensor less what is charged by it: ticks, int64, shape (tensors,).
    """

    reader: Int32Array
    amount: Int64Array
    on_op: Int64Array
    spare: Int64Array

    def on(self, instance: Instance, work: Int64Array, transfer: Int64Array) -> Charges:
        """Return what is charged on the same readers in other ticks of work and transfers, those of a class of devices.

        Each by the most expensive tensor that the reader reads, the first of several.
        """
        offsets, pins, producer = instance.pin_offsets.tolist(), instance.pins.tolist(), instance.producer.tolist()
        ticks, reader, own = transfer.tolist(), self.reader.tolist(), work.tolist()
        by: dict[int, int] = {}
        for t, u in enumerate(producer):
            if reader[u] in pins[offsets[t] + 1 : offsets[t + 1]] and (u not in by or ticks[t] > ticks[by[u]]):
                by[u] = t
        amount, on_op = [0] * len(own), [0] * len(own)
        for u in instance.order.tolist():
            if reader[u] >= 0:
                amount[u] = min(own[u] + on_op[u], ticks[by[u]])
                on_op[reader[u]] += amount[u]
                ticks[by[u]] -= amount[u]
        return Charges(self.reader, np.array(amount), np.array(on_op), np.array(ticks))


def no_charges(instance: Instance, transfer: Int64Array) -> Charges:
    """Return that nothing is charged, in ticks of transfers of any kind."""
    nothing = np.zeros(instance.op_count, dtype=np.int64)
    return Charges(np.full(instance.op_count, -1, dtype=np.int32), nothing, nothing, transfer)


def charges(
    instance: Instance, left_out: NDArray[np.bool_], transfer: Int64Array, rank: Int64Array | None = None
) -> Charges:
    """Charge each left-out op on one of its readers, if that stays or is charged itself.

    The reader is that of the most expensive tensor: one that stays before others, then by *rank*, then the first.

    Parameters
    ----------
    left_out
        Of each op, bool, shape (n,).
    transfer
        Of each tensor, in ticks: none more than in the instance.
    rank
        Of each op, int64, shape (n,); None: all are alike.

    Notes
    -----
    O(n + pins).
    """
    offsets, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
    made: list[list[int]] = [[] for _ in range(instance.op_count)]
    for t, u in enumerate(instance.producer.tolist()):
        made[u].append(t)
    ticks, out = transfer.tolist(), left_out.tolist()
    ranks = [0] * instance.op_count if rank is None else rank.tolist()
    order = instance.order[left_out[instance.order]].tolist()
    reader = [-1] * instance.op_count
    by: dict[int, int] = {}
    for u in reversed(order):
        best = (0, False, 0)
        for t in made[u]:
            if 0 < ticks[t] >= -best[0]:
                for v in pins[offsets[t] + 1 : offsets[t + 1]]:
                    choice = -ticks[t], out[v], ranks[v]
                    if choice < best and (not out[v] or reader[v] >= 0):
                        best, reader[u], by[u] = choice, v, t
    amount, on_op = [0] * instance.op_count, [0] * instance.op_count
    work = instance.work.tolist()
    for u in order:
        if reader[u] >= 0:
            amount[u] = min(work[u] + on_op[u], ticks[by[u]])
            on_op[reader[u]] += amount[u]
            ticks[by[u]] -= amount[u]
    return Charges(
        np.array(reader, dtype=np.int32),
        np.array(amount, dtype=np.int64),
        np.array(on_op, dtype=np.int64),
        np.array(ticks, dtype=np.int64),
    )
