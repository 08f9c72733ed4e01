"""Downsets with their labels, enumerated one after the other, in memory that grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.placed_partition import PlacedPartition
from mtpp.solvers.downsets.downset_arrays import downset_scratch, grown, holding_whole, ordered_ground, table_size
from mtpp.solvers.downsets.enumeration import digest_of_downsets, rules_of
from mtpp.solvers.downsets.kernels.downset_layout import LAST
from mtpp.solvers.downsets.kernels.downset_store import rebuild_table
from mtpp.solvers.downsets.resumable_search import ResumableSearch
from mtpp.solvers.orders.device_labels import LEADING, LabelRules, devices_of
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.stage_cost.cost_arrays import GroundArrays
from mtpp.solvers.unequal.kernels.register_layout import LABELS, SPENT, UNCOUNTED, UNEQUAL_REGISTERS
from mtpp.solvers.unequal.kernels.search import search_unequal
from mtpp.solvers.unequal.unequal_arrays import (
    ClassArrays,
    Rates,
    UnequalStore,
    class_arrays,
    fits_first,
    label_pool,
    limited_rules,
    unequal_store,
)

_FIRST_CAPACITY = 512


@dataclass(frozen=True, eq=False)
class UnequalProblem:
    """An instance on devices that differ, made ready for searches; make one with :func:`unequal_problem`."""

    instance: Instance
    arrays: ClassArrays
    rates: Rates
    ground: GroundArrays

    @property
    def rules(self) -> list[str]:
        """The rules that leave downsets out; see :func:`mtpp.solvers.unequal.kernels.search.search_unequal`."""
        return ["fit"] if self.instance.peaks_in_order else ["fit", "maximal"]

    @property
    def terms(self) -> dict[str, object]:
        """What else a proof has to say; nothing."""
        return {}

    @property
    def first_steps(self) -> int:
        """Steps that a search takes before its first downset."""
        return 1

    @property
    def most_ticks(self) -> int:
        """No partition's bottleneck is above this."""
        return self.instance.most_ticks

    def search(self, limit: int, memory_bytes: int) -> UnequalSearch:
        """Return a search for a partition with every stage cost at most *limit* ticks, at its beginning."""
        return UnequalSearch(self, limit, memory_bytes)

    def rules_within(self, limit: int) -> LabelRules | None:
        """Return the rules of labels where stages cost at most *limit* ticks; None if labels do not fit into a word."""
        return limited_rules(self.instance, self.arrays, self.rates, limit)

    def bottleneck(self, partition: Partition) -> int:
        """Return the largest stage cost of a partition that a search has found, in ticks."""
        assert isinstance(partition, PlacedPartition)
        return stage_costs(self.instance.on(partition.devices), partition).bottleneck

    @cached_property
    def bytes_per_downset(self) -> int:
        """What a downset with a few labels takes, in bytes."""
        return 8 * -(-self.instance.op_count // 64) + 16 * len(self.arrays.work) + 40 + 16 + 4 * 24


def unequal_problem(instance: Instance) -> UnequalProblem:
    """Make *instance* ready; O(classes² · n + pins·log pins)."""
    arrays, rates = class_arrays(instance)
    return UnequalProblem(instance, arrays, rates, ordered_ground(instance))


class UnequalSearch(ResumableSearch):
    """The search for a partition with every stage cost at most *limit* ticks on devices that differ.

    Where it has ended there is none: that is a proof. It is full, too, where labels do not fit into a word.

    Parameters
    ----------
    memory_bytes
        Of the downsets and labels kept, at most.
    stage_limit
        In place of *limit* for the cost of a stage, where that is of something else.
    """

    def __init__(
        self, problem: UnequalProblem, limit: int, memory_bytes: int, *, stage_limit: int | None = None
    ) -> None:
        params = int(problem.arrays.shared.param_bytes.sum())
        super().__init__(problem.instance, limit, params, UNEQUAL_REGISTERS)
        self._problem = problem
        self._most = max(1, memory_bytes // problem.bytes_per_downset)
        self._stage_limit = limit if stage_limit is None else stage_limit
        self._begin()
        self._rules = problem.rules_within(self._stage_limit)
        if self._rules is None:
            self.state = "full"
        elif not fits_first(problem.arrays, self._rules):
            self.state = "ended"

    def _begin(self) -> None:
        problem = self._problem
        self._arrays = problem.arrays
        if self.whole:
            self._arrays = self._arrays._replace(shared=holding_whole(problem.instance, self._arrays.shared))
        capacity = min(_FIRST_CAPACITY, self._most)
        self._store: UnequalStore = unequal_store(self._arrays, capacity)
        self._pool = self._make_pool(4 * capacity)
        rebuild_table(1, self._store)
        self._scratch = downset_scratch(self._arrays.shared, problem.ground)
        self._registers[LABELS] = 1
        self._registers[SPENT] = UNCOUNTED

    def proof(self, reduced: ReducedInstance) -> dict[str, Any]:
        """Return the proof, once there is none, that no partition of an instance so reduced stays within the limit."""
        assert self.state == "ended"
        problem = self._problem
        terms = {
            "cutoff": self.limit + 1,
            "k": problem.instance.most_used,
            "order": problem.instance.machine.order,
            "rules": rules_of(problem.rules, whole=self.whole),
            **problem.terms,
        }
        return {"merges": reduced.record(), **terms, **self.record()}

    def record(self) -> dict[str, Any]:
        """Return what was enumerated, for a proof: the counts, and a digest of all labels.

        The digest is the SHA-256 of the records of all labels, sorted as bytes. A record is the numbers of the label,
        in 4 bytes each, most significant first, and the bits of its downset as in
        :meth:`mtpp.solvers.downsets.enumeration.DownsetSearch.record`. The numbers are those of leading devices, and of
        devices used where these are limited; or in free order those of devices of each class.
        """
        store, pool = self._store, self._pool
        rows: list[int] = []
        numbers: list[Sequence[int]] = []
        downsets = 0
        for downset, first in enumerate(store.front[: self.count].tolist()):
            downsets += first >= 0
            at = first
            while at >= 0:
                rows.append(downset)
                numbers.append(self._numbers(at))
                at = int(pool.following[at])
        columns = np.array(numbers, dtype=np.int32).reshape(len(rows), -1)
        digest = digest_of_downsets(self._instance, store.bits[rows], columns)
        return {"downsets": downsets, "labels": len(rows), "digest": digest}

    def _make_pool(self, capacity: int) -> Any:
        return label_pool(capacity)

    def _numbers(self, at: int) -> list[int]:
        """Return the numbers of a label as the record has them."""
        assert self._rules is not None
        return self._rules.numbers(int(self._pool.label[at]))

    def _call_kernel(self, last_step: int) -> int:
        problem = self._problem
        assert self._rules is not None
        return search_unequal(
            self._arrays,
            problem.ground,
            self._rules,
            self._store,
            self._pool,
            self._scratch,
            self._registers,
            self._stage_limit,
            last_step,
        )

    def _grow(self) -> bool:
        """Make room for more downsets, labels, or both; return whether there is memory for it."""
        old, pool = self._store, self._pool
        if len(pool.label) < 4 * self._most:
            capacity = min(2 * len(pool.label), 4 * self._most)
            self._pool = type(pool)(*(grown(rows, capacity, -1) for rows in pool))
        elif len(old.keys) == self._most:
            return False
        if len(old.keys) < self._most and self.count == len(old.keys):
            capacity = min(2 * len(old.keys), self._most)
            self._store = UnequalStore(
                grown(old.bits, capacity),
                grown(old.keys, capacity),
                np.full(table_size(capacity), -1, dtype=np.int32),
                grown(old.work, capacity),
                grown(old.owed, capacity),
                grown(old.params, capacity),
                grown(old.rest, capacity),
                grown(old.front, capacity, -1),
                grown(old.following, capacity, -1),
                old.of_size,
            )
            rebuild_table(self.count, self._store)
            return True
        return len(self._pool.label) > len(pool.label)

    def partition(self) -> Partition:
        """Return the partition that was found; in free order its stages stand on devices that it names."""
        instance, pool, path = self._instance, self._pool, self._path()
        stage = np.zeros(instance.op_count, dtype=np.int32)
        for number, label in reversed(list(enumerate(path))):
            position = number if self._instance.machine.free else (int(pool.label[label]) & LEADING) - 1
            stage[self._ops(self._store.bits[pool.owner[label]])] = position
        devices: Sequence[int] = range(instance.k)
        if instance.machine.free:
            devices = devices_of(instance, pool.class_of[path].tolist())
        return PlacedPartition.on(instance, stage, devices)

    def _path(self) -> list[int]:
        """Return the labels of the stages found, the first one's first."""
        path = [int(self._registers[LAST])]
        while (parent := int(self._pool.parent[path[-1]])) > 0:
            path.append(parent)
        return path[::-1]
