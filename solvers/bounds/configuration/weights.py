"""Weights of ops of which no stage can hold more than 1, with the largest sum: the dual of the configuration LP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mtpp.host.deadline import Deadline
from mtpp.inference.graph import Int32Array
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_families import FREE, IN, Fill, SetCache, fill_families
from mtpp.solvers.bounds.mip.highs import RowProgram
from mtpp.solvers.threads import Threads

_SCALE = 2.0**36
_TOLERANCE = 2e-4
"""How far a family may seem fuller than it is."""

_FIRST_BOX, _SMALLEST_BOX = 0.5, 0.02
_BOX_FLOOR = 0.1
"""A box reaches at least this share of an average weight beyond its centre, times its size."""

_PLACES = 40
"""Sets of a family that there is room for."""

_MOST_ROWS = 6000
_SPLIT_SHARE, _FEWEST_SPLITS = 0.15, 4
_TINY = 1e-7
_DEEPEST = 300
"""Splits one below the other: a proof is nested as deep, and readers of JSON have their limits."""

_AT_A_TIME = 32
"""Families between two looks at the clock."""

_TIGHT = 0.85
"""Share of the fullest family's weight from which on a family is looked at for every proposal, not only good ones."""


@dataclass(frozen=True)
class Weights:
    """What a search has come to.

    Attributes
    ----------
    total
        Of the weights, no stage holding more than 1.
    most
        Nor can they sum to more than this near the weights found, as far as the mixtures met tell.
    cut_short
        Whether there was no time to improve them any more.
    """

    total: float
    most: float
    cut_short: bool = False


@dataclass
class Mixture:
    """Shares of the ops in a mixture of sets of one family that keeps to budget and rest on average."""

    family: int
    ops: Int32Array
    shares: FloatArray
    strain: float
    price: float = 0.0


