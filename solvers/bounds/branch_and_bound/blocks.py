"""An instance whose stages are divided into blocks, as branch and bound takes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.branch_and_bound.known_prefixes import KnownPrefixes, Reach
from mtpp.solvers.bounds.configuration.stage_weights import StageWeights
from mtpp.solvers.bounds.mip.block_problem import needed_edges
from mtpp.solvers.bounds.tensor_places import tensor_places
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import work_around
from mtpp.solvers.downsets.stage_shares import StageShares
from mtpp.units import ceil_ratio


@dataclass(frozen=True, eq=False)
class Blocks:
    """Ops numbered along the instance's order, and consecutive blocks of stages.

    What follows from them is stated in :mod:`mtpp.checker.bounds.branch_and_bound`.

    Attributes
    ----------
    stages
        Stages of each block.
    anchor
        An op and its block (from 1 on), None for none.
    heavy
        A block of one stage (from 1 on) that has at least :attr:`least_weight`, None for none.
    weights
        What ops add to the cost of their stage.
    shares
        Weights of which no stage holds more than a capacity, as far as trees go; None: there are none.
    share
        Those of each op, by number here; all 0 without.
    share_before, share_after
        As *before* and *after*.
    unit
        Ticks that every stage costs a multiple of, with the weights' constant.
    edges
        Pairs of ops that others do not imply, tails and heads.
    before, after
        Weight of each op with all that leads to it, and with all that it leads to.
    tensor, producer, reader
        Of each pair of a tensor that costs something and an op that reads it.
    transfer
        Ticks of each tensor of the instance.
    names, places
        What proofs call ops and tensors.
    """

    instance: Instance
    stages: tuple[int, ...]
    anchor: tuple[int, int] | None
    heavy: int | None
    weights: StageWeights
    unit: int
    edges: tuple[Int32Array, Int32Array]
    reach: Reach
    before: Int64Array
    after: Int64Array
    tensor: Int64Array
    producer: Int32Array
    reader: Int32Array
    transfer: Int64Array
    names: list[int]
    places: list[int]
    shares: StageShares | None
    share: Int64Array
    share_before: Int64Array
    share_after: Int64Array

    @classmethod
    def of(
        cls,
        instance: Instance,
        weights: StageWeights,
        stages: tuple[int, ...],
        anchor: tuple[int, int] | None = None,
        heavy: int | None = None,
        shares: StageShares | None = None,
    ) -> Blocks:
        """Make the arrays; the op of *anchor* is one of the instance's, as are the weights of *shares*."""
        arrays = downset_arrays(instance)
        n = instance.op_count
        edges = needed_edges(arrays.successor_offsets, arrays.successors)
        place = np.empty(n, dtype=np.int32)
        place[instance.order] = np.arange(n, dtype=np.int32)
        producer, reader = (place[ops] for ops in instance.edges)
        tensor = np.repeat(np.arange(instance.tensor_count, dtype=np.int64), np.diff(instance.pin_offsets) - 1)
        costs = instance.transfer[tensor] > 0
        before, after = work_around(arrays._replace(work=weights.weight))
        joined = np.diff(instance.pin_offsets) > 1
        share = np.zeros(n, dtype=np.int64)
        around = share, share
        if shares is not None:
            share = shares.weights[instance.order]
            around = work_around(arrays._replace(work=share))
        return cls(
            instance,
            stages,
            None if anchor is None else (int(place[anchor[0]]), anchor[1]),
            heavy,
            weights,
            max(1, gcd(*weights.weight.tolist(), *instance.transfer[joined].tolist())),
            edges,
            Reach(n, edges),
            before,
            after,
            tensor[costs],
            producer[costs],
            reader[costs],
            instance.transfer,
            instance.first_members[instance.order].tolist(),
            tensor_places(instance).tolist(),
            shares,
            share,
            *around,
        )

    @property
    def capacity(self) -> int:
        """The most of :attr:`share` that a stage holds."""
        return 0 if self.shares is None else self.shares.capacity

    @property
    def share_rows(self) -> int:
        """Number of blocks whose shares are limited."""
        return 0 if self.shares is None else len(self.stages)

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return len(self.names)

    @property
    def least_weight(self) -> int:
        """What some stage of every partition has at least: the average, or the heaviest op."""
        average = ceil_ratio(self.weights.total, min(self.instance.k, self.op_count))
        return max(average, int(self.weights.weight.max()))

    def most(self, cutoff: int) -> int:
        """Return the most that a stage of a partition below *cutoff* can cost, with the weights' constant."""
        return (cutoff - 1 + self.weights.constant) // self.unit * self.unit

    def cutoff(self, refuted: int) -> int:
        """Return the largest cutoff below which stages cost at most *refuted*, with the weights' constant."""
        return (refuted // self.unit + 1) * self.unit - self.weights.constant

    def known_first(self, most: int) -> KnownPrefixes | None:
        """Return what work alone says, and the anchor; None if there is no partition whose stages cost *most*."""
        count = len(self.stages) - 1
        inside, outside = [0] * count, [0] * count
        total = sum(self.stages)
        behind = 0
        for b in range(count):
            behind += self.stages[b]
            ahead = total - behind
            outside[b] = _bits(self.before > behind * most)
            inside[b] = _bits(self.after > ahead * most)
            if self.shares is not None:
                outside[b] |= _bits(self.share_before > behind * self.capacity)
                inside[b] |= _bits(self.share_after > ahead * self.capacity)
            if self.anchor is not None:
                op, block = self.anchor
                side = inside if b + 1 >= block else outside
                side[b] |= 1 << op
        nothing = (0,) * count
        return KnownPrefixes(nothing, nothing).extended(inside, outside, self.reach)


def _bits(chosen: np.ndarray) -> int:
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")
