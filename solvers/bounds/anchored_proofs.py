"""Proof of a minimum cut around an op: the flow that meets it."""

from __future__ import annotations

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.flows.anchored_network import AnchoredNetwork, TensorArcs, anchored_network
from mtpp.solvers.flows.kernels.anchored_cut import (
    AFTER,
    APART,
    BEFORE,
    CutScratch,
    cut_around,
    cut_scratch,
    relate,
)
from mtpp.solvers.flows.kernels.max_flow import UNLIMITED_CAPACITY

Rows = list[list[int]]


class AnchoredCuts:
    """The cuts of one instance, and their flows as proofs write them.

    Attributes
    ----------
    network, tensors, scratch
        What the cuts are made in.
    op_of
        What proofs call each op, by its place in the instance's order, int64.
    """

    def __init__(self, instance: Instance) -> None:
        self.network: AnchoredNetwork
        self.tensors: TensorArcs
        self.network, self.tensors = anchored_network(instance)
        self.scratch: CutScratch = cut_scratch(self.network, instance.op_count)
        self.op_of: Int64Array = instance.first_members[instance.order]

    def flow(
        self,
        weight: Int64Array,
        value: Int64Array,
        v: int,
        p: int,
        q: int,
        limit: int,
        enough: int = UNLIMITED_CAPACITY,
    ) -> tuple[Rows, Rows, list[int]]:
        """Cut around op *v* and return the rows of the flow, of what is drawn, and what is apart.

        Parameters
        ----------
        weight, value, p, q, enough
            As :func:`~mtpp.solvers.flows.kernels.anchored_cut.cut_around` takes them.
        limit
            As :func:`~mtpp.solvers.flows.kernels.anchored_cut.relate` does.
        """
        scratch = self.scratch
        relate(self.network, weight, v, limit, scratch)
        cut_around(self.network, weight, value, v, p, q, enough, scratch)
        apart = np.flatnonzero(scratch.relation & APART)
        return self._through_tensors(p), self._drawn(), self.op_of[apart].tolist()

    def _through_tensors(self, p: int) -> Rows:
        tensors, residual = self.tensors, self.scratch.residual
        full = self.network.capacity[tensors.into]
        left = residual[tensors.into]
        # Between two ops there is one couple of arcs; else each op has an arc into the tensor and one out of it.
        amount = np.where(full >= 0, full * p - left, residual[tensors.out_of] - left)
        moved = np.add.reduceat(amount != 0, tensors.pin_offsets[:-1]) if len(tensors.number) else np.zeros(0)
        rows = []
        for i in np.flatnonzero(moved).tolist():
            row = [int(tensors.number[i])]
            for pin in range(tensors.pin_offsets[i], tensors.pin_offsets[i + 1]):
                if amount[pin]:
                    row += [int(self.op_of[tensors.pins[pin]]), int(amount[pin])]
            rows.append(row)
        return rows

    def _drawn(self) -> Rows:
        network, relation = self.network, self.scratch.relation
        rows = []
        for side, offsets, ends, arcs in (
            (BEFORE, network.successor_offsets, network.successors, network.successor_arcs),
            (AFTER, network.predecessor_offsets, network.predecessors, network.predecessor_arcs),
        ):
            tails = np.repeat(np.arange(len(relation)), np.diff(offsets))
            amount = self.scratch.residual[
                network.arcs.twins[arcs]
            ]  # the reverse of what is drawn has no room of its own
            used = (relation[tails] & side > 0) & (relation[ends] & side > 0) & (amount > 0)
            triples = zip(self.op_of[tails[used]], self.op_of[ends[used]], amount[used], strict=True)
            rows += [[int(u), int(x), int(moved)] for u, x, moved in triples]
        return rows
