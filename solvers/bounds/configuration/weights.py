"""Weights of ops of which no stage can hold more than 1, with the largest sum: the dual of the configuration LP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mtpp.host.deadline import Deadline
from mtpp.inference.graph import Int32Array
from mtpp.solvers.bounds.configuration.families import StageSets
from mtpp.solvers.bounds.configuration.kernels.division import splitting_op
from mtpp.solvers.bounds.configuration.kernels.set_mixtures import FloatArray
from mtpp.solvers.bounds.configuration.kernels.stage_families import Fill, SetCache, fill_families
from mtpp.solvers.bounds.configuration.kernels.stage_network import FREE, IN
from mtpp.solvers.bounds.configuration.known_stages import KnownStages, rows_of
from mtpp.solvers.bounds.configuration.stage_fit import MARGIN, PROGRAMME_S, TINY, fit_stages
from mtpp.solvers.bounds.mip.highs import RowProgram
from mtpp.solvers.threads import Threads

SCALE = 2.0**36
"""Weights are rounded to multiples of 1 / this where families are bounded."""

_TOLERANCE = 2e-4
"""How far a family may seem fuller than it is."""

_FIRST_BOX, _SMALLEST_BOX = 0.5, 0.02
_BOX_FLOOR = 0.1
"""A box reaches at least this share of an average weight beyond its centre, times its size."""

_PLACES = 40
"""Sets of a family that there is room for."""

_MOST_ROWS = 6000
_FEWEST_SPLITS = 4
_SETTLED = 0.01
"""Share of what is left to gain that a round has to gain to be followed by another."""

_LIGHTER = 24
"""Rounds at most in which families come to hold less."""

_PENALTY = 1000.0
"""Families' excess that is as bad as a stage that holds one whole too much."""

_NEAR = 0.05
"""How far what families hold above 1 may be from the least, of itself."""

_LIGHT = 0.95
"""What families hold at least that the linear programme is told of."""

DEEPEST = 300
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

    def with_excess(self, n: int) -> tuple[Int32Array, FloatArray]:
        """Return the row of a programme of the weights of n ops, and of what each family holds above 1."""
        return np.append(self.ops, np.int32(n + self.family)).astype(np.int32), np.append(self.shares, -1.0)


