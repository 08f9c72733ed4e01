"""Ops that multiply the downsets of a graph and add little to the cost of a stage: those to leave out first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.charges import charges
from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import work_around

_PASSES = 4
"""Times at most that trees are looked at again after some ops have turned out to stay."""

_WORK = 10
"""Lost work counts so many times: all stages share it, while transfers are lost in one."""

_LEVELS = ((0.1, 0.1), (0.05, 0.2), (0.02, 0.3), (0.01, 0.5), (0.003, 1.0), (0.001, 1.0))
"""From coarse to fine: influence at most, as a share of the bottleneck, and incomparable work at least, in stages."""

_TREES = ((0.05, 0.5), (0.01, 0.5), (0.003, 0.5), (0.0003, 0.5))
"""The same with what trees of ops lose that are charged on others, in place of the influence of each."""

_ALIKE = 0.003
"""Sets that differ in so many of all ops at most are alike: the largest of them is taken."""

_MOST_WORK = 0.3
"""Of all work, that may be left out, or lost with trees: without more of it, no bound comes near the bottleneck."""


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


@dataclass(frozen=True, eq=False)
class Candidates:
    """Figures of each op by which to leave it out.

    Attributes
    ----------
    incomparable
        Work of the ops that are neither before nor after it: ticks, int64, shape (n,).
    influence
        Its work, and the transfers of the tensors that it makes, which a bound may lose without it: ticks, int64.
    stage
        Work of an average stage, in ticks.
    instance
        That the ops are of.
    """

    incomparable: Int64Array
    influence: Int64Array
    stage: float
    instance: Instance

    @classmethod
    def of(cls, instance: Instance) -> Candidates:
        """Return the figures of an instance; O(n · edges / 64)."""
        arrays = downset_arrays(instance)
        before, after = work_around(arrays)
        incomparable = np.empty(instance.op_count, dtype=np.int64)
        incomparable[instance.order] = arrays.work.sum() - before - after + arrays.work
        read = np.diff(instance.pin_offsets) > 1
        influence = instance.work.copy()
        np.add.at(influence, instance.producer[read], instance.transfer[read])
        return cls(incomparable, influence, float(arrays.work.sum()) / instance.k, instance)

    def levels(self, upper: int, ended: Callable[[], bool], *, trees: bool = True) -> Iterator[NDArray[np.bool_]]:
        """Yield sets of ops to leave out, from large to small, each once; bool, shape (n,).

        Parameters
        ----------
        upper
            Bottleneck of the best partition, in ticks.
        ended
            Tells whether the work has to end.
        trees
            Whether to look for trees that others pay for as well.
        """
        most_work = _MOST_WORK * int(self.instance.work.sum())
        found = [(self.incomparable > least * self.stage) & (self.influence <= most * upper) for most, least in _LEVELS]
        found = [chosen for chosen in found if self.instance.work[chosen].sum() <= most_work]
        if trees:
            losses = TreeLosses(self.instance)
            last_first = -np.argsort(self.instance.order)
            rank = np.argsort(np.lexsort((last_first, self.incomparable)))
            for most, least in _TREES:
                if ended():
                    return
                chosen = losses.cheap(self.incomparable > least * self.stage, most * upper, rank)
                if self.lost_work(chosen) <= most_work:
                    found.append(chosen)
        kept: list[NDArray[np.bool_]] = []
        for chosen in sorted(found, key=np.count_nonzero, reverse=True):
            differ = all(np.count_nonzero(chosen ^ other) > _ALIKE * len(chosen) for other in kept)
            if chosen.any() and not chosen.all() and differ:
                kept.append(chosen)
                yield chosen

    def lost_work(self, left_out: NDArray[np.bool_]) -> int:
        """Return the work that is left out and not charged on ops that stay."""
        charged = charges(self.instance, left_out, self.instance.transfer)
        return int(self.instance.work[left_out].sum() - charged.on_op[~left_out].sum())
