"""Memory layout of the pipeline search: the question of a threshold, and the states of each downset."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array

NOT_KNOWN = -9
"""Entry of the table of least compute that has not been worked out."""


class Threshold(NamedTuple):
    """What is asked: one time per sample, a memory, and how many devices and micro-batches there are.

    Attributes
    ----------
    data_degrees
        Degrees of data parallelism that may be used, ascending; shape (G,).
    scale_p, scale_w, budget
        A stage of degree ``data_degrees[g]`` is within the threshold if ``scale_p[g] · (compute and edges) +
        scale_w[g] · weights ≤ budget[g]``.
    rest_devices, rest_degrees
        For each downset, devices and degrees that the layers outside need at least; shape (D,).
    numbers
        At the positions :data:`MEMORY` to :data:`BY_BATCH`: memory, devices K, micro-batches N, the threshold in ticks
        rounded up, whether degrees have to sum up to exactly N, which choices are meant (``LEAST`` or ``BANG_PER_BUCK``
        of :mod:`mtpp.solvers.planners.piper.kernels.stage_choices`), whether undecided knapsacks count as solved, and
        whether gradients are spread over the batch (the convention ``program``).
    """

    data_degrees: Int64Array
    scale_p: Int64Array
    scale_w: Int64Array
    budget: Int64Array
    rest_devices: Int64Array
    rest_degrees: Int64Array
    numbers: Int64Array


MEMORY, DEVICES, MICRO_BATCHES, TICKS, EXACTLY, KNAPSACK, OPTIMISTIC, BY_BATCH = range(8)


class States(NamedTuple):
    """The states of each downset, by ascending s; up to Q of them.

    Attributes
    ----------
    counts
        Number of states, shape (D,).
    degrees, devices
        s and k of each, shape (D, Q).
    inner, state, tensor, data
        How the state comes about: the downset behind its first stage, the state of that one, and the positions of the
        stage's degrees t and d; shape (D, Q).
    """

    counts: Int64Array
    degrees: NDArray[np.int32]
    devices: NDArray[np.int32]
    inner: NDArray[np.int32]
    state: NDArray[np.int32]
    tensor: NDArray[np.int32]
    data: NDArray[np.int32]


class LeastCompute(NamedTuple):
    """Least Σ compute of choices that fit into the memory, for stages whose choices differ in nothing else.

    Attributes
    ----------
    pair
        Number of the pair (outer, inner) or -1, shape (D, D); shape (0, 0) without a table.
    start
        Entries of a pair and degree j: from ``start[pair · J + j]``, one for each number of micro-batches in flight.
    ticks
        The entries, or :data:`NOT_KNOWN`; written by several threads, always with the same values.
    """

    pair: Int64Array
    start: Int64Array
    ticks: Int64Array


class StateScratch(NamedTuple):
    """Space for one thread: the best state of a downset by s."""

    devices: NDArray[np.int32]
    inner: NDArray[np.int32]
    state: NDArray[np.int32]
    tensor: NDArray[np.int32]
    data: NDArray[np.int32]
