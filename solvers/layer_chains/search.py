"""Best plans of a chain: least bottleneck within a latency, least latency within a bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.layer_chains.decision import least_bottleneck
from mtpp.solvers.layer_chains.devices import ChainDevices, ChainStage
from mtpp.solvers.layer_chains.tables import NEVER, ChainTables


@dataclass(frozen=True)
class ChainResult:
    """Stages with ops in the order of the pipeline, and what they come to."""

    stages: tuple[ChainStage, ...]
    bottleneck: int
    latency: int

    @classmethod
    def of(cls, tables: ChainTables, stages: Sequence[ChainStage]) -> ChainResult:
        """Return stages with the figures that the tables have for them."""
        costs = [int(tables.cost[one.alternative, one.start, one.stop]) for one in stages]
        times = [int(tables.latency[one.alternative, one.start, one.stop]) for one in stages]
        return cls(tuple(stages), max(costs), sum(times))


def fastest_plan(tables: ChainTables, devices: ChainDevices, *, max_latency: int | None = None) -> ChainResult | None:
    """Return the plan of least bottleneck, of those within the latency, and of these the one of least latency.

    Returns
    -------
    None if there is no plan within the latency: proven.

    Notes
    -----
    A decision for each step of a search for the bottleneck, and where the latency is limited a plan of least latency
    for each.
    """
    bottleneck = least_bottleneck(tables, devices)
    if bottleneck is None:
        return None
    found = least_latency_plan(tables, devices, max_bottleneck=bottleneck)
    assert found is not None
    if max_latency is None or found.latency <= max_latency:
        return found
    best = least_latency_plan(tables, devices)
    if best is None or best.latency > max_latency:
        return None
    low = int(np.searchsorted(tables.levels, bottleneck)) + 1
    high = int(np.searchsorted(tables.levels, best.bottleneck))
    while low < high:  # nothing below level low keeps to the latency; best does, at level high or below
        middle = (low + high) // 2
        found = least_latency_plan(tables, devices, max_bottleneck=int(tables.levels[middle]))
        if found is not None and found.latency <= max_latency:
            best, high = found, int(np.searchsorted(tables.levels, found.bottleneck))
        else:
            low = middle + 1
    return best


def least_latency_plan(
    tables: ChainTables, devices: ChainDevices, *, max_bottleneck: int | None = None
) -> ChainResult | None:
    """Return a plan of least latency, of those within the bottleneck; None if there is none: proven.

    Notes
    -----
    O(n² · ways to have used some devices of each class · classes) in array operations; in fixed order
    O(n² · devices · devices that may be used).
    """
    most = NEVER - 1 if max_bottleneck is None else max_bottleneck
    latency = tables.latency_by_class(devices.classes, most)
    found = _by_counts(latency, devices) if devices.counted else _in_order(latency, devices)
    if found is None:
        return None
    stages = [
        ChainStage(device, tables.best_alternative(devices.class_of[device], start, stop, most), start, stop)
        for device, start, stop in found
    ]
    return ChainResult.of(tables, stages)


_Stages = list[tuple[int, int, int]]
"""Device, start and stop of each stage with ops."""


def _stops(row: Int64Array) -> slice:
    """Return the stops from the first to the last that an interval may have, none of them if there is none."""
    stops = np.flatnonzero(row < NEVER)
    return slice(int(stops[0]), int(stops[-1]) + 1) if len(stops) else slice(0, 0)


def _by_counts(latency: Int64Array, devices: ChainDevices) -> _Stages | None:
    """Return the stages of least latency where only the number of devices of each class matters.

    Parameters
    ----------
    latency
        By class, start and stop.
    """
    n, counts = latency.shape[1] - 1, devices.counts(latency.shape[1] - 1)
    least = np.full((n + 1, *(count + 1 for count in counts)), NEVER, dtype=np.int64)
    least[(0,) * least.ndim] = 0
    used = sum(np.indices(least.shape[1:]))
    short = (slice(None),) * len(counts)
    for start in range(n):
        here = least[start]
        for c in range(len(counts)):
            stops = _stops(latency[c, start])
            row = latency[c, start, stops].reshape(-1, *(1 for _ in counts))
            source = here[(*short[:c], slice(None, -1))]
            target = least[(stops, *short[:c], slice(1, None))]
            if row.size and source.min() < NEVER:
                np.minimum(target, source[np.newaxis] + row, out=target)
    last = np.where((used >= devices.least_used) & (used <= devices.most_used), least[n], NEVER)
    cell = tuple(int(i) for i in np.unravel_index(int(last.argmin()), last.shape))
    if last[cell] == NEVER:
        return None
    left = {c: [i for i, own in enumerate(devices.class_of) if own == c] for c in devices.classes}
    found: list[tuple[int, int, int]] = []
    stop = n
    while stop:
        start, c = _step_back(least, latency, cell, stop)
        found.append((c, start, stop))
        cell = (*cell[:c], cell[c] - 1, *cell[c + 1 :])
        stop = start
    return [(left[devices.classes[c]].pop(0), start, stop) for c, start, stop in reversed(found)]


def _step_back(least: Int64Array, latency: Int64Array, cell: tuple[int, ...], stop: int) -> tuple[int, int]:
    """Return start and class of the last stage of the least plan that uses so many devices of each class."""
    for c, count in enumerate(cell):
        if not count:
            continue
        fewer: tuple[Any, ...] = (slice(stop), *cell[:c], count - 1, *cell[c + 1 :])
        before = least[fewer]
        hits = np.flatnonzero((before < NEVER) & (before + latency[c, :stop, stop] == least[(stop, *cell)]))
        if len(hits):
            return int(hits[0]), c
    raise AssertionError("a least latency that no last stage has")


def _in_order(latency: Int64Array, devices: ChainDevices) -> _Stages | None:
    """Return the stages of least latency on devices in fixed order, by numbers of leading and of used devices."""
    n, k = latency.shape[1] - 1, len(devices.class_of)
    most = devices.most_used if devices.limited else 0
    row_of = [devices.classes.index(c) for c in devices.class_of]
    least = np.full((n + 1, k + 1, most + 1), NEVER, dtype=np.int64)
    least[0, 0, 0] = 0
    more = slice(1, None) if devices.limited else slice(None)
    fewer = slice(None, -1) if devices.limited else slice(None)
    for start in range(n + 1):
        here = least[start] = np.minimum.accumulate(least[start], axis=0)
        if start == n or here.min() == NEVER:
            continue
        rows = latency[row_of, start]
        stops = _stops(rows.min(axis=0))
        target = least[stops, 1:, more]
        np.minimum(target, here[:-1, fewer][np.newaxis] + rows[:, stops].T[:, :, np.newaxis], out=target)
    first = devices.least_used if devices.limited else 0
    used = first + int(least[n, k, first:].argmin())
    if least[n, k, used] == NEVER:
        return None
    found: _Stages = []
    stop, lead, one = n, k, 1 if devices.limited else 0
    while stop:
        value = least[stop, lead, used]
        if least[stop, lead - 1, used] == value:
            lead -= 1
            continue
        before = least[:stop, lead - 1, used - one]
        hits = np.flatnonzero((before < NEVER) & (before + latency[row_of[lead - 1], :stop, stop] == value))
        found.append((lead - 1, int(hits[0]), stop))
        stop, lead, used = int(hits[0]), lead - 1, used - one
    return found[::-1]
