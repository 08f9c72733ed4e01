"""Plain-Python oracle of chains of downsets: every downset, every stage, every option, in exact fractions.

It shares nothing with the search but the costs of single layers and transfers.
"""

from __future__ import annotations

from collections.abc import Set
from fractions import Fraction
from functools import cache

from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import PassCosts

NEVER = Fraction(10**30)


def least_chain(problem: GraphProblem, left_out: Set[int] = frozenset(), *, timed: bool = True) -> Fraction:
    """Return the least time of a chain of downsets of the layers that are not left out; bytes if it is not *timed*."""
    options = [[(size, d) for d in problem.degrees(size)] for size in problem.sizes]
    if problem.rules.per_stage:
        options = [[one for here in options for one in here]]
    return min(_Chains(problem, left_out, here, timed).least() for here in options)


class _Chains:
    def __init__(self, problem: GraphProblem, left_out: Set[int], options: list[tuple[int, int]], timed: bool) -> None:
        self._problem, self._options, self._timed = problem, options, timed
        self._layers = [v for v in problem.model.order if v not in left_out]
        self._edges = [
            (u, v, edge.communication_bytes)
            for edge, (u, v) in zip(problem.model.edges, problem.model.ends, strict=True)
            if u not in left_out and v not in left_out
        ]
        self._behinds = {d: self._behind(problem.devices - d) for _, d in options}
        self._arrivals = {d: self._arrival(problem.devices - d) for _, d in options}

    def _arrival(self, devices: int) -> dict[int, tuple[int, int]]:
        """Return the longest paths up to and with each layer, in stages of so many devices at most."""
        arrival: dict[int, tuple[int, int]] = {}
        for v in self._layers:
            before = [arrival[u] for u, w, _ in self._edges if w == v]
            both, forward = self._fastest(v, devices)
            arrival[v] = (
                max((one for one, _ in before), default=0) + both,
                max((one for _, one in before), default=0) + forward,
            )
        return arrival

    def _behind(self, devices: int) -> dict[int, int]:
        """Return how long each layer and those behind it take, in stages of so many devices at most."""
        taken: dict[int, int] = {}
        for v in reversed(self._layers):
            known = [
                (self._problem.mini_batch // size, costs.forward_ticks + costs.backward_ticks)
                for size, d in self._options
                if d <= devices
                for costs in self._passes(v, size // d)
            ]
            after = max((taken[w] for u, w, _ in self._edges if u == v), default=0)
            once = min((both for _, both in known), default=int(NEVER))
            taken[v] = max(once + after, min((count * both for count, both in known), default=int(NEVER)))
        return taken

    def least(self) -> Fraction:
        full = frozenset(self._layers)
        downsets = [frozenset[int]()]
        for v in self._layers:
            downsets += [one | {v} for one in downsets if all(u in one for u, w, _ in self._edges if w == v)]

        @cache
        def rest(done: frozenset[int], devices: int) -> Fraction:
            if done == full:
                return Fraction(0)
            return min(
                (
                    max(self._need(done, larger - done, size, d), rest(larger, devices - d))
                    for larger in downsets
                    if larger > done
                    for size, d in self._options
                    if d <= devices
                ),
                default=NEVER,
            )

        return rest(frozenset(), self._problem.devices)

    def _passes(self, v: int, samples: int) -> list[PassCosts]:
        return [
            self._problem.costs.passes(one, samples)
            for one in self._problem.choices[v]
            if not one.micro_batches or samples in one.micro_batches
        ]

    def _fastest(self, v: int, devices: int | None = None) -> tuple[int, int]:
        most = self._problem.devices if devices is None else devices
        known = [costs for size, d in self._options if d <= most for costs in self._passes(v, size // d)]
        never = int(NEVER)
        return (
            min((one.forward_ticks + one.backward_ticks for one in known), default=never),
            min((one.forward_ticks for one in known), default=never),
        )

    def _need(self, done: Set[int], stage: Set[int], size: int, d: int) -> Fraction:
        """Return the time that a stage needs, or the bytes."""
        problem = self._problem
        batches = problem.mini_batch // size
        in_flight = min(problem.rules.intervals)
        if any(u in stage and v not in stage for u, v, _ in self._edges):
            in_flight = max(in_flight, min(2, batches))
        known = {v: self._passes(v, size // d) for v in stage}
        kept = sum(min(one.memory_bytes for one in known[v]) for v in stage)
        need = sum(min(one.memory_b for one in problem.choices[v]) for v in stage) + in_flight * kept
        if not self._timed:
            return Fraction(need)
        if need > problem.memory_bytes:
            return NEVER
        both = forward = channel = 0
        pair = sum(min(one.forward_ticks + one.backward_ticks for one in known[v]) for v in stage)
        if problem.rules.sequential:
            both, forward = (sum(self._fastest(v)[kind] for v in done) for kind in range(2))
        for u, v, moved in self._edges:
            if v in stage and u not in stage:
                there = min(problem.costs.transfer([moved], one, d) for one, _ in self._options)
                back = problem.costs.transfer([moved], size, d)
                both = max(both, self._arrivals[d][u][0] + there + back)
                forward = max(forward, self._arrivals[d][u][1] + there)
                sizes = {one for one, _ in self._options}
                all_there = min(problem.mini_batch // b * problem.costs.transfer([moved], b, d) for b in sizes)
                channel = max(channel, self._arrivals[d][u][0] + all_there + back)
                channel = max(channel, self._arrivals[d][u][0] + there + batches * back)
        trip = 0
        for u, v, moved in self._edges:
            if u in stage and v not in stage:
                there = problem.costs.transfer([moved], size, d)
                back = min(problem.costs.transfer([moved], one, d) for one, _ in self._options)
                trip = max(trip, both + pair + there + self._behinds[d][v] + back)
        work = batches * pair
        parameters = sum(min(one.parameter_bytes for one in problem.choices[v]) for v in stage)
        synchronised = Fraction(2 * (d - 1) * parameters * 10**12, d * problem.costs.link.bandwidth_bytes_per_s)
        return max(
            Fraction(both + work),
            Fraction(trip),
            forward + work + synchronised,
            Fraction(channel + pair if channel else 0),
        )
