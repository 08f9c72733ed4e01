"""Partitioners by name: module and default budget of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mtpp import names
from mtpp.errors import InputError
from mtpp.inference.instance import Instance
from mtpp.solvers.limits import UNLIMITED, SearchLimits, SearchResult
from mtpp.solvers.step_times import move_s, order_s
from mtpp.wording import did_you_mean

Partitioner = Callable[[Instance, SearchLimits], SearchResult]

DEFAULT = names.AUTO

_PROOF_STEPS = 200_000_000

_UNMERGED = 8
"""Times as long as graphs that merges have made small."""


@dataclass(frozen=True)
class PartitionerEntry:
    """A partitioner that users can name.

    Attributes
    ----------
    module
        Module whose function ``partition`` it is; imported on first use, for it brings numba.
    budget
        Evaluations on an instance when the user sets no limit.
    evolves
        Whether ``SearchLimits.population`` and ``generations`` mean something to it.
    peaks_in_order
        Whether it takes instances in which the working memory of stages in the graph's order matters.
    """

    name: str
    module: str
    budget: Callable[[Instance], int]
    evolves: bool = False
    peaks_in_order: bool = True

    def load(self) -> Partitioner:
        """Import the solver and return it."""
        solver = cast(Partitioner, import_module(self.module).partition)
        return solver if self.name in _OF_CHAINS else _not_by_ops(solver)


_OF_CHAINS = (names.AUTO, names.DOWNSET, *names.ENGINE_RULES)
"""Partitioners that take devices with times of stages."""


def _not_by_ops(solver: Partitioner) -> Partitioner:
    """Return a partitioner that refuses devices with times of stages."""

    def refusing(instance: Instance, limits: SearchLimits) -> SearchResult:
        if instance.cost.counts_ops:
            remedy = f"use one of {', '.join(_OF_CHAINS)}"
            raise InputError("does not take devices with stage_times", parameter="algorithm", remedy=remedy)
        return solver(instance, limits)

    return refusing


def default_orders(instance: Instance) -> int:
    """Return how many orders to cut when the user sets no limit; the same on every machine."""
    return max(8, min(10_000, int(_aim_s(instance.op_count) / order_s(instance))))


def default_sweeps(instance: Instance) -> int:
    """Return how many evaluations of n moves each to make when the user sets no limit; the same on every machine."""
    n = instance.op_count
    return max(8, int(_aim_s(n) / (n * move_s(instance))))


def default_mix(instance: Instance) -> int:
    """Return how many evaluations annealing and exhaustive search may take in turns when the user sets no limit.

    More where links of neighbours differ: nothing is merged there beforehand.
    """
    boundary = instance.cost.boundary
    return default_sweeps(instance) * (1 if boundary is None or boundary.one_link else _UNMERGED)


def default_proof(instance: Instance) -> int:
    """Return how many evaluations an exhaustive search may take: half a minute on one core of a 2021 server."""
    steps = _PROOF_STEPS // (10 if instance.peaks_in_order else 1)
    return default_sweeps(instance) + steps // instance.op_count + 1


def own_rule(instance: Instance) -> int:
    """Return no limit: the algorithm ends by itself."""
    return UNLIMITED


def _aim_s(op_count: int) -> float:
    """Return the seconds of one core that a search may take by default: 0.3 at 200 ops, 2 at 1,000, 0.1 to 8 in all."""
    return max(0.1, min(0.3 * float((op_count / 200) ** 1.18), 8.0))


_HERE = "mtpp.solvers.partitioners"

PARTITIONERS = {
    entry.name: entry
    for entry in (
        PartitionerEntry(names.AUTO, f"{_HERE}.auto", default_mix),
        PartitionerEntry(names.DOWNSET, f"{_HERE}.downset", default_proof),
        PartitionerEntry(names.ANNEAL, f"{_HERE}.anneal", default_sweeps),
        PartitionerEntry(names.BRKGA, f"{_HERE}.brkga", own_rule, evolves=True),
        PartitionerEntry(names.MLA, f"{_HERE}.mla", own_rule, evolves=True),
        PartitionerEntry(names.MLA_WEIGHTED, f"{_HERE}.mla_weighted", own_rule, evolves=True),
        PartitionerEntry(names.RANDOM, f"{_HERE}.random", default_orders),
        PartitionerEntry(names.SERIES_PARALLEL, f"{_HERE}.series_parallel", own_rule, peaks_in_order=False),
        PartitionerEntry(names.SLICE, f"{_HERE}.slice", own_rule),
        PartitionerEntry(names.EVEN, f"{_HERE}.engine_rules.even", own_rule),
        PartitionerEntry(names.MEMORY, f"{_HERE}.engine_rules.memory", own_rule),
        PartitionerEntry(names.FILL, f"{_HERE}.engine_rules.fill", own_rule),
    )
}


def partitioner(name: str) -> PartitionerEntry:
    """Return the partitioner called *name*.

    Raises
    ------
    InputError
        If there is none; lists those there are.
    """
    try:
        return PARTITIONERS[names.PARTITIONER_ALIASES.get(name, name)]
    except KeyError:
        remedy = did_you_mean(name, names.ALGORITHMS, f"use one of {', '.join(PARTITIONERS)}")
        raise InputError(f"no algorithm is called {name!r}", parameter="algorithm", remedy=remedy) from None
