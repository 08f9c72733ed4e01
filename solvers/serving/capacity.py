"""Capacity of devices for a model: the largest context, or the most sequences, at which some stages all fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.language_models.capacity import largest, settled_context
from mtpp.language_models.capacity_proof import CapacityProof
from mtpp.language_models.layer_memory import LayerMemory
from mtpp.names import CONTEXT_OBJECTIVE
from mtpp.ranges import MOST_CONTEXT, MOST_SEQUENCES
from mtpp.solvers.layer_chains.decision import is_feasible
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.interval_sums import cuts_between
from mtpp.solvers.layer_chains.tables import Alternative, ChainTables
from mtpp.solvers.serving.memory_needs import RangeMemory


@dataclass(frozen=True)
class Load:
    """Tokens and sequences that a pipeline serves, one of which is to be as large as can be.

    Attributes
    ----------
    objective
        One of :data:`~mtpp.names.CAPACITY_OBJECTIVES`.
    context, sequences
        Tokens of a sequence, and sequences held; that of the objective does not matter.
    batch
        Sequences in a step at most; None: those held, shared out among *stages*.
    """

    objective: str
    context: int
    sequences: int
    batch: int | None
    stages: int

    def at(self, value: int) -> tuple[int, int, int]:
        """Return context, sequences and batch at a value of the objective."""
        context, sequences = self.context, self.sequences
        if self.objective == CONTEXT_OBJECTIVE:
            context = value
        else:
            sequences = value
        batch = -(-sequences // self.stages) if self.batch is None else min(self.batch, sequences)
        return context, sequences, batch


class Holding(NamedTuple):
    """A way in which devices of a class hold stages.

    Attributes
    ----------
    limit
        Bytes that a stage may need; None: any.
    reserve
        Bytes of working memory, whatever the layers; None: those live while layers run in order.
    phases
        Memory of layers at decode, at prefill, or both.
    """

    alternative: Alternative
    limit: int | None
    reserve: int | None
    phases: tuple[LayerMemory, ...]


@dataclass(frozen=True)
class LargestFit:
    """Capacity with its proof.

    Attributes
    ----------
    value
        The largest number of tokens or sequences at which stages fit; where any number fits, one from which on nothing
        that grows with it fits anywhere.
    next_infeasible
        The number after it: no stages fit there, all were looked at. None where stages fit at any number.
    decisions
        Numbers that were looked at.
    """

    value: int
    next_infeasible: int | None
    decisions: int


@dataclass(frozen=True)
class CapacityProblem:
    """Layers, the ways in which devices hold them, and the load.

    Attributes
    ----------
    groups
        Layers that one stage has to hold, by their numbers.
    one_degree
        Whether all stages have to have the same degree of tensor parallelism.
    """

    holdings: Sequence[Holding]
    devices: ChainDevices
    groups: Sequence[Sequence[int]]
    load: Load
    one_degree: bool = False

    def fit_at(self, value: int) -> bool:
        """Tell whether any stages on the devices fit at a value of the objective; all are looked at."""
        tables = self.tables_at(value)
        parts = [tables.at(degree) for degree in tables.degrees] if self.one_degree else [tables]
        return any(is_feasible(part, self.devices) for part in parts)

    def tables_at(self, value: int) -> ChainTables:
        """Return which ranges of layers fit at a value of the objective, at no cost."""
        context, sequences, batch = self.load.at(value)
        feasible = []
        for holding, phases in zip(self.holdings, self._ranges, strict=True):
            fits = self._stages
            if holding.limit is not None:
                kept = phases[0].weights + phases[0].caches(context, sequences)
                for phase in phases:
                    used = phase.peaks(context, batch) if holding.reserve is None else holding.reserve
                    fits = fits & (kept + used <= holding.limit)
            feasible.append(fits)
        alternatives = tuple(holding.alternative for holding in self.holdings)
        free = np.zeros((len(feasible), *self._stages.shape), dtype=np.int64)
        return ChainTables(alternatives, free, free, np.array(feasible))

    def largest_fit(self) -> LargestFit | None:
        """Return the largest value of the objective at which stages fit; None where none do at 1.

        Notes
        -----
        Whatever fits at a value fits at all lower ones. At most 2·log₂ of the settled value decisions.
        """
        decided: dict[int, bool] = {}

        def holds(value: int) -> bool:
            if value not in decided:
                decided[value] = self.fit_at(value)
            return decided[value]

        settled = self.settled
        value = largest(holds, settled)
        if value == 0:
            return None
        return LargestFit(value or settled, None if value is None else value + 1, len(decided))

    def proof(self, found: LargestFit, positions: int | None = None) -> CapacityProof:
        """Return the proof of a largest value, as plans have it, beside the positions of the configuration."""
        context, sequences, _ = self.load.at(found.value)
        columns = {
            (holding.alternative.degree, memory.whole_prompts): memory
            for holding in self.holdings
            for memory in holding.phases
        }
        return CapacityProof(
            self.load.objective,
            found.next_infeasible,
            context,
            sequences,
            self.load.batch,
            [memory.document(degree) for (degree, _), memory in sorted(columns.items(), key=lambda item: item[0])],
            positions,
            self.devices.least_used > 1,
        )

    @property
    def settled(self) -> int:
        """A value from which on fitting does not change: layers that grow with it exceed every limit."""
        limits = [holding.limit for holding in self.holdings if holding.limit is not None]
        limit = max(limits, default=0)
        of_context = self.load.objective == CONTEXT_OBJECTIVE
        each = (memory for holding in self.holdings for memory in holding.phases)
        values = [self._settled_context(one, limit) if of_context else self._settled_sequences(one, limit)
                  for one in each]  # fmt: skip
        least = self.load.context if of_context else 1
        return min(max(least, *values), MOST_CONTEXT if of_context else MOST_SEQUENCES)

    def _settled_context(self, memory: LayerMemory, limit: int) -> int:
        free, of_type = limit // self.load.sequences, memory.kv_dtype
        context = settled_context(memory.caches, free, of_type, source_grows=True)
        grows = [one.per_token for one in memory.passing if one.per_token] if memory.whole_prompts else []
        return max(context, limit // min(grows, default=limit + 1) + 1)

    def _settled_sequences(self, memory: LayerMemory, limit: int) -> int:
        grows = [size for size in memory.cache_bytes(self.load.context) if size]
        sequences = limit // min(grows, default=limit + 1) + 1
        if self.load.batch is not None:
            return max(sequences, self.load.batch)
        grows = [size for size in memory.passing_bytes(self.load.context, 1) if size]
        return max(sequences, self.load.stages * (limit // min(grows, default=limit + 1) + 1))

    @cached_property
    def _ranges(self) -> list[list[RangeMemory]]:
        """Memory of ranges for each holding; equal layers share one."""
        known: dict[int, RangeMemory] = {}
        return [
            [known.setdefault(id(memory), RangeMemory(memory)) for memory in holding.phases]
            for holding in self.holdings
        ]

    @cached_property
    def _stages(self) -> BoolArray:
        """Ranges that may be stages: they have layers, and cut no group."""
        n = len(self.holdings[0].phases[0].weights)
        cuts, place = cuts_between(self.groups, n), np.arange(n + 1)
        stages: BoolArray = (place[None, :] > place[:, None]) & cuts[None, :] & cuts[:, None]
        return stages
