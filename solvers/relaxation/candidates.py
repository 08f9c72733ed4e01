"""Ops that multiply the downsets of a graph and add little to the cost of a stage: those to leave out first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.downset_arrays import downset_arrays
from mtpp.solvers.downsets.least_crossings import work_around

_LEVELS = ((0.1, 0.1), (0.05, 0.2), (0.02, 0.3), (0.01, 0.5), (0.003, 1.0), (0.001, 1.0))
"""From coarse to fine: influence at most, as a share of the bottleneck, and incomparable work at least, in stages."""

_MOST_WORK = 0.3
"""Of all work, that may be left out: without more of it, no bound comes near the bottleneck."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Figures of each op by which to leave it out.

    Attributes
    ----------
    incomparable
        Work of the ops that are neither before nor after it: ticks, int64, shape (n,).
    influence
        Its work, and the transfers of the tensors that it makes, which a bound may lose without it: ticks, int64.
    work
        Ticks, int64.
    stage
        Work of an average stage, in ticks.
    """

    incomparable: Int64Array
    influence: Int64Array
    work: Int64Array
    stage: float

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
        return cls(incomparable, influence, instance.work, float(arrays.work.sum()) / instance.k)

    def levels(self, upper: int) -> Iterator[NDArray[np.bool_]]:
        """Yield sets of ops to leave out, from large to small, each once; bool, shape (n,).

        Parameters
        ----------
        upper
            Bottleneck of the best partition, in ticks.
        """
        seen = {b"", np.zeros(len(self.influence), dtype=np.bool_).tobytes()}
        for most, least in _LEVELS:
            chosen = (self.incomparable > least * self.stage) & (self.influence <= most * upper)
            left_out = int(self.work[chosen].sum())
            if not chosen.all() and left_out <= _MOST_WORK * int(self.work.sum()) and chosen.tobytes() not in seen:
                seen.add(chosen.tobytes())
                yield chosen
