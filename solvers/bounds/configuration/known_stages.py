"""Stages within a limit that have been met: what weights must at least keep to, whatever the families."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.full_stages import grow_stages
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_network import Int8Array

_SPREADS = (0.0, 0.3, 0.8, 0.8)
"""How much chance weighs in, one growth of stages after the other."""

_STEPS = 4e9
"""Elementary steps that a growth may take, about."""

_MOST_KEPT, _MOST_PLACES = 12_000, 8_000_000
"""Stages, and ops of them all; beyond, the emptier half goes."""


@dataclass(eq=False)
class KnownStages:
    """Stages of an instance that have been met, each once.

    Attributes
    ----------
    sets
        Whose they are; its limit is theirs.
    inside
        1 for the ops of each stage, int8, shape (stages, n).
    cost, rest
        Of each: work and what it cuts, and work less what it cuts; int64.
    """

    sets: StageSets
    inside: Int8Array = field(init=False)
    cost: Int64Array = field(init=False)
    rest: Int64Array = field(init=False)
    _met: set[bytes] = field(default_factory=set)
    _growths: int = 0

    def __post_init__(self) -> None:
        """Know none yet, and find the tensors that touch each op."""
        instance = self.sets.instance
        n = instance.op_count
        self.inside = np.empty((0, n), dtype=np.int8)
        self.cost = self.rest = np.empty(0, dtype=np.int64)
        touching = np.repeat(np.arange(instance.tensor_count), np.diff(instance.pin_offsets))
        order = np.argsort(instance.pins, kind="stable")
        self._tensors = touching[order].astype(np.int64)
        self._offsets = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(instance.pins, minlength=n), out=self._offsets[1:])

    def within(self) -> Int8Array:
        """Return the stages within the limit of the sets."""
        return self.inside[(self.cost <= self.sets.most) & (self.rest >= self.sets.least)]

    def fullest(self, weight: FloatArray) -> float:
        """Return what the fullest stage within the limit holds of some weights."""
        return float((self.within() @ weight).max(initial=0.0))

    def grow(self, weight: FloatArray, above: float) -> int:
        """Meet stages that hold more than *above* of some weights; return how many of them are new."""
        n, k = self.sets.instance.op_count, self.sets.instance.k
        pins = len(self.sets.instance.pins)
        a_root = (n / k + 1) * min(n, 256) * (2.0 * n + 4.0 * pins / n * n / k)
        count = int(min(n, max(4.0, _STEPS / a_root)))
        random = np.random.default_rng(self._growths)
        roots = random.permutation(n)
        if count < n:  # ops of no known stage first
            held = self.within().sum(axis=0) > 0
            roots = roots[np.argsort(held[roots], kind="stable")][:count]
        inside, held = np.empty((count, n), dtype=np.int8), np.empty(count)
        grow_stages(
            self.sets.network, self._offsets, self._tensors, roots.astype(np.int32), weight, self.sets.most,
            self.sets.least, _SPREADS[self._growths % len(_SPREADS)], self._growths, inside, held,
        )  # fmt: skip
        self._growths += 1
        return self.add(inside[held > above])

    def add(self, stages: Int8Array) -> int:
        """Take stages within the limit; return how many of them are new."""
        new = []
        for row in stages:
            key = np.packbits(row).tobytes()
            if key not in self._met:
                self._met.add(key)
                new.append(row)
        if not new:
            return 0
        inside = np.array(new, dtype=np.int8)
        network = self.sets.network
        work = inside.astype(np.int64) @ network.work
        offsets = network.pin_offsets
        cut = np.zeros(len(new), dtype=np.int64)
        for t in np.flatnonzero(np.diff(offsets) > 1).tolist():
            own = inside[:, network.pins[offsets[t] : offsets[t + 1]]]
            cut += network.transfer[t] * (own.any(axis=1) & ~own.all(axis=1))
        self.inside = np.concatenate([self.inside, inside])
        self.cost = np.concatenate([self.cost, work + cut])
        self.rest = np.concatenate([self.rest, work - cut])
        return len(new)

    def keep(self, weight: FloatArray) -> None:
        """Forget the stages that hold least of some weights, if they are too many."""
        most = min(_MOST_KEPT, _MOST_PLACES // max(1, len(weight)))
        if len(self.cost) > most:
            fullest = np.argsort(-(self.inside @ weight), kind="stable")[: most // 2]
            self.inside, self.cost, self.rest = self.inside[fullest], self.cost[fullest], self.rest[fullest]
            self._met = {np.packbits(row).tobytes() for row in self.inside}


def rows_of(stages: Int8Array) -> list[tuple[Int32Array, FloatArray]]:
    """Return the ops of each stage with a coefficient of 1, as linear programmes take them."""
    found = []
    for row in stages:
        ops = np.flatnonzero(row).astype(np.int32)
        found.append((ops, np.ones(len(ops))))
    return found
