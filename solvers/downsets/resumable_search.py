"""A search over downsets by a kernel that goes on where it was, in memory that grows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import as_placed
from mtpp.solvers.downsets.downset_arrays import WordArray
from mtpp.solvers.downsets.kernels.downset_layout import (
    DOWNSETS,
    ENDED,
    FOUND,
    GIVEN_UP,
    OUT_OF_ROOM,
    STEPS,
    TOTAL_PARAMS,
)


class ResumableSearch(ABC):
    """A search for a partition with every stage cost at most *limit* ticks.

    Parameters
    ----------
    param_bytes
        Of all ops.
    registers
        Number of registers that the kernel takes.

    Attributes
    ----------
    state
        ``"open"`` until it is ``"ended"`` (none is left to expand), ``"found"`` (a partition) or ``"full"`` (the memory
        is used up, or there is more to try than its arrays are made for).
    whole
        Whether stages hold whole what several ops read. At first they hold their ops' shares of it, which is less. If
        the partition found breaks a limit for that, the search begins again with all of it.
    finds_best
        Whether no partition is better than the one found.
    """

    finds_best = False

    def __init__(self, instance: Instance, limit: int, param_bytes: int, registers: int) -> None:
        self.limit = limit
        self.state = "open"
        self.whole = False
        self._instance = instance
        self._registers = np.zeros(registers, dtype=np.int64)
        self._registers[DOWNSETS] = 1
        self._registers[TOTAL_PARAMS] = param_bytes

    @property
    def steps(self) -> int:
        """Steps made so far; see :func:`mtpp.solvers.downsets.kernels.downsets.search_downsets`."""
        return int(self._registers[STEPS])

    @property
    def count(self) -> int:
        """Downsets reached."""
        return int(self._registers[DOWNSETS])

    def advance(self, steps: int, piece: int, ended: Callable[[], bool]) -> int:
        """Go on for that many steps, *piece* at a time, until the search is decided or *ended* says so.

        Returns
        -------
        The steps made.
        """
        first = self.steps
        while self.state == "open" and self.steps - first < steps and not ended():
            self.run(min(piece, steps - (self.steps - first)))
        return self.steps - first

    def run(self, steps: int) -> None:
        """Go on for that many steps, or until the state says more."""
        if self.state != "open":
            return
        last_step = self.steps + steps
        while (code := self._call_kernel(last_step)) == OUT_OF_ROOM:
            if not self._grow():
                self.state = "full"
                return
        self.state = {ENDED: "ended", FOUND: "found", GIVEN_UP: "full"}.get(code, "open")
        if self.state == "found" and self._instance.cost.shares_memory and not self._holds():
            self.state = "open"
            self._begin_whole()

    @abstractmethod
    def _call_kernel(self, last_step: int) -> int:
        """Let the kernel go on until so many steps have been made in all; return why it came back."""

    def _begin_whole(self) -> None:
        """Begin again with stages that hold whole what several ops read; steps made so far still count."""
        assert not self.whole
        self.whole = True
        kept = self._registers[[STEPS, TOTAL_PARAMS]]
        self._registers[:] = 0
        self._registers[[STEPS, TOTAL_PARAMS]] = kept
        self._registers[DOWNSETS] = 1
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Set up arrays, registers and an empty store, as :attr:`whole` says."""

    @abstractmethod
    def _grow(self) -> bool:
        """Make room for more; return whether there is memory for it."""

    @abstractmethod
    def partition(self) -> Partition:
        """Return the partition that was found."""

    def _holds(self) -> bool:
        """Whether the partition found keeps to the limits although stages hold weights whole, not their ops' shares."""
        found = self.partition()
        placed = as_placed(self._instance, found)
        costs = stage_costs(placed, found)
        return costs.bottleneck <= self.limit and keeps_stage_memory(placed, costs)

    def _ops(self, downset: WordArray) -> Int32Array:
        """Return the ops of one downset, given as bits."""
        inside = np.unpackbits(downset.astype("<u8").view(np.uint8), bitorder="little")
        return self._instance.order[np.flatnonzero(inside)]
