"""Most value that a stage within a limit holds beside each op, by Lagrangian minimum cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.flows.anchored_network import AnchoredNetwork
from mtpp.solvers.flows.kernels.anchored_cut import CutScratch, cut_around, relate
from mtpp.solvers.jit import kernel

_ROOM = 2**61

_CUTS = 12
"""Cuts for an op and a limit at most; two or three will do for most."""

_TOLERANCE = 1e-3
"""Relative gap between a bound and the best that multipliers can make of it."""

_GUESS = 1.1
"""Multiplier that the search begins with, until one is found."""


class Parts(NamedTuple):
    """What was found for each op, int64, shape (n,).

    Attributes
    ----------
    p, q
        Multiplier p / q of the limit; the next search begins with it, unless it is 0. q = 0: there is no set within
        the limit.
    least
        Least p·cost − q·value of the sets around the op: their value is at most (p·limit − least) / q.
    largest
        That, rounded down; −1 if q = 0.
    cuts
        Number of cuts made.
    """

    p: Int64Array
    q: Int64Array
    least: Int64Array
    largest: Int64Array
    cuts: Int64Array


@kernel
def largest_parts(
    network: AnchoredNetwork,
    weight: Int64Array,
    value: Int64Array,
    most_cost: int,
    limit: int,
    ops: Int64Array,
    parts: Parts,
    scratch: CutScratch,
) -> None:
    """Bound the value of the stages that hold each of *ops* and cost at most *limit*.

    Parameters
    ----------
    most_cost
        At least Σ weight + 2·Σ transfer. Multipliers are as fine as it, *limit* and Σ value allow below 2^61.

    Notes
    -----
    Before each cut *parts* holds the best multiplier so far, and the minimum is between the lines over and within
    *limit*, if both are known.
    The Lagrangian dual is convex and piecewise linear in the multiplier; each cut gives one of its lines. The next
    multiplier is where the last two lines meet that enclose the minimum.
    """
    guess = _GUESS
    all_value = np.int64(0)
    for u in range(len(value)):
        all_value += value[u]
    for i in range(len(ops)):
        v = ops[i]
        relate(network, weight, v, limit, scratch)
        ratio = guess if parts.p[v] == 0 or parts.q[v] == 0 else parts.p[v] / parts.q[v]
        best = np.float64(all_value)
        parts.p[v], parts.q[v], parts.least[v], parts.largest[v] = 0, 1, -all_value, all_value
        cost_over, value_over = np.int64(-1), np.int64(0)
        cost_within, value_within = np.int64(-1), np.int64(0)
        parts.cuts[v] = 0
        for step in range(_CUTS):
            q = np.int64(2**14)
            while q > 1 and (ratio * q + 1.0) * (most_cost + limit) + np.float64(q) * all_value >= _ROOM:
                q >>= 1
            p = max(np.int64(1), np.int64(ratio * q + 0.5))
            if np.float64(p) * (most_cost + limit) + np.float64(q) * all_value >= _ROOM:
                break
            if ratio < 0:  # no multiplier: the least cost
                p, q = np.int64(1), np.int64(0)
            least = cut_around(network, weight, value, v, int(p), int(q), 2**62, scratch)
            parts.cuts[v] += 1
            held = np.int64(0)
            for u in range(len(value)):
                if scratch.flow.level[u] >= 0:
                    held += value[u]
            cost = (least + q * held) // p
            if q > 0:
                bound = (np.float64(p) * limit - least) / q
                if bound < best:
                    best = bound
                    parts.p[v], parts.q[v], parts.least[v] = p, q, least
                    parts.largest[v] = (p * limit - least) // q
            if cost > limit:
                if q == 0:
                    parts.largest[v] = -1
                    parts.p[v], parts.q[v], parts.least[v] = p, q, least
                    break
                if cost_within >= 0 and cost == cost_over and held == value_over:
                    break
                cost_over, value_over = cost, held
            else:
                if cost_over >= 0 and cost == cost_within and held == value_within:
                    break
                cost_within, value_within = cost, held
            if cost_within < 0:
                ratio = -1.0 if step > 2 else 1.5 * (p / q)
                continue
            if cost_over < 0:
                if held == all_value or (q > 0 and p == 1):
                    break
                ratio = guess if q == 0 else (0.7 if step < 3 else 0.1) * (p / q)
                continue
            ratio = (value_over - value_within) / (cost_over - cost_within)
            if ratio <= 0.0:
                break
            if best - (value_within + ratio * (limit - cost_within)) <= _TOLERANCE * best:
                break
        if parts.p[v] > 0 and parts.q[v] > 0:
            guess = parts.p[v] / parts.q[v]
