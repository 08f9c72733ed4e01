"""The best places of left-out ops beside a partition of the others, by an exhaustive search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtpp.inference.contraction import contract
from mtpp.inference.graph import Int32Array
from mtpp.inference.objective import bottleneck
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation
from mtpp.solvers.downsets.enumeration import DownsetSearch, downset_problem
from mtpp.solvers.reduction.reduction import reduce_instance

PLACING_STEPS = 1 << 17
"""Of the search for the best places of left-out ops."""

_SLICE = 1 << 16
"""Steps between two looks at the clock."""


class Placement:
    """The partitions of an instance that keep together what one of its relaxation puts into a stage.

    What has to be in the same stage is merged, and so is whatever the merging rules say then: few ops are left, whose
    places a search over downsets tries out.

    Parameters
    ----------
    ended
        Tells whether the work has to end.

    Attributes
    ----------
    steps
        Steps made.
    """

    def __init__(self, relaxation: Relaxation, partition: Partition, ended: Callable[[], bool]) -> None:
        original = relaxation.original
        earliest, latest = windows(relaxation, partition)
        settled = np.where(earliest == latest, earliest, -1)
        groups = [np.flatnonzero(settled == stage).tolist() for stage in range(original.k)]
        self._contraction = contract(original, [group for group in groups if len(group) > 1])
        self._reduced = reduce_instance(self._contraction.instance, ended=ended)
        self._ended = ended
        self._problem = downset_problem(self._reduced.instance)
        self.steps = len(original.pins) + len(self._reduced.instance.pins)

    def best(self, upper: int, steps: int, memory_bytes: int) -> Partition | None:
        """Return the best partition below *upper* ticks that so many steps find, None if they find none.

        Notes
        -----
        Each search is for anything better than what the one before found; the last one may prove that there is none.
        """
        found = None
        last_step = self.steps + steps
        while upper > 0 and self.steps < last_step and not self._ended():
            search = DownsetSearch(self._problem, upper - 1, memory_bytes)
            search.advance(last_step - self.steps, _SLICE, self._ended)
            self.steps += search.steps
            if search.state != "found":
                break
            found = self._contraction.lift(self._reduced.lift(search.partition()))
            upper = bottleneck(self._contraction.original, found)
        return found


def windows(relaxation: Relaxation, partition: Partition) -> tuple[Int32Array, Int32Array]:
    """Return the first and the last stage that each op of the original can be in, int32, given those that stay."""
    original = relaxation.original
    after = original.successor_lists()
    order = original.order.tolist()
    earliest = [0] * original.op_count
    latest = [original.k - 1] * original.op_count
    for v, s in zip(relaxation.kept.tolist(), partition.assignment.tolist(), strict=True):
        earliest[v] = latest[v] = s
    for v in order:
        for w in after[v]:
            earliest[w] = max(earliest[w], earliest[v])
    for v in reversed(order):
        for w in after[v]:
            latest[v] = min(latest[v], latest[w])
    return np.array(earliest, dtype=np.int32), np.array(latest, dtype=np.int32)
