"""Ways to run a group of layers as a stage, without those that another one is at least as good as in every respect.

Both passes, the synchronisation and memory are sums over layers, and with orders of passes fixed an iteration never
gets shorter when one of them grows. So of two choices of configurations with the same b, d and k, one that is nowhere
below the other need not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mtpp.checker.training.graphpipe.bounds import usable_passes
from mtpp.checker.training.graphpipe.costs import GraphModel, synchronisation_ticks
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.solvers.recheck.pipelines import TooLarge

MOST_WAYS = 2_000
"""To choose configurations for a group, of which none is better than another."""


class StageWay(NamedTuple):
    """b, d and k of a stage with what its layers cost in sum."""

    b: int
    d: int
    k: int
    forward: int
    backward: int
    synchronisation: int
    fixed_bytes: int
    kept_bytes: int

    @property
    def both(self) -> int:
        """Ticks of the two passes."""
        return self.forward + self.backward

    def memory(self, in_flight: int) -> int:
        """Return the bytes on each device with so many micro-batches in flight."""
        return self.fixed_bytes + in_flight * self.kept_bytes


_Costs = tuple[int, ...]


def stage_ways(model: GraphModel, setting: Setting, layers: Sequence[int]) -> list[StageWay]:
    """Return all ways to run some layers as a stage, whatever time and memory they take.

    Raises
    ------
    TooLarge
        If there are too many.
    """
    found = []
    for b, d in setting.ways():
        sums: list[_Costs] = [(0,) * 5]
        for layer in layers:
            costs = [
                (passes.forward, passes.backward, one.parameter_bytes, one.fixed_bytes, passes.kept_bytes)
                for one, passes in usable_passes(model, layer, b // d)
            ]
            sums = _undominated(tuple(map(sum, zip(one, more, strict=True))) for one in sums for more in costs)
        intervals = [k for k in setting.intervals if k <= setting.batches(b)]
        found += [
            StageWay(b, d, k, forward, backward, synchronisation_ticks(parameters, d, setting), fixed, kept)
            for forward, backward, parameters, fixed, kept in sums
            for k in intervals
        ]
    return found


def _undominated(all_costs: Iterable[_Costs]) -> list[_Costs]:
    found: list[_Costs] = []
    for costs in sorted(set(all_costs)):  # a better one comes first
        if not any(all(a <= b for a, b in zip(other, costs, strict=True)) for other in found):
            found.append(costs)
            if len(found) > MOST_WAYS:
                raise TooLarge(f"a stage can be run in more than {MOST_WAYS} ways")
    return found
