"""Weights from mixtures of labellings, where sweeps stand still: a proximal bundle method by Frank–Wolfe steps.

With λ_j(v) as the worth of *v in the first j stages*, which stage j pays and stage j + 1 gets back, Σ M_j is a convex
function of λ. Near weights λ̄ its least value with |λ − λ̄|² / 2c added is found from the other side: each stage holds a
mixture of labellings, the mixtures of neighbours are to agree on who is in the first j stages, and c times what they
differ by is what λ̄ goes down by. A pass goes through the stages: the best labelling for the weights as they are by now
is mixed in as far as that helps. Labellings that were met are mixed once more between passes, which costs little.
Where the stages are worth less in all, λ̄ moves there.

P. Swoboda and V. Kolmogorov, *MAP inference via block-coordinate Frank–Wolfe algorithm*, CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Float32Array, Float64Array, Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE

_MIXINGS = 20
"""Rounds of mixing what is known for each pass."""

_PASSES = 3
"""Passes between two looks at the weights that they come to."""

_MOST_KEPT = 50
"""Labellings of a stage that are kept at most."""

_MOST_LABELS = 5_000_000
"""Labels of all those at most, of 8 bytes."""

_FIRST_STEP = 30.0
"""Times the step that would close the gap if it led straight down."""

_LONGER, _SHORTER, _MUCH_SHORTER = 1.5, 0.8, 0.4
_MUCH = 1.1
"""Times the slack from which on a step was much too long."""

_AGREED = 1e-6
"""Shares that mixtures differ by, squared and summed, where they agree."""

_LEAST_GAIN, _LEAST_MOVE = 0.3, 0.001
"""Part of the slack that a step is to take, and of the weights that it is to change, at least.

Towards a slack of 0 all weights could shrink for ever.
"""

Price = Callable[[int, Int64Array], tuple[int, Int32Array] | None]
"""Most worth of a stage (from 1 on) by weights a[j, v], int64, shape (k + 1, n), and the label of each op there, int32.

