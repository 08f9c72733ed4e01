"""Multipliers and mixtures of a handful of sets of ops: linear programmes small enough to look at every basis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.jit import kernel

FloatArray = NDArray[np.float64]


@kernel
def best_multipliers(
    held: FloatArray, over: FloatArray, under: FloatArray, count: int, steepest: float, chosen: FloatArray
) -> float:
    """Return the least, over λ and ρ in range, of the largest ``held − λ·over − ρ·under`` of some sets, at least 0.

    Parameters
    ----------
    held, over, under
        What each set holds, and by how much it is above the budget and below the rest; float64. The place after the
        last set is used.
    steepest
        λ and ρ are from 0 to this.
    chosen
        Result: λ and ρ.

    Notes
    -----
    A linear programme in three variables, by looking at all its vertices: O(count⁴), for a handful of sets.
    """
    held[count], over[count], under[count] = 0.0, 0.0, 0.0  # nothing at all
    least = 0.0
    for i in range(count):
        least = max(least, held[i])
    chosen[0], chosen[1] = 0.0, 0.0
    for corner in range(1, 4):
        budget = steepest if corner != 2 else 0.0
        rest = steepest if corner != 1 else 0.0
        largest = 0.0
        for x in range(count):
            largest = max(largest, held[x] - budget * over[x] - rest * under[x])
        if largest < least:
            least = largest
            chosen[0], chosen[1] = budget, rest
    for i in range(count + 1):
        for j in range(i):
            for k in range(-4, j):
                if k < -2:
                    rest = steepest if k == -4 else 0.0
                    difference = held[i] - held[j] - rest * (under[i] - under[j])
                    budget = difference / (over[i] - over[j]) if over[i] != over[j] else -1.0
                elif k < 0:
                    budget = steepest if k == -2 else 0.0
                    difference = held[i] - held[j] - budget * (over[i] - over[j])
                    rest = difference / (under[i] - under[j]) if under[i] != under[j] else -1.0
                else:
                    a, b = over[i] - over[k], under[i] - under[k]
                    c, d = over[j] - over[k], under[j] - under[k]
                    determinant = a * d - b * c
                    if abs(determinant) < 1e-12:
                        continue
                    p, q = held[i] - held[k], held[j] - held[k]
                    budget = (p * d - q * b) / determinant
                    rest = (q * a - p * c) / determinant
                if not (0.0 <= budget <= steepest and 0.0 <= rest <= steepest):
                    continue
                largest = 0.0
                for x in range(count):
                    largest = max(largest, held[x] - budget * over[x] - rest * under[x])
                    if largest >= least:
                        break
                if largest < least:
                    least = largest
                    chosen[0], chosen[1] = budget, rest
    return float(least)


@kernel
def best_mixture(held: FloatArray, over: FloatArray, under: FloatArray, count: int, chosen: FloatArray) -> bool:
    """Mix some sets so that they hold the most on average, neither over nor under what is allowed on average.

    Parameters
    ----------
    held, over, under
        What each set holds, and by how much it is above the budget and below the rest; float64.
    chosen
        Result: the numbers of three sets, and their shares; float64.

    Returns
    -------
    Whether there is such a mixture.

    Notes
    -----
    A linear programme with three rows, by looking at all its bases: O(count³).
    """
    most = -np.inf
    for i in range(count):
        if over[i] <= 0.0 and under[i] <= 0.0 and held[i] > most:
            most = held[i]
            chosen[0], chosen[1], chosen[2] = i, i, i
            chosen[3], chosen[4], chosen[5] = 1.0, 0.0, 0.0
    for i in range(count):
        for j in range(i):
            for side in range(2):
                first = over[i] if side == 0 else under[i]
                second = over[j] if side == 0 else under[j]
                if first * second >= 0.0:
                    continue
                share = second / (second - first)
                other = share * under[i] + (1.0 - share) * under[j]
                if side == 1:
                    other = share * over[i] + (1.0 - share) * over[j]
                value = share * held[i] + (1.0 - share) * held[j]
                if other <= 1e-12 and value > most + 1e-12:
                    most = value
                    chosen[0], chosen[1], chosen[2] = i, j, j
                    chosen[3], chosen[4], chosen[5] = share, 1.0 - share, 0.0
            for k in range(j):
                a, b = over[i] - over[k], over[j] - over[k]
                c, d = under[i] - under[k], under[j] - under[k]
                determinant = a * d - b * c
                if abs(determinant) < 1e-12:
                    continue
                first = (-over[k] * d + under[k] * b) / determinant
                second = (-under[k] * a + over[k] * c) / determinant
                third = 1.0 - first - second
                value = first * held[i] + second * held[j] + third * held[k]
                if first >= 0.0 and second >= 0.0 and third >= 0.0 and value > most + 1e-12:
                    most = value
                    chosen[0], chosen[1], chosen[2] = i, j, k
                    chosen[3], chosen[4], chosen[5] = first, second, third
    return most > -np.inf
