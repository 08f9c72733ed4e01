"""Weights for searches over downsets of one instance after the other, better each time that they are asked for.

A search that goes on for long gains from weights of which hardly any stage has room to spare
(:mod:`mtpp.solvers.downsets.stage_shares`). They are looked for at the limit of the search, on the instance that is
searched, with as much work as the search allows: what they cost is never more than a share of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mtpp.host.deadline import Deadline
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.convex_weights.search import ConvexWeightSearch
from mtpp.solvers.bounds.frontier.narrow_search import LARGEST, on_narrow_order
from mtpp.solvers.bounds.limits import BoundLimits
from mtpp.solvers.downsets.stage_shares import StageShares

_STEP_ENTRIES = 4
"""Entries of a scan that take as long as a step of a search."""

_ORDER_STEPS = 1 << 20
"""Steps that take as long as to find a narrow order."""

_MOST_S = 10.0
"""Seconds for better weights each time at most: linear programmes hear of no other end."""


class SearchRules:
    """Weights for searches of several instances, of which one at a time has memory for its scans.

    Parameters
    ----------
    memory_bytes
        Of the scans; None: as of :func:`~mtpp.solvers.bounds.frontier.scan.room_within`.
    """

    def __init__(self, memory_bytes: int | None, seed: int = 0) -> None:
        self._memory_bytes, self._seed = memory_bytes, seed
        self._last: SearchRule | None = None

    def begin(self, instance: Instance) -> SearchRule | None:
        """Return the weights of an instance, before any work; None where it is too large or on devices that differ."""
        if instance.k < 2 or instance.op_count > LARGEST or not instance.uniform:
            return None
        return SearchRule(instance, self._taken)

    def _taken(self, rule: SearchRule) -> BoundLimits:
        """Let one rule have the memory, and return limits for it."""
        if self._last is not None and self._last is not rule:
            self._last.put_off()
        self._last = rule
        return BoundLimits(rule.instance.most_ticks, memory_bytes=self._memory_bytes, seed=self._seed)


class SearchRule:
    """Weights for searches of one instance.

    Attributes
    ----------
    instance
        The instance.
    """

    def __init__(self, instance: Instance, taken: Callable[[SearchRule], BoundLimits]) -> None:
        self.instance = instance
        self._taken = taken
        self._search: ConvexWeightSearch | None = None
        self._begun = False
        self._settled: int | None = None  # the limit at which no better ones are to be had

    def put_off(self) -> None:
        """Give back the memory of what can be made again."""
        if self._search is not None:
            self._search.put_off()

    def improved(self, limit: int, steps: int, ended: Callable[[], bool]) -> tuple[StageShares | None, int]:
        """Look for better weights at a limit, with as much work as so many steps of a search.

        Returns
        -------
        The best ones known there, None if there are none new, and the steps that the work took.
        """
        limits = self._taken(self)
        spent = 0
        if not self._begun:
            self._begun, spent = True, _ORDER_STEPS
            self._search = on_narrow_order(ConvexWeightSearch)(self.instance, limits)
        if self._search is None or limit == self._settled:
            return None, spent
        within = replace(limits, deadline=Deadline(_MOST_S), interrupted=ended)
        most = _STEP_ENTRIES * max(1, steps - spent)
        entries = self._search.improve_at(limit, within, most)
        if entries < most and not within.ended():
            self._settled = limit
        return self._search.shares_at(limit), spent + entries // _STEP_ENTRIES
