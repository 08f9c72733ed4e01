"""Downsets that stages lead to, enumerated one after the other, in memory that grows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import StageCosts, keeps_stage_memory, stage_costs
from mtpp.inference.partition import Partition
from mtpp.solvers.downsets.downset_arrays import (
    DownsetArrays,
    DownsetStore,
    WordArray,
    bytes_per_downset,
    downset_arrays,
    downset_scratch,
    downset_store,
    grown,
    holding_whole,
    ordered_ground,
    table_size,
)
from mtpp.solvers.downsets.kernels.downset_layout import (
    LAST,
    LAST_BASE,
    NEXT,
    PAIRS,
    REGISTERS,
    STEPS,
    TOTAL_WORK,
)
from mtpp.solvers.downsets.kernels.downset_store import rebuild_table
from mtpp.solvers.downsets.kernels.downsets import search_downsets
from mtpp.solvers.downsets.least_crossings import CrossingNetwork, crossing_network, least_crossings
from mtpp.solvers.downsets.resumable_search import ResumableSearch
from mtpp.solvers.downsets.stage_shares import StageShares, shares_within
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.stage_cost.cost_arrays import GroundArrays

_FIRST_CAPACITY = 512

_ALL = 1 << 62
"""More downsets than there can be."""


@dataclass(frozen=True, eq=False)
class DownsetProblem:
    """An instance made ready for searches, one after the other; make one with :func:`downset_problem`.

    Attributes
    ----------
    instance
        The instance.
    arrays, ground
        What the kernels take.
    network
        For the cuts between stages.
    whole_ticks
        What all ops cost in one stage; None if the stage memory rules that out.
    shares
        Weights of which no stage holds more than a capacity, each up to a limit.
    """

    instance: Instance
    arrays: DownsetArrays
    ground: GroundArrays
    network: CrossingNetwork
    whole_ticks: int | None
    shares: Sequence[StageShares] = ()

    def shares_at(self, limit: int) -> StageShares | None:
        """Return weights that tell something of partitions within a limit, None if none do."""
        best = shares_within(self.shares, limit)
        return best if best is not None and best.tells(self.instance.k) else None

    def search(self, limit: int, memory_bytes: int) -> DownsetSearch:
        """Return a search for a partition with every stage cost at most *limit* ticks, at its beginning."""
        return DownsetSearch(self, limit, memory_bytes)

    def states_rule_out_one_stage(self, limit: int) -> bool:
        """Tell whether all ops may be too much for one stage only as it holds states, which shares leave out.

        The search takes it that one stage was tried, so that it has to hold states from the beginning.
        """
        cost = self.instance.cost
        if self.whole_ticks is not None or not cost.shares_memory or cost.states_join:
            return False
        return _in_one_stage(self.instance).bottleneck <= limit

    def bottleneck(self, partition: Partition) -> int:
        """Return the largest stage cost of a partition that a search has found, in ticks."""
        return stage_costs(self.instance, partition).bottleneck

    @property
    def rules(self) -> list[str]:
        """The rules that leave downsets out; see :func:`mtpp.solvers.downsets.kernels.downsets.search_downsets`."""
        return ["crossings", "fit"] if self.instance.peaks_in_order else ["crossings", "fit", "maximal"]

    @property
    def most_ticks(self) -> int:
        """No partition's bottleneck is above this."""
        return self.instance.most_ticks

    @property
    def first_steps(self) -> int:
        """Steps that a search takes before its first downset, for a look at crossings."""
        n = self.instance.op_count
        return min(self.instance.k, n) * (len(self.network.kind) + 2 * n) >> 4


def downset_problem(instance: Instance) -> DownsetProblem:
    """Make *instance* ready; O(n + pins·log pins)."""
    arrays = downset_arrays(instance)
    ground = ordered_ground(instance)
    costs = _in_one_stage(instance)
    whole = costs.bottleneck if keeps_stage_memory(instance, costs) else None
    return DownsetProblem(instance, arrays, ground, crossing_network(arrays), whole)


def _in_one_stage(instance: Instance) -> StageCosts:
    return stage_costs(instance, Partition.from_stages(instance, np.zeros(instance.op_count, dtype=np.int32)))