@dataclass(eq=False)
class WeightSearch:
    """Weights, improved by cutting planes in boxes around the best known.

    For fixed weights, the fullest mixture of the sets of each family is found by minimum cuts; a linear programme over
    the mixtures met so far proposes the next weights, within a box that shrinks and grows with its success.

    Attributes
    ----------
    sets
        The families.
    threads
        Share the families among them.
    weight
        Best weights known at the present limit, float64, shape (n,).

    Notes
    -----
    Farley (1990) for the bound of any weights; Marsten, Hogan and Blankenship (1975) for the boxes.
    """

    sets: StageSets
    threads: Threads
    weight: FloatArray
    pool: list[Mixture] = field(default_factory=list)
    _cache: SetCache | None = None

    @classmethod
    def of(cls, sets: StageSets, threads: Threads) -> WeightSearch:
        """Begin with the cost of each op, and half of the transfers that it may be cut from."""
        instance = sets.instance
        weight = sets.cost.weight.astype(np.float64)
        touched = np.repeat(instance.transfer, np.diff(instance.pin_offsets))
        np.add.at(weight, instance.pins, 0.5 * touched)
        return cls(sets, threads, weight / max(weight.sum(), 1.0) * instance.k)

    def begin(self, limit: int) -> None:
        """Go to another limit, with the weights, multipliers and sets that are known."""
        former = {id(leaf): f for f, leaf in enumerate(self.sets.leaves)}
        self.sets.within(limit)
        self.pool = []  # what keeps to one limit on average may not keep to another
        self._move([former.get(id(leaf)) for leaf in self.sets.leaves])

    def put_off(self) -> None:
        """Give the memory of what need not be kept back, until the search goes on."""
        self.pool, self._cache = [], None

    def improve(
        self, enough: float, gap: float, deadline: Deadline, ended: Callable[[], bool], rounds: int = 100
    ) -> Weights:
        """Raise the total until it is above *enough*, within *gap* of what is possible, or the search has to end."""
        sets = self.sets
        k, n, count = sets.instance.k, sets.instance.op_count, len(sets.leaves)
        if count == 0:  # nothing can be a stage at all: any weights will do
            self.weight = np.full(n, 2.0 * k / n)
            return Weights(2.0 * k, 2.0 * k)
        programme = RowProgram(np.ones(n))
        programme.add([(one.ops, one.shares) for one in self.pool], 1.0)
        fill = self._multipliers()
        everything = np.arange(count, dtype=np.int32)

        def capacity(which: NDArray[np.int32], weight: FloatArray) -> float:
            """Return the weight of the fullest stage, never so little that more than 2·k of them would be needed."""
            return max(float(fill.value[which].max(initial=0.0)), float(weight.sum()) / (2 * k), _TINY)

        def meet(which: NDArray[np.int32], weight: FloatArray) -> None:
            """Tell the programme of the mixtures that the families were last filled with."""
            new = []
            for f in which[fill.value[which] > 0.9].tolist():
                shares = fill.mixture[f]
                if float(shares @ weight) > 0.9:
                    ops = np.flatnonzero(shares > 0).astype(np.int32)
                    new.append(Mixture(f, ops, shares[ops], float(fill.strain[f])))
            self.pool += new
            programme.add([(one.ops, one.shares) for one in new], 1.0)

        def fullest(which: NDArray[np.int32], weight: FloatArray) -> float:
            self._fill(which, weight, fill)
            meet(which, weight)
            return capacity(which, weight)

        self._fill(everything, self.weight, fill)
        held = capacity(everything, self.weight)
        best = self.weight / held
        for figures in (fill.value, fill.budget, fill.rest):  # all go with the weights
            figures /= held
        meet(everything, best)
        self._keep(best, fill, 1.0)
        tight = fill.value >= _TIGHT
        total, possible, box = float(best.sum()), np.inf, _FIRST_BOX
        cut_short = False
        for _ in range(rounds):
            cut_short = total <= enough and ended()
            if total > enough or cut_short:
                break
            reach = box * _BOX_FLOOR * k / n
            solved = programme.solve(
                np.maximum(0.0, best * (1 - box) - reach), best * (1 + box) + reach, deadline.remaining_s()
            )
            if solved is None:
                cut_short = True
                break
            possible, proposed = solved
            proposed = np.maximum(0.0, proposed)
            held = fullest(everything[tight], proposed)
            if float(proposed.sum()) / held > total:  # as far as the families go that were tight before
                held = max(held, fullest(everything[~tight], proposed))
                tight |= fill.value >= _TIGHT * held
            reached = float(proposed.sum()) / held
            centre = total
            if reached > total:
                if reached - total > 0.5 * (possible - total):
                    box = min(1.0, 1.5 * box)
                total, best = reached, proposed / held
                self._keep(best, fill, held)
            else:
                box = max(_SMALLEST_BOX, 0.6 * box)
            if possible < centre * (1 + gap):
                break
        if possible < np.inf:
            prices = programme.prices()
            for one, price in zip(self.pool, prices.tolist(), strict=False):
                one.price = price
        if len(self.pool) > _MOST_ROWS:
            self.pool = [one for one in self.pool[: -_MOST_ROWS // 2] if one.price > 0] + self.pool[-_MOST_ROWS // 2 :]
        return Weights(total, possible, cut_short)

    def split(self) -> int:
        """Split the families whose mixtures of sets stay within the limit only on average; return how many."""
        sets = self.sets
        assert sets.families is not None
        n = sets.instance.op_count
        strain: dict[int, float] = {}
        shares: dict[int, FloatArray] = {}
        paid: dict[int, float] = {}
        for one in self.pool:
            if one.price > _TINY:
                f = one.family
                strain[f] = strain.get(f, 0.0) + one.price * one.strain
                paid[f] = paid.get(f, 0.0) + one.price
                shares.setdefault(f, np.zeros(n))[one.ops] += one.price * one.shares
        mixed = sorted((f for f, much in strain.items() if much > 1e-6), key=lambda f: (-strain[f], f))
        ops: dict[int, int] = {}
        mixed = [f for f in mixed if sets.leaves[f].depth < _DEEPEST]
        for f in mixed[: max(_FEWEST_SPLITS, int(_SPLIT_SHARE * len(sets.leaves)))]:
            held = shares[f] / paid[f]
            score = np.minimum(held, 1 - held) * (self.weight + 0.3 * sets.cost.weight / max(1, sets.most) + 1e-9)
            score[sets.families.state[f] != FREE] = 0.0
            op = int(score.argmax())
            if score[op] > _TINY * 1e-6:
                ops[f] = op
        if ops:
            moved = sets.refine(ops)
            former: list[int | None] = [None] * len(sets.leaves)
            number: dict[int, int] = {}
            for old, (inside, outside) in moved.items():
                for part in (inside, outside):
                    if part is not None:
                        former[part] = old
                if old not in ops and inside is not None:
                    number[old] = inside
            self.pool = [one for one in self.pool if one.family in number]
            for one in self.pool:
                one.family = number[one.family]
            self._move(former)
        return len(ops)

    def _move(self, former: list[int | None]) -> None:
        """Carry a parent family's cached sets over to the families it was split into, where they still belong."""
        sets = self.sets
        assert sets.families is not None
        n, count = sets.instance.op_count, len(sets.leaves)
        old = self._cache
        new = SetCache(
            np.zeros((count, _PLACES, n), dtype=np.int8),
            np.zeros((count, _PLACES), dtype=np.int64),
            np.zeros((count, _PLACES), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
        )
        for f, before in enumerate(former):
            if before is None or old is None:
                continue
            inside = old.inside[before, : old.met[before]]
            state = sets.families.state[f]
            own = np.flatnonzero(((state == FREE) | ((state == IN) == (inside == 1))).all(axis=1))
            new.inside[f, : len(own)] = inside[own]
            new.work[f, : len(own)] = old.work[before, own]
            new.cut[f, : len(own)] = old.cut[before, own]
            new.met[f] = len(own)
        self._cache = new

    def _multipliers(self) -> Fill:
        leaves, n = self.sets.leaves, self.sets.instance.op_count
        count, most = len(leaves), float(max(1, self.sets.most))
        return Fill(
            np.zeros(count),
            np.array([leaf.budget * most if leaf.budget > 0 else 1.0 for leaf in leaves]),
            np.array([leaf.rest * most for leaf in leaves]),
            np.zeros((count, n)),
            np.zeros(count),
        )

    def _keep(self, weight: FloatArray, fill: Fill, held: float) -> None:
        """Take weights, and the multipliers by which no family holds more than *held* times 1."""
        most = float(max(1, self.sets.most))
        self.weight = weight
        for leaf, budget, rest in zip(self.sets.leaves, fill.budget.tolist(), fill.rest.tolist(), strict=True):
            leaf.budget, leaf.rest = budget / (held * most), rest / (held * most)

    def _fill(self, which: NDArray[np.int32], weight: FloatArray, fill: Fill) -> None:
        sets, families, cache = self.sets, self.sets.families, self._cache
        assert families is not None
        assert cache is not None
        most, least = float(max(1, sets.most)), float(sets.least)

        def fill_some(begin: int) -> None:
            sets.go_on()
            some = which[begin : begin + _AT_A_TIME]
            fill_families(sets.network, families, some, weight, most, least, _SCALE, _TOLERANCE, cache, fill)

        begins = range(0, len(which), _AT_A_TIME)
        if len(begins) > 1:
            self.threads.map(fill_some, begins)
        elif begins:
            fill_some(0)
