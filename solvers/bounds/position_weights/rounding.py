"""Partitions from the labels that the stages are worth most with, and from mixtures of labellings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

import numpy as np

from mtpp.array_types import Float64Array, Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.local_search.annealing import COOL, WARM, Annealer, Start
from mtpp.solvers.threads import Threads

_PROPOSALS = 40
"""Moves of annealing for each op."""

_FROM_SHARES = (0.5, 0.25, 0.75)
"""Shares of a mixture from which on an op is in the first stages."""


class Rounding:
    """Partitions of an instance, each polished, and the best bottleneck so far, in ticks.

    Parameters
    ----------
    order
        Op at each position, int32, shape (n,).
    limits
        What is known of the optimum.
    """

    def __init__(self, instance: Instance, order: Int32Array, limits: BoundLimits) -> None:
        self._instance, self._order, self._upper = instance, order, limits.upper
        self._seed = limits.seed
        self._tried: set[bytes] = set()

    def aim_at(self, upper: int) -> None:
        """Look for no partition of so many ticks or more."""
        self._upper = min(self._upper, upper)

    def best(
        self, through: Sequence[Int64Array], shares: Float64Array | None, ended: Callable[[], bool]
    ) -> tuple[Partition, int] | None:
        """Return a partition that is better than all known, with its bottleneck; None if there is none.

        Parameters
        ----------
        through
            By stage, the most worth of a labelling with each label of each op, by position, int64, shape (n, 3).
        shares
            Part of a mixture that has each op in the first j stages, float64, shape (k − 1, n), row 0 being j = 1; None
            if there is no mixture.

        Notes
        -----
        The first j stages hold the ops that stage j is worth no less without than *after*, or of which the mixture has
        some share there; an op is in the first stage that no op which it reads from is behind; of equal devices, empty
        stages come last. O(n · k), and annealing of 40 moves an op.
        """
        found = {sha256(stage.tobytes()).digest(): stage for stage in self._starts(through, shares)}
        starts = [stage for key, stage in found.items() if key not in self._tried]
        if not starts:
            return None
        self._tried.update(found)
        with Threads(1) as threads:
            annealer = Annealer(self._instance, self._instance.k, threads, self._seed, stopped=ended)
            begun = [Start(stage, schedule) for stage in starts for schedule in (COOL, WARM)]
            annealed, _ = annealer.round(begun, _PROPOSALS * self._instance.op_count)
        best = None
        for assignment in (*starts, *(one.stage for one in annealed)):
            if len(np.unique(assignment)) > self._instance.most_used:
                continue
            partition = Partition.from_stages(self._instance, assignment)
            costs = stage_costs(self._instance, partition)
            if costs.bottleneck < self._upper and keeps_stage_memory(self._instance, costs):
                best, self._upper = (partition, costs.bottleneck), costs.bottleneck
        return best

    def _starts(self, through: Sequence[Int64Array], shares: Float64Array | None) -> Iterator[Int32Array]:
        """Yield partitions to begin with."""
        stage = np.zeros(len(self._order), dtype=np.int32)
        for rows in through[:-1]:
            stage[self._order] += rows[:, AFTER] > rows[:, :AFTER].max(axis=1)
        yield self._along_edges(stage)
        if shares is not None:
            for least in _FROM_SHARES:
                yield self._along_edges((shares < least).sum(axis=0, dtype=np.int32))

    def _along_edges(self, stage: Int32Array) -> Int32Array:
        """Move ops to later stages, until each is behind none of its sources."""
        places = stage.tolist()
        after = self._instance.successor_lists()
        for v in self._order.tolist():
            for w in after[v]:
                places[w] = max(places[w], places[v])
        if not self._instance.uniform:
            return np.array(places, dtype=np.int32)
        return np.unique(np.array(places, dtype=np.int32), return_inverse=True)[1].astype(np.int32)
