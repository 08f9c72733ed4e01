"""Stages within a limit that hold much weight: grown op by op, thinned out at random, and grown again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array, StageNetwork
from mtpp.solvers.jit import inlined, kernel, subroutine

BitArray = NDArray[np.uint64]
"""Sets of ops, one a row, 64 ops a word, uint64."""

_TRIED = 256
"""Ops that are tried at each step at most, drawn at random if there are more."""

_TENSORS = 0.5
"""Share of the tensors cut that are tried at a step, with all their ops."""

_AT_LEAST = 0.02
"""Share of the limit that an op counts as at least, so that what costs nothing is not all that counts."""

_LEAST_THINNED, _MOST_THINNED = 0.05, 0.35
"""Share of the limit by which a stage is to cost less before it grows again."""

_HIGHEST = 8.0
"""What a tick that is cut counts at most: more than one of work where stages have too little work for what they cut."""

_NOISE = 0.05
"""What chance weighs in where ops leave, in the weight of the whole stage."""

_ONE, _WORD = np.uint64(1), 64


class Paths(NamedTuple):
    """What the growth of stages asks of a graph besides its network.

    Attributes
    ----------
    own, before, after
        Each op, then the ops that touch each tensor; the ops on the paths to any of them, and from any of them; shape
        (n + m, words).
    tensor_offsets, tensors
        Tensors that touch each op, CSR, int64 and int32.
    """

    own: BitArray
    before: BitArray
    after: BitArray
    tensor_offsets: Int64Array
    tensors: Int32Array


class Growing(NamedTuple):
    """A stage that grows.

    Attributes
    ----------
    own, above, below
        Its ops, and those on the paths to any of them and from any of them, shape (words,).
    touched
        How many of the ops of each tensor it has, int64, shape (m,).
    sums
        Its work and what it cuts, int64, shape (2,).
    total
        Its weight, float64, shape (1,).
    tried, drawn
        Room for what may join, and for the ops that it draws in, int64, shapes (n + m,) and (n,).
    """

    own: BitArray
    above: BitArray
    below: BitArray
    touched: Int64Array
    sums: Int64Array
    total: FloatArray
    tried: Int64Array
    drawn: Int64Array


@kernel
def grow_stages(
    network: StageNetwork, paths: Paths, starts: BitArray, weight: FloatArray, most: int, least: int, spread: float,
    rounds: int, seed: int, inside: Int8Array, held: FloatArray,
) -> None:  # fmt: skip
    """Grow a stage from each of some sets: always by what adds most weight for its cost.

    A stage that does not grow any more is thinned out and grown again, so many rounds, and goes on from the best one.

    Parameters
    ----------
    network, paths
        Of the instance.
    starts
        Convex sets, at any cost.
    weight
        Of each op, float64, shape (n,).
    most, least
        Of the work of a stage and what it cuts, and of its work less what it cuts.
    spread
        How much chance weighs in, at least 0.
    rounds
        Times that a stage is thinned out and grown again.
    seed
        For the chance.
    inside
        Result: 1 for the ops of the best stage from each start; int8, shape (starts, n).
    held
        Result: its weight, below 0 if there is none, float64, shape (starts,).

    Notes
    -----
    O(words + pins) for each op or tensor tried at a step, and for each op of a stage when one leaves. Stages are
    convex.
    """
    n, m, words = len(network.work), len(network.transfer), starts.shape[1]
    np.random.seed(seed)
    empty = np.zeros(words, dtype=np.uint64)
    stage = Growing(
        empty.copy(), empty.copy(), empty.copy(), np.zeros(m, dtype=np.int64), np.zeros(2, dtype=np.int64),
        np.zeros(1, dtype=np.float64), np.empty(n + m, dtype=np.int64), np.empty(n, dtype=np.int64),
    )  # fmt: skip
    best = empty.copy()
    for place in range(len(starts)):
        held[place], price = -np.inf, 1.0
        best[:] = starts[place]
        for again in range(rounds + 1):
            _become(network, paths, best, weight, stage)
            if again > 0:
                thinned = _LEAST_THINNED + (_MOST_THINNED - _LEAST_THINNED) * np.random.random()
                _thin(network, paths, weight, int(most * (1.0 - thinned)), price, stage)
            _grow(network, paths, weight, most, price, spread, stage)
            if stage.sums.sum() > most:
                _thin(network, paths, weight, most, price, stage)
                _grow(network, paths, weight, most, price, spread, stage)
            work, cut = stage.sums
            lacking = max(work + cut - most, least - (work - cut))
            price = min(_HIGHEST, 2.0 * price) if lacking > 0 else max(1.0, 0.7 * price)
            value = stage.total[0] if lacking <= 0 else -float(lacking)
            if value > held[place]:
                held[place] = value
                best[:] = stage.own
        for x in range(n):
            inside[place, x] = _holds(best, x)


@inlined
def _holds(ops: BitArray, x: int) -> bool:
    return bool((ops[x // _WORD] >> np.uint64(x % _WORD)) & _ONE)


@inlined
def _lowest(word: np.uint64) -> int:
    """Return the place of the lowest bit of a word that is not 0."""
    low = word & (~word + _ONE)
    place = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if low >> np.uint64(shift):
            low >>= np.uint64(shift)
            place += shift
    return place


@subroutine
def _become(network: StageNetwork, paths: Paths, ops: BitArray, weight: FloatArray, stage: Growing) -> None:
    """Let a stage be some set of ops."""
    stage.own[:] = 0
    stage.above[:] = 0
    stage.below[:] = 0
    stage.touched[:] = 0
    stage.sums[:] = 0
    stage.total[0] = 0.0
    for x in range(len(network.work)):
        if _holds(ops, x):
            _join(network, paths, weight, x, stage)


@inlined
def _join(network: StageNetwork, paths: Paths, weight: FloatArray, x: int, stage: Growing) -> None:
    """Let an op join."""
    stage.own[x // _WORD] |= _ONE << np.uint64(x % _WORD)
    for i in range(len(stage.own)):
        stage.above[i] |= paths.before[x, i]
        stage.below[i] |= paths.after[x, i]
    stage.sums[0] += network.work[x]
    stage.sums[1] += _count(network, paths, x, 1, stage)
    stage.total[0] += weight[x]


@inlined
def _count(network: StageNetwork, paths: Paths, x: int, by: int, stage: Growing) -> int:
    """Count an op among those of its tensors, or with −1 no more; return by how much what is cut grows."""
    more = np.int64(0)
    for i in range(paths.tensor_offsets[x], paths.tensor_offsets[x + 1]):
        t = paths.tensors[i]
        size = network.pin_offsets[t + 1] - network.pin_offsets[t]
        was_cut = 0 < stage.touched[t] < size
        stage.touched[t] += by
        is_cut = 0 < stage.touched[t] < size
        more += network.transfer[t] * (np.int64(is_cut) - np.int64(was_cut))
    return int(more)


@subroutine
def _thin(
    network: StageNetwork, paths: Paths, weight: FloatArray, most: int, price: float, stage: Growing
) -> None:  # fmt: skip
    """Let ops leave until a stage costs so much at most, the least weight for what that saves first.

    The next one always is an op to which no other of the stage has a path, or that has a path to no other.
    """
    n, words = len(network.work), len(stage.own)
    while stage.sums.sum() > most:
        rate = stage.total[0] / max(1.0, float(stage.sums.sum()))
        leaving, lowest = -1, 0.0
        for x in range(n):
            if not _holds(stage.own, x):
                continue
            first, last = True, True
            for i in range(words):
                first &= (paths.before[x, i] & stage.own[i]) == 0
                last &= (paths.after[x, i] & stage.own[i]) == 0
            if not (first or last):
                continue
            more = _count(network, paths, x, -1, stage)
            _count(network, paths, x, 1, stage)
            saved = rate * (float(network.work[x]) - price * float(more))
            loss = weight[x] - saved + _NOISE * stage.total[0] * np.random.random()
            if leaving < 0 or loss < lowest:
                leaving, lowest = x, loss
        if leaving < 0:
            break
        stage.own[leaving // _WORD] &= ~(_ONE << np.uint64(leaving % _WORD))
        stage.sums[0] -= network.work[leaving]
        stage.sums[1] += _count(network, paths, leaving, -1, stage)
        stage.total[0] -= weight[leaving]
    stage.above[:] = 0
    stage.below[:] = 0
    for x in range(n):
        if _holds(stage.own, x):
            for i in range(words):
                stage.above[i] |= paths.before[x, i]
                stage.below[i] |= paths.after[x, i]


@subroutine
def _grow(
    network: StageNetwork, paths: Paths, weight: FloatArray, most: int, price: float, spread: float, stage: Growing
) -> None:
    """Let a stage grow as long as it stays within the limit, by single ops and by all that touch a tensor it cuts."""
    adding = 0
    while adding >= 0:
        count = _candidates(network, stage)
        room = most - stage.sums.sum()
        if room < 0:  # it is to cost less
            room = np.int64(-1)
        adding, highest = -1, 0.0
        for c in range(count):
            drawn = _draw(network, paths, stage.tried[c], most, stage)
            if drawn < 0:
                continue
            more_work, more_cut, more = np.int64(0), np.int64(0), 0.0
            for i in range(drawn):
                more_work += network.work[stage.drawn[i]]
                more_cut += _count(network, paths, stage.drawn[i], 1, stage)
                more += weight[stage.drawn[i]]
            for i in range(drawn):
                _count(network, paths, stage.drawn[i], -1, stage)
            if more_work + more_cut > room:
                continue
            dear = max(float(more_work) + price * float(more_cut), 0.0) + _AT_LEAST * most
            score = (more + 1e-9) / dear * (1.0 + spread * np.random.random())
            if score > highest:
                highest, adding = score, stage.tried[c]
        if adding >= 0:
            for i in range(_draw(network, paths, adding, most, stage)):
                _join(network, paths, weight, stage.drawn[i], stage)


@inlined
def _candidates(network: StageNetwork, stage: Growing) -> int:
    """Find the ops, at most so many drawn at random, and tensors by which a stage may grow; return how many."""
    n, tried = len(network.work), stage.tried
    count = np.int64(0)
    for x in range(n):
        if not _holds(stage.own, x):
            tried[count] = x
            count += 1
    if count > _TRIED:
        for i in range(_TRIED):
            j = np.random.randint(i, count)
            tried[i], tried[j] = tried[j], tried[i]
        count = np.int64(_TRIED)
    for t in range(len(network.transfer)):
        rest = network.pin_offsets[t + 1] - network.pin_offsets[t] - stage.touched[t]
        if rest > 1 and stage.touched[t] > 0 and np.random.random() < _TENSORS:
            tried[count] = n + t
            count += 1
    return int(count)


@inlined
def _draw(network: StageNetwork, paths: Paths, row: int, most: int, stage: Growing) -> int:
    """Find the ops that a row of paths draws into a stage; return how many, −1 if it has more work then than *most*."""
    count, work = np.int64(0), stage.sums[0]
    for i in range(len(stage.own)):
        some = (stage.above[i] | paths.before[row, i]) & (stage.below[i] | paths.after[row, i])
        some = (some | paths.own[row, i]) & ~stage.own[i]
        while some and work <= most:
            x = i * _WORD + _lowest(some)
            some &= some - _ONE
            stage.drawn[count] = x
            count += 1
            work += network.work[x]
    return int(count) if work <= most else -1
