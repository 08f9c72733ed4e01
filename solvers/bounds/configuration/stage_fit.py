"""Weights of the largest sum by which no stage that is known holds more than 1, and stages that are met on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mtpp.array_types import BoolArray
from mtpp.host.deadline import Deadline
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array
from mtpp.solvers.bounds.configuration.known_stages import KnownStages, rows_of
from mtpp.solvers.bounds.mip.highs import RowProgram, broken_rows

_ROUNDS = 60
"""Rounds at most in which stages are met that hold too much."""

_SETTLED = 0.05
"""Share of what is above k that a round has to gain to be followed by another."""

_GUIDES = (0.0, 0.5, 0.8, 0.95)
"""Shares of the best weights so far in those by which stages are grown, one growth of a round after the other."""

_WILD, _WILD_SHARE = 1.3, 0.15
"""Sums of more than so many times k tell of stages that are not known yet; share of the time left to look for those."""

_MIXED = 11
"""Mixtures of good weights and new ones that are tried."""

MARGIN = 4e-6
"""By how much sums and shares have to be above their targets, for rounding."""

TINY = 1e-7
"""In place of 0 where weights are divided."""

PROGRAMME_S = 3.0
"""Seconds for one linear programme: now and then HiGHS goes round in circles for minutes."""


class StageFit(NamedTuple):
    """Weights that stages known keep to.

    Attributes
    ----------
    total
        Sum of the weights, or 2·k at least if some op is in no stage known. It falls until no stage is met that holds
        more.
    weight
        As far as the programme got, float64, shape (n,).
    centre
        Of the largest sum among mixtures of the weights met, no stage known holding more than 1; float64, shape (n,).
    """

    total: float
    weight: FloatArray
    centre: FloatArray


def fit_stages(
    known: KnownStages, weight: FloatArray, deadline: Deadline, ended: Callable[[], bool]
) -> StageFit | None:
    """Return the weights of the largest sum, more stages being met until that hardly changes it.

    Parameters
    ----------
    weight
        To begin with, float64, shape (n,).

    Returns
    -------
    None if there was no time for the first programme.

    Notes
    -----
    The programme's weights are 0 for many ops at first, and then tell nothing of how to grow a stage: stages are grown
    by mixtures of them and the best weights so far too (Wentges 1997).
    """
    k, n = known.sets.instance.k, known.sets.instance.op_count
    known.keep(weight)
    total, above = np.inf, -1.0
    centre, wild = weight, deadline.share(_WILD_SHARE)
    programme, told = RowProgram(np.ones(n)), np.zeros(0, dtype=np.bool_)
    for _ in range(_ROUNDS):
        if _WILD * k < total < np.inf and wild.expired():
            break
        met = sum(known.grow(weight, above, (1 - share) * weight + share * centre) for share in _GUIDES)
        inside = known.within()
        if len(inside) == 0 and not ended():  # any weights will do, as far as is known
            return StageFit(2.0 * k, weight, weight)
        centre = _best_mixture(inside, centre, weight)
        if (total < np.inf and met == 0) or ended():
            break
        told = np.concatenate([told, np.zeros(len(inside) - len(told), dtype=np.bool_)])
        found = _largest(inside, programme, told, weight, above, deadline, ended)
        if found is None:
            break
        former, (total, weight) = total, found
        above = 1.0 + MARGIN
        if total <= k or (total < _WILD * k and former - total < _SETTLED * (total - k)):
            break
    if total == np.inf:
        return None
    alone = ~known.within().any(axis=0)  # what no stage holds may weigh as much as it likes
    if alone.any():
        weight, total = weight + alone * (max(0.0, k - total) / alone.sum()), max(total, 2.0 * k)
    return StageFit(total, weight, centre)


def _largest(
    inside: Int8Array, programme: RowProgram, told: BoolArray, weight: FloatArray, above: float, deadline: Deadline,
    ended: Callable[[], bool],
) -> tuple[float, FloatArray] | None:  # fmt: skip
    """Return the largest sum of weights of which no stage known holds more than 1, and those; None: no time.

    Parameters
    ----------
    inside
        Stages known within the limit, int8, shape (stages, n).
    programme
        Is told of the stages that hold more than *above*, the fullest first, and of those that hold more than 1 of what
        it comes to, until there are none.
    told
        Which of them it has been told of, bool, shape (stages,).
    """
    n = len(weight)
    found: tuple[float, FloatArray] | None = None
    while True:
        broken = broken_rows(inside @ weight, told, max(0.0, above))
        if len(broken) == 0 or ended():
            return found
        programme.add(rows_of(inside[broken]), 1.0)
        solved = programme.solve(np.zeros(n), np.ones(n), min(PROGRAMME_S, deadline.remaining_s()))
        if solved is None:
            return found
        weight = np.maximum(0.0, solved[1])
        found, above = (solved[0], weight), 1.0 + MARGIN


def _best_mixture(inside: Int8Array, centre: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the mixture of two weights that has the largest sum, no stage known holding more than 1."""
    by_centre, by_weight = inside @ centre, inside @ weight
    shares = np.linspace(0.0, 1.0, _MIXED)
    fullest = [float(((1 - share) * by_centre + share * by_weight).max(initial=TINY)) for share in shares]
    totals = ((1 - shares) * centre.sum() + shares * weight.sum()) / fullest
    best = int(np.argmax(totals))
    return np.asarray(((1 - shares[best]) * centre + shares[best] * weight) / fullest[best])