class DownsetEnumeration(ResumableSearch):
    """Downsets that can be reached with every stage cost at most *limit* ticks.

    Parameters
    ----------
    limit
        At least 0 and below all ticks of the instance.
    memory_bytes
        Of the downsets kept, at most.
    """

    def __init__(self, problem: DownsetProblem, limit: int, memory_bytes: int) -> None:
        super().__init__(problem.instance, limit, int(problem.arrays.param_bytes.sum()), REGISTERS)
        self._problem = problem
        self.shares = problem.shares_at(limit)
        self._most = max(1, memory_bytes // bytes_per_downset(problem.arrays))
        self._begin()
        self._stages = min(problem.instance.k, problem.instance.op_count)
        self._later = np.zeros(self._stages + 1, dtype=np.int64)
        if problem.whole_ticks is not None and problem.whole_ticks <= limit:
            self.state = "found"
            return
        if problem.states_rule_out_one_stage(limit):
            self._begin_whole()
        self._look_at_crossings()
        if self.shares is not None and self.shares.rule_out(self._stages):
            self.state = "ended"

    def _begin(self) -> None:
        problem = self._problem
        self._arrays = holding_whole(problem.instance, problem.arrays) if self.whole else problem.arrays
        self._store: DownsetStore = downset_store(self._arrays, min(_FIRST_CAPACITY, self._most))
        rebuild_table(1, self._store)
        self._scratch = downset_scratch(self._arrays, problem.ground)
        if self.shares is not None:
            self._scratch.frames[-problem.instance.op_count :] = self.shares.weights[problem.instance.order]
        self._registers[LAST_BASE] = _ALL
        self._registers[TOTAL_WORK] = self._arrays.work.sum()

    def _look_at_crossings(self) -> None:
        """Find what has to cross between the stages; that may be more than the limit allows."""
        network = self._problem.network
        self._registers[STEPS] += self._problem.first_steps
        least = least_crossings(self._problem.arrays, network, self._stages, self.limit)
        if least is None:
            self.state = "ended"
            return
        self._later[1:-1] = 2 * np.cumsum([0, *least[:0:-1]])[::-1] if least else 0

    @property
    def next(self) -> int:
        """Number of the downset to expand, those before it are done."""
        return int(self._registers[NEXT])

    def _call_kernel(self, last_step: int) -> int:
        problem = self._problem
        return search_downsets(
            self._arrays,
            problem.ground,
            self._store,
            self._scratch,
            self._registers,
            self._stages,
            self.limit,
            self._later,
            0 if self.shares is None else self.shares.capacity,
            last_step,
        )

    def _grow(self) -> bool:
        old, count = self._store, len(self._store.level)
        if count == self._most:
            return False
        capacity = min(2 * count, self._most)
        self._store = DownsetStore(
            grown(old.bits, capacity),
            grown(old.keys, capacity),
            grown(old.level, capacity),
            grown(old.parent, capacity),
            grown(old.work, capacity),
            grown(old.params, capacity),
            grown(old.crossing, capacity),
            np.full(table_size(capacity), -1, dtype=np.int32),
        )
        rebuild_table(count, self._store)
        return True

    def partition(self) -> Partition:
        """Return the partition that was found."""
        assert self.state == "found"
        instance, store = self._problem.instance, self._store
        stage = np.zeros(instance.op_count, dtype=np.int32)
        if self.count > 1:
            downset = int(self._registers[LAST])
            stage[:] = store.level[downset]
            while downset > 0:
                stage[self._ops(store.bits[downset])] = store.level[downset] - 1
                downset = int(store.parent[downset])
        return Partition.from_stages(instance, stage)


class DownsetSearch(DownsetEnumeration):
    """The search for a partition with every stage cost at most *limit* ticks.

    Where it has ended there is none: that is a proof.
    """

    def proof(self, reduced: ReducedInstance) -> dict[str, Any]:
        """Return the proof, once there is none, that no partition of an instance so reduced stays within the limit."""
        assert self.state == "ended"
        names = self._problem.rules if self.shares is None else [*self._problem.rules, "weights"]
        rules = rules_of(names, whole=self.whole)
        terms = {"cutoff": self.limit + 1, "k": self._problem.instance.k, "rules": rules}
        if self.shares is not None:
            terms["weights"] = self.shares.document()
        return {"merges": reduced.record(), **terms, **self.record()}

    def record(self) -> dict[str, Any]:
        """Return what was enumerated, for a proof: the counts, and a digest of the downsets reached.

        The digest is the SHA-256 of the records of all downsets reached, sorted as bytes. A record is the fewest stages
        that the downset takes, in 4 bytes, most significant first, and a set of bits, least significant first, one for
        each op: bit i for the i-th op in the order of the first of the graph's ops, in file order, that it stands for.
        """
        count = self.count
        digest = digest_of_downsets(
            self._problem.instance, self._store.bits[:count], self._store.level[:count].reshape(-1, 1)
        )
        return {"downsets": count, "pairs": int(self._registers[PAIRS]), "digest": digest}


def rules_of(rules: Sequence[str], *, whole: bool) -> list[str]:
    """Return the rules of a search in a proof; where stages hold weights and states *whole*, *maximal* is left out."""
    return [*(rule for rule in rules if rule != "maximal"), "whole"] if whole else list(rules)


_CHUNK = 4096


def digest_of_downsets(instance: Instance, downsets: WordArray, numbers: Int32Array) -> str:
    """Return the SHA-256 of the records of downsets, sorted as bytes; see :meth:`DownsetSearch.record`.

    Parameters
    ----------
    downsets
        Bits of ops numbered along the instance's order, uint64, shape (count, words).
    numbers
        That a record begins with, in 4 bytes each, shape (count, numbers).
    """
    first = instance.first_members
    rank = np.empty(instance.op_count, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(instance.op_count)
    at = np.empty(instance.op_count, dtype=np.int64)  # of the op with each rank, its place in the order
    at[rank[instance.order]] = np.arange(instance.op_count)
    count, head = len(downsets), 4 * numbers.shape[1]
    bits = downsets.astype("<u8").view(np.uint8)
    rows = np.empty((count, head + -(-instance.op_count // 8)), dtype=np.uint8)
    rows[:, :head] = np.ascontiguousarray(numbers.astype(">u4")).view(np.uint8)
    for begin in range(0, count, _CHUNK):
        chunk = slice(begin, min(begin + _CHUNK, count))
        inside = np.unpackbits(bits[chunk], axis=1, bitorder="little")[:, at]
        rows[chunk, head:] = np.packbits(inside, axis=1, bitorder="little")
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    whole.sort()
    return hashlib.sha256(rows.data).hexdigest()
