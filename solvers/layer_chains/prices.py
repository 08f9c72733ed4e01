"""Prices of devices: what a verifier needs to refute plans of a latency without looking at every way to use devices.

If each device of class c costs a price q_c besides the latency of its stage, a plan of latency L costs at most
L + Σ q_c · count_c. A part of a plan that cannot be continued within that is no part of such a plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.inference.goal import Goal
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.tables import NEVER, ChainTables

_ROUNDS = 60
_LARGEST = 2**60


def prices_above(tables: ChainTables, devices: ChainDevices, goal: Goal, value: int) -> dict[str, Any]:
    """Return the prices of a proof that no plan has an objective below a value; nothing where they do not matter.

    Any prices are sound. Subgradient steps raise the least cost of a chain of intervals, less what the devices may
    cost at most: the closer it comes to the latency, the less there is to look through.

    Parameters
    ----------
    value
        Optimum of the objective.
    """
    if not devices.counted:
        return {}
    most = (NEVER - 1 if goal.limit is None else goal.limit) if goal.of_latency else value - 1
    latency = tables.latency_by_class(devices.classes, most)
    counts = np.array([*devices.counts(tables.op_count), devices.most_used], dtype=np.int64)
    prices, best, best_value = np.zeros_like(counts), np.zeros_like(counts), -1
    step = value if goal.of_latency else int(goal.limit or 0)
    for turn in range(_ROUNDS):
        least, used = _cheapest(latency, prices[:-1] + prices[-1])
        if least is None:
            return {}
        bound = least - int((prices * counts).sum())
        if bound > best_value:
            best, best_value = prices.copy(), bound
        excess = np.append(used, used.sum()) - counts
        prices = np.maximum(0, prices + excess * max(1, step // (devices.most_used * (turn + 2))))
        if int(prices.max()) > _LARGEST // devices.most_used:
            break
    return {"prices": best[:-1].tolist(), "price_of_any": int(best[-1])} if best.any() else {}


def _cheapest(latency: Int64Array, prices: Int64Array) -> tuple[int | None, Int64Array]:
    """Return the least cost of a chain of intervals with a price on each, and the devices of each class in it."""
    priced = np.where(latency < NEVER, latency + prices[:, np.newaxis, np.newaxis], NEVER)
    cost, chosen = priced.min(axis=0), priced.argmin(axis=0)
    n = cost.shape[0] - 1
    least = np.full(n + 1, NEVER, dtype=np.int64)
    least[0] = 0
    start_of = np.zeros(n + 1, dtype=np.int64)
    for stop in range(1, n + 1):
        total = least[:stop] + cost[:stop, stop]
        start_of[stop] = int(total.argmin())
        least[stop] = min(NEVER, int(total[start_of[stop]]))
    used = np.zeros(len(prices), dtype=np.int64)
    if least[n] == NEVER:
        return None, used
    stop = n
    while stop:
        start = int(start_of[stop])
        used[chosen[start, stop]] += 1
        stop = start
    return int(least[n]), used