None where there is no time or room.
"""


class Bundled(NamedTuple):
    """Weights a[j, v], int64, shape (k + 1, n), and by how much the stages are worth more than partitions are."""

    weight: Int64Array
    slack: int


class _Side(NamedTuple):
    """Labellings of a stage: ops in the first stages up to it, and in those before it, float32, shape (count, n)."""

    here: Float32Array
    before: Float32Array

    @classmethod
    def of(cls, labels: Int32Array) -> _Side:
        return cls((labels <= INSIDE).astype(np.float32)[None], (labels == BEFORE).astype(np.float32)[None])

    def joined(self, other: _Side, most: int) -> _Side:
        """Return both, each once, the newest ones last, *most* at most."""
        new = ((self.here != other.here) | (self.before != other.before)).any(axis=1)
        return _Side(*(np.concatenate([a[new], b])[-most:] for a, b in zip(self, other, strict=True)))

    def within(self, allowed: Int64Array) -> _Side:
        """Return those that give no op a label which it cannot have, labels as a sum of 1 << label, int64, (n,)."""
        can = [(allowed >> label & 1).astype(np.bool_) for label in (BEFORE, INSIDE, AFTER)]
        before, here = self.before > 0, self.here > 0
        wrong = (before & ~can[BEFORE]) | (here & ~before & ~can[INSIDE]) | (~here & ~can[AFTER])
        good = ~wrong.any(axis=1)
        return _Side(self.here[good], self.before[good])


class Bundle:
    """Mixtures of labellings, by stage, and the labellings that were met.

    Parameters
    ----------
    k
        Number of stages.
    known
        Labellings to begin with.
    """

    def __init__(self, k: int, known: Bundle | None = None) -> None:
        self._k = k
        self._known: list[_Side | None] = [None] * k if known is None else list(known._known)
        self._step: float = 0.0 if known is None else known._step
        self._mixed: list[_Side] = []

    @property
    def shares(self) -> Float64Array | None:
        """Part that has each op in the first j stages, as neighbours have it on average; None before :meth:`improved`.

        float64, shape (k − 1, n), row 0 being j = 1.
        """
        if not self._mixed:
            return None
        return np.array([(one.here[0] + other.before[0]) / 2 for one, other in pairwise(self._mixed)], dtype=np.float64)

    def keep_to(self, allowed: Callable[[int], Int64Array]) -> None:
        """Forget labellings that give an op a label which it cannot have at a stage any more."""
        self._known = [None if side is None else side.within(allowed(j)) for j, side in enumerate(self._known, start=1)]

    def improved(self, weight: Int64Array, price: Price, looks: int, ended: Callable[[], bool]) -> Bundled | None:
        """Return better weights than some, None if there was no time or room for any.

        Parameters
        ----------
        weight
            a[j, v], row 0 being 0, int64, shape (k + 1, n).
        looks
            Weights that are looked at, at most.
        """
        self._price, self._credit = price, int(weight[-1].sum())
        self._weight = weight.astype(np.float64)
        best = self._look(self._weight)
        if best is None:
            return None
        first = best.slack
        known = [side for side in self._known if side is not None]
        self._mixed = [_Side(side.here[-1:].astype(np.float64), side.before[-1:].astype(np.float64)) for side in known]
        self._differ = np.zeros(weight.shape)
        for j in range(1, self._k):
            self._differ[j] = self._mixed[j - 1].here[0] - self._mixed[j].before[0]
        norm = float((self._differ**2).sum())
        if not self._step:
            self._step = _FIRST_STEP * max(1, first) / max(norm, 1.0)
        self._mix_known()
        for _ in range(looks):
            step = self._handy_step(best)
            if best.slack < 0 or step is None:
                break
            self._step = step
            if not self._pass():
                break
            found = self._look(self._weight - self._step * self._differ)
            if found is None or ended():
                break
            expected = self._step * float((self._differ**2).sum())
            if found.slack < best.slack:
                self._step *= _LONGER if best.slack - found.slack > 0.5 * expected else 1.0
                best = found
                self._weight = found.weight.astype(np.float64)
            else:
                self._step *= _SHORTER if found.slack < _MUCH * best.slack else _MUCH_SHORTER
        return best if best.slack < first else None

    def _handy_step(self, best: Bundled) -> float | None:
        """Return a step of a length that is worth taking; None where mixtures agree, and weights say nothing."""
        norm = float((self._differ**2).sum())
        if norm < _AGREED:
            return None
        move = sqrt(float((best.weight[1:].astype(np.float64) ** 2).sum()) / norm)
        return min(max(self._step, _LEAST_GAIN * best.slack / norm, _LEAST_MOVE * move), move)

    def _look(self, weight: Float64Array) -> Bundled | None:
        """Price all stages at some weights, rounded."""
        rounded = np.rint(weight).astype(np.int64)
        total = 0
        for j in range(1, self._k + 1):
            found = self._price(j, rounded)
            if found is None:
                return None
            total += found[0]
            self._learn(j, _Side.of(found[1]))
        return Bundled(rounded, total - self._credit)

    def _learn(self, j: int, side: _Side) -> None:
        known = self._known[j - 1]
        most = max(2, min(_MOST_KEPT, _MOST_LABELS // (self._k * side.here.shape[1])))
        self._known[j - 1] = side if known is None else known.joined(side, most)

    def _pass(self) -> bool:
        """Mix in the best labelling of each stage, some times, and known ones; tell whether there was time and room."""
        for _ in range(_PASSES):
            for j in range(1, self._k + 1):
                found = self._price(j, np.rint(self._weight - self._step * self._differ).astype(np.int64))
                if found is None:
                    return False
                side = _Side.of(found[1])
                self._learn(j, side)
                self._mix(j, side.here[-1], side.before[-1])
            self._mix_known()
        return True

    def _mix_known(self) -> None:
        """Mix what is known, the best labelling of each stage in each round."""
        for _ in range(_MIXINGS):
            for j, known in enumerate(self._known, start=1):
                assert known is not None
                value = np.zeros(len(known.here), dtype=np.float32)
                if j < self._k:
                    value += known.here @ (self._weight[j] - self._step * self._differ[j]).astype(np.float32)
                if j > 1:
                    value -= known.before @ (self._weight[j - 1] - self._step * self._differ[j - 1]).astype(np.float32)
                at = int(np.argmax(value))
                self._mix(j, known.here[at], known.before[at])

    def _mix(self, j: int, here: Float32Array, before: Float32Array) -> None:
        """Move the mixture of a stage towards a labelling, as far as that helps."""
        mixed = self._mixed[j - 1]
        towards, other = here - mixed.here[0], before - mixed.before[0]
        gain = norm = 0.0
        if j < self._k:
            gain += float(towards @ (self._weight[j] - self._step * self._differ[j]))
            norm += float(towards @ towards)
        if j > 1:
            gain -= float(other @ (self._weight[j - 1] - self._step * self._differ[j - 1]))
            norm += float(other @ other)
        if gain <= 0 or norm == 0:
            return
        share = min(1.0, gain / (self._step * norm))
        mixed.here[0] += share * towards
        mixed.before[0] += share * other
        if j < self._k:
            self._differ[j] += share * towards
        if j > 1:
            self._differ[j - 1] -= share * other
