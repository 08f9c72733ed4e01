"""Partitions from the labels that the stages are worth most with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.local_search.annealing import COOL, WARM, Annealer, Start
from mtpp.solvers.threads import Threads

_PROPOSALS = 40
"""Moves of annealing for each op."""


class Rounding:
    """Partitions of an instance, each polished, and the best bottleneck so far, in ticks.

    Parameters
    ----------
    limits
        What is known of the optimum.
    """

    def __init__(self, instance: Instance, limits: BoundLimits) -> None:
        self._instance, self._upper = instance, limits.upper
        self._seed = limits.seed
        self._tried: set[bytes] = set()

    def best(
        self, through: Sequence[Int64Array], order: Int32Array, ended: Callable[[], bool]
    ) -> tuple[Partition, int] | None:
        """Return a partition that is better than all known, with its bottleneck; None if there is none.

        Parameters
        ----------
        through
            By stage, the most worth of a labelling with each label of each op, by position, int64, shape (n, 3).
        order
            Op at each position, int32, shape (n,).

        Notes
        -----
        The first j stages hold the ops that stage j is worth no less without than *after*; an op is in the first stage
        that no op which it reads from is behind; of equal devices, empty stages come last. O(n · k), and annealing of
        40 moves an op.
        """
        stage = self._stages(through, order)
        if stage.tobytes() in self._tried:
            return None
        self._tried.add(stage.tobytes())
        with Threads(1) as threads:
            annealer = Annealer(self._instance, self._instance.k, threads, self._seed, stopped=ended)
            found, _ = annealer.round([Start(stage, COOL), Start(stage, WARM)], _PROPOSALS * len(stage))
        best = None
        for assignment in (stage, *(one.stage for one in found)):
            if len(np.unique(assignment)) > self._instance.most_used:
                continue
            partition = Partition.from_stages(self._instance, assignment)
            costs = stage_costs(self._instance, partition)
            if costs.bottleneck < self._upper and keeps_stage_memory(self._instance, costs):
                best, self._upper = (partition, costs.bottleneck), costs.bottleneck
        return best

    def _stages(self, through: Sequence[Int64Array], order: Int32Array) -> Int32Array:
        stage = np.zeros(len(order), dtype=np.int32)
        for rows in through[:-1]:
            stage[order] += rows[:, AFTER] > rows[:, :AFTER].max(axis=1)
        places = stage.tolist()
        after = self._instance.successor_lists()
        for v in order.tolist():
            for w in after[v]:
                places[w] = max(places[w], places[v])
        if not self._instance.uniform:
            return np.array(places, dtype=np.int32)
        return np.unique(np.array(places, dtype=np.int32), return_inverse=True)[1].astype(np.int32)
