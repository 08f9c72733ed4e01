"""Losses of a bound by trees of ops that are left out, and charged on the ops that read from them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.charges import charges
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance

_PASSES = 4
"""Times at most that trees are looked at again after some ops have turned out to stay."""

_WORK = 10
"""Lost work counts so many times: all stages share it, while transfers are lost in one."""


class TreeLosses:
    """An instance made ready to find trees of ops that may be left out at little loss."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._transfer: list[int] = instance.transfer.tolist()
        self._producer: list[int] = instance.producer.tolist()
        offsets, pins = instance.pin_offsets.tolist(), instance.pins.tolist()
        self._readers = [pins[i + 1 : j] for i, j in pairwise(offsets)]
        self._made: list[list[int]] = [[] for _ in range(instance.op_count)]
        self._read: list[list[int]] = [[] for _ in range(instance.op_count)]
        for t, (u, readers) in enumerate(zip(self._producer, self._readers, strict=True)):
            if readers:
                self._made[u].append(t)
            for v in readers:
                self._read[v].append(t)

    def cheap(self, some: NDArray[np.bool_], most: float, rank: Int64Array) -> NDArray[np.bool_]:
        """Return those of some ops that are in trees whose loss is at most so many ticks; bool, shape (n,).

        A tree that loses more goes without its root; what was charged on that becomes trees of their own.

        Parameters
        ----------
        rank
            Of each op: readers of low rank are charged before others.

        Notes
        -----
        O(n + pins). Losses are estimated. Of work, a tree loses what is charged on nobody, which counts more. Of
        transfers, those to others than the op that pays, those that a bypassed tensor lost, and of what a stage with
        that op would pay for the tree what is neither charged nor left of a bypassed tensor.
        """
        for _ in range(_PASSES):
            cheap = self._pass(some, most, rank)
            if (cheap == some).all():
                break
            some = cheap
        return some

    def _pass(self, some: NDArray[np.bool_], most: float, rank: Int64Array) -> NDArray[np.bool_]:
        instance, transfer, producer = self._instance, self._transfer, self._producer
        charged = charges(instance, some, instance.transfer, rank)
        pays, amount, on_op = charged.reader.tolist(), charged.amount.tolist(), charged.on_op.tolist()
        work, inside = instance.work.tolist(), some.tolist()
        weight, inputs, lost_work, lost_transfers, kept = ([0] * instance.op_count for _ in range(5))
        order = instance.order[some[instance.order]].tolist()
        for u in order:
            payer = pays[u]
            weight[u] += work[u]
            lost_work[u] += work[u] + on_op[u] - amount[u]
            others = [t for t in self._read[u] if pays[producer[t]] != u]
            inputs[u] += sum(transfer[t] for t in others)
            if len(self._read[u]) == len(self._made[u]) == 1:  # may be bypassed
                before = transfer[others[0]] if others else kept[producer[self._read[u][0]]]
                kept[u] = min(before, transfer[self._made[u][0]] - amount[u])
                lost_transfers[u] += before - kept[u] if kept[u] else 0
            for t in self._made[u]:
                if any(v != payer and not inside[v] for v in self._readers[t]):
                    lost_transfers[u] += max(0, transfer[t] - kept[u])
            if payer >= 0 and inside[payer]:
                for sums in (weight, inputs, lost_work, lost_transfers):
                    sums[payer] += sums[u]
        for u in reversed(order):
            payer = pays[u]
            if payer < 0 or not inside[payer]:
                dearest = max((transfer[t] for t in self._made[u] if payer in self._readers[t]), default=0)
                elsewhere = min(dearest, weight[u] + inputs[u]) - amount[u] - kept[u]
                lost = max(_WORK * lost_work[u], lost_transfers[u] + max(0, elsewhere))
                inside[u] = lost <= most
        return np.array(inside, dtype=np.bool_)
