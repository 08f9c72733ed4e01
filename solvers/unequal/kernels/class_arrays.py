"""Arrays of an instance on devices of one class, as searches over downsets take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtpp.solvers.downsets.downset_arrays import DownsetArrays
from mtpp.solvers.jit import subroutine
from mtpp.solvers.stage_cost.cost_arrays import MemoryArrays

if TYPE_CHECKING:
    from mtpp.solvers.unequal.unequal_arrays import ClassArrays


@subroutine
def arrays_of_class(c: int, classes: ClassArrays) -> DownsetArrays:
    """Return the arrays of an instance in the ticks and memories of one class."""
    shared = classes.shared
    return DownsetArrays(
        classes.work[c],
        shared.param_bytes,
        classes.transfer[c],
        shared.producer,
        shared.consumer_offsets,
        shared.consumers,
        shared.read_offsets,
        shared.read,
        shared.made_offsets,
        shared.made,
        shared.successor_offsets,
        shared.successors,
        shared.predecessor_offsets,
        shared.predecessors,
        classes.owed[c],
        shared.giver,
        classes.most_cost[c],
        shared.key,
        MemoryArrays(shared.memory.mode, classes.figures[c]),
        shared.shared,
    )