@dataclass(eq=False)
class WeightSearch:
    """Weights, improved by cutting planes in boxes around the best known.

    For fixed weights, the fullest mixture of the sets of each family is found by minimum cuts; a linear programme over
    the mixtures met so far proposes the next weights, within a box that shrinks and grows with its success. It looks
    for the largest sum by which no family holds more than 1 (:meth:`improve`), or, at a sum a little above k, for the
    least that families hold above 1 (:meth:`lighten`), after a programme of stages alone (:meth:`fit_stages`).

    Attributes
    ----------
    sets
        The families.
    threads
        Share the families among them.
    weight
        Best weights known at the present limit, float64, shape (n,).
    known
        Stages that have been met.

    Notes
    -----
    Farley (1990) for the bound of any weights; Marsten, Hogan and Blankenship (1975) for the boxes.
    """

    sets: StageSets
    threads: Threads
    weight: FloatArray
    known: KnownStages
    pool: list[Mixture] = field(default_factory=list)
    _centred: FloatArray = field(default_factory=lambda: np.zeros(0))
    _cache: SetCache | None = None

    @classmethod
    def of(cls, sets: StageSets, threads: Threads) -> WeightSearch:
        """Begin with the cost of each op, and half of the transfers that it may be cut from."""
        instance = sets.instance
        weight = sets.cost.weight.astype(np.float64)
        touched = np.repeat(instance.transfer, np.diff(instance.pin_offsets))
        np.add.at(weight, instance.pins, 0.5 * touched)
        return cls(sets, threads, weight / max(weight.sum(), 1.0) * instance.k, KnownStages(sets, threads))

    def begin(self, limit: int) -> None:
        """Go to another limit, with the weights, multipliers and sets that are known."""
        former = {id(leaf): f for f, leaf in enumerate(self.sets.leaves)}
        cache, self._cache = self._cache, None  # nothing is at hand until all is done
        self.sets.within(limit)
        self.known.keep(self.weight)
        self.pool = []  # what keeps to one limit on average may not keep to another
        self._move(cache, [former.get(id(leaf)) for leaf in self.sets.leaves])

    @property
    def at_hand(self) -> bool:
        """Whether families of the limit are kept with the sets met of each."""
        return self._cache is not None

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
            return max(float(fill.value[which].max(initial=0.0)), float(weight.sum()) / (2 * k), TINY)

        def meet(which: NDArray[np.int32], weight: FloatArray) -> None:
            """Tell the programme of the mixtures that the families were last filled with."""
            full = [f for f in which[fill.value[which] > 0.9].tolist() if float(fill.mixture[f] @ weight) > 0.9]
            new = self._meet(fill, full)
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
        return Weights(total, possible, cut_short)

    def fit_stages(self, deadline: Deadline, ended: Callable[[], bool]) -> float | None:
        """Take the weights of the largest sum by which no stage holds more than 1, as far as is known.

        Returns
        -------
        The sum: if it is at most k, no weights rule the limit out. None if the programme took too long.
        """
        fit = fit_stages(self.known, self.weight, deadline, ended)
        if fit is None:
            return None
        k = self.sets.instance.k
        self.weight, self._centred = (
            one / max(float(one.sum()), TINY) * k * (1 + MARGIN) for one in (fit.weight, fit.centre)
        )
        return fit.total

    def settle(self, enough: float) -> Fill:
        """Take the weights last found or the ones that have proved good on the way, by which families hold less.

        Parameters
        ----------
        enough
            What families hold above 1 need not be less.

        Returns
        -------
        By those.
        """
        fill = self.fill()
        for weight in ((self.weight + self._centred) / 2, self._centred):
            if excess(fill) > enough:
                other = fresh_fill(fill)
                self._fill(np.arange(len(self.sets.leaves), dtype=np.int32), weight, other)
                if excess(other) < excess(fill):
                    fill = other
                    self._keep(weight, fill, 1.0)
        return fill

    def fill(self) -> Fill:
        """Return how much the stages of each family can hold of the weights."""
        fill = self._multipliers()
        self._fill(np.arange(len(self.sets.leaves), dtype=np.int32), self.weight, fill)
        self._keep(self.weight, fill, 1.0)
        return fill

    def lighten(self, fill: Fill, fullest: float, enough: float, deadline: Deadline, ended: Callable[[], bool]) -> Fill:
        """Change weights of a fixed sum so that families hold less above 1, all of them together.

        Parameters
        ----------
        fill
            By the weights as they are.
        fullest
            Known stages are to hold no more than this.
        enough
            What families hold above 1 need not be less.

        Returns
        -------
        By the weights as they are afterwards.
        """
        n, count, k = self.sets.instance.op_count, len(self.sets.leaves), self.sets.instance.k
        programme = RowProgram(np.concatenate([np.zeros(n), -np.ones(count)]))
        everything = np.arange(n, dtype=np.int32)
        programme.add([(everything, -np.ones(n))], -k * (1 + MARGIN))
        best = self.weight
        stages = self.known.within()
        told = stages @ best > _LIGHT * fullest
        programme.add(rows_of(stages[told]), fullest)
        programme.add([one.with_excess(n) for one in self.pool], 1.0)
        above = excess(fill) + self._broken(best, fullest)
        proposed, box = fill, 1.0
        for _ in range(_LIGHTER):
            if above <= enough or ended():
                break
            programme.add(
                [one.with_excess(n) for one in self._meet(proposed, np.flatnonzero(proposed.value > _LIGHT).tolist())],
                1.0,
            )
            reach = box * k / n
            lowest = np.concatenate([np.maximum(0.0, best * (1 - box) - reach), np.zeros(count)])
            highest = np.concatenate([best * (1 + box) + reach, np.full(count, np.inf)])
            found = programme.solve(lowest, highest, min(PROGRAMME_S, deadline.remaining_s()))
            if found is None:
                break
            possible, weight = -found[0], np.maximum(0.0, found[1][:n])
            proposed = fresh_fill(fill)
            self._fill(np.arange(count, dtype=np.int32), weight, proposed, _LIGHT)
            met = self.known.grow(weight, fullest)
            if met:
                programme.add(rows_of(self.known.inside[-met:]), fullest)
            broken = (stages @ weight > fullest) & ~told
            told |= broken
            programme.add(rows_of(stages[broken]), fullest)
            reached = excess(proposed) + self._broken(weight, fullest)
            if reached < above:
                box = min(1.0, 1.5 * box) if above - reached > 0.5 * (above - possible) else box
                gained = above - reached
                best, above, fill = weight, reached, proposed
                if gained < _SETTLED * above:
                    break
            else:
                box *= 0.5
            if above - possible < _NEAR * above:
                break
        self.weight = best
        self._keep(best, fill, 1.0)
        return fill

    def _meet(self, fill: Fill, which: list[int]) -> list[Mixture]:
        """Keep the mixtures that some families were last filled with, and return them."""
        new = []
        for f in which:
            ops = np.flatnonzero(fill.mixture[f] > 0).astype(np.int32)
            new.append(Mixture(f, ops, fill.mixture[f][ops]))
        self.pool = (self.pool + new)[-_MOST_ROWS:]
        return new

    def _broken(self, weight: FloatArray, fullest: float) -> float:
        """Return a penalty for weights by which a known stage holds more than it may."""
        return _PENALTY * max(0.0, self.known.fullest(weight) - fullest - 2 * MARGIN)

    def split(self, fill: Fill, most: int) -> bool:
        """Split families that may hold more than 1, the fullest first, up to so many; tell whether any was split."""
        sets = self.sets
        assert sets.families is not None
        count = len(sets.leaves)
        full = [f for f in np.argsort(-fill.value, kind="stable").tolist() if fill.value[f] > 1.0]
        ops: dict[int, int] = {}
        for f in full:
            if len(ops) >= min(most - count, max(_FEWEST_SPLITS, count // 4)):
                break
            op = -1
            if sets.leaves[f].depth < DEEPEST:
                state = sets.families.state[f]
                op = splitting_op(fill.mixture[f], self.weight, sets.cost.weight, state, float(max(1, sets.most)))
            if op >= 0:
                ops[f] = op
        if ops:
            cache, self._cache = self._cache, None
            moved = sets.refine(ops)
            former: list[int | None] = [None] * len(sets.leaves)
            for old, parts in moved.items():
                for part in parts:
                    if part is not None:
                        former[part] = old
            self.pool = []
            self._move(cache, former)
        return bool(ops)

    def _move(self, old: SetCache | None, former: list[int | None]) -> None:
        """Keep the sets met of families for the families that they have become, where they still belong."""
        sets = self.sets
        assert sets.families is not None
        n, count = sets.instance.op_count, len(sets.leaves)
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
        )

    def _keep(self, weight: FloatArray, fill: Fill, held: float) -> None:
        """Take weights, and the multipliers by which no family holds more than *held* times 1."""
        most = float(max(1, self.sets.most))
        self.weight = weight
        for leaf, budget, rest in zip(self.sets.leaves, fill.budget.tolist(), fill.rest.tolist(), strict=True):
            leaf.budget, leaf.rest = budget / (held * most), rest / (held * most)

    def _fill(self, which: NDArray[np.int32], weight: FloatArray, fill: Fill, light: float = 0.0) -> None:
        sets, families, cache = self.sets, self.sets.families, self._cache
        assert families is not None
        assert cache is not None
        most, least = float(max(1, sets.most)), float(sets.least)

        def fill_some(begin: int) -> None:
            sets.go_on()
            some = which[begin : begin + _AT_A_TIME]
            fill_families(sets.network, families, some, weight, most, least, SCALE, _TOLERANCE, light, cache, fill)

        begins = range(0, len(which), _AT_A_TIME)
        if len(begins) > 1:
            self.threads.map(fill_some, begins)
        elif begins:
            fill_some(0)


def excess(fill: Fill) -> float:
    """Return what families hold above 1, all together."""
    return float(np.maximum(0.0, fill.value - 1.0).sum())


def fresh_fill(fill: Fill) -> Fill:
    """Return a fill with the multipliers of another one, to begin with."""
    return Fill(fill.value.copy(), fill.budget.copy(), fill.rest.copy(), np.zeros_like(fill.mixture))
