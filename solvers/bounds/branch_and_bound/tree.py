"""Branch and bound: cases of partitions, refuted one after the other by multipliers of linear programmes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.known_prefixes import KnownPrefixes
from mtpp.solvers.bounds.branch_and_bound.multipliers import DIGITS, Found, Multipliers
from mtpp.solvers.bounds.branch_and_bound.program import SCALE, Relaxed, StageProgram
from mtpp.solvers.bounds.branch_and_bound.proof_tree import ProofTree
from mtpp.solvers.bounds.mip.model import FloatArray

_CANDIDATES = 8
"""Pairs of an op and a boundary that are tried before a case is split."""

_FEW = 200
"""Unknown y of cases that are probed before they are split."""

_EARLY_S = 1.0
"""Seconds by which HiGHS may end before its time; earlier it has failed."""

_FRACTIONAL = 1e-6
"""A y that is nearer to 0 or 1 counts as that."""

_NEGLIGIBLE = 1e-6
"""Rise of the objective, in its units, that counts as none."""

_WORTHWHILE = 0.03
"""Part of the unknown y that multipliers have to settle for the programme to be solved again before a split."""

_SMALLER = 0.7
"""Part of the unknown y at which the programme is set up again without those that are known."""


@dataclass(frozen=True, eq=False)
class _Case:
    """An open case.

    Attributes
    ----------
    node
        Its number in the proof.
    known
        Prefixes known in it.
    value, prefixes
        Objective and y of an optimum of its linear programme, or of one with a little less known if *stale*.
    most_refuted, best
        The most that stages may cost for which *best* refutes it.
    depth
        How often a case was split into two open ones on the way to it.
    probed
        Whether it is not to be probed, or not again.
    """

    node: int
    known: KnownPrefixes
    value: float
    prefixes: FloatArray
    stale: bool
    most_refuted: int
    best: Multipliers
    depth: int
    probed: bool = False

    def knows(self, op: int, b: int) -> bool:
        """Tell whether y of an op at a boundary is known."""
        return bool((self.known.inside[b] | self.known.outside[b]) >> op & 1)

    def unknown(self) -> Int64Array:
        """Return the unknown y as flat indices of boundary and op."""
        inside, outside = self.known.arrays(self.prefixes.shape[1])
        return np.flatnonzero(~(inside | outside))

    def fractional(self) -> Int64Array:
        """Return unknown y that are not whole, as flat indices, the least whole ones first."""
        unknown = self.unknown()
        y = self.prefixes.ravel()[unknown]
        distance = np.minimum(y, 1 - y)
        order = np.argsort(-distance, kind="stable")
        fractional: Int64Array = unknown[order[distance[order] > _FRACTIONAL]]
        return fractional


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of a possible split: what is known there, None if nothing is possible, and its linear programme.

    Attributes
    ----------
    refuting
        Multipliers that refute it, None if there are none.
    """

    known: KnownPrefixes | None
    relaxed: Relaxed | None
    refuting: Multipliers | None

    @property
    def shut(self) -> bool:
        """Whether there is no partition on it."""
        return self.known is None or self.refuting is not None

    @property
    def value(self) -> float:
        """Objective of the linear programme."""
        return math.inf if self.relaxed is None else self.relaxed.value


class BranchAndBound:
    """Cases of partitions whose stages cost at most so much, refuted one after the other.

    Parameters
    ----------
    most
        Ticks that stages may cost, with the weights' constant.
    most_bytes
        Of a proof.

    Attributes
    ----------
    most
        As above; it falls when a better partition is found.
    failed
        Whether a linear programme was not solved, though there was time.
    closed_share
        Part of the cases that is refuted, each side of a split counted as half of it.
    """

    def __init__(self, blocks: Blocks, most: int, most_bytes: int) -> None:
        self.most = most
        self.failed = False
        self.closed_share = 0.0
        self._blocks = blocks
        self._proof = ProofTree(blocks, most_bytes)
        self._open: list[tuple[float, int, _Case]] = []
        self._stuck: list[_Case] = []
        self._numbers = count()
        self._first = blocks.known_first(most)
        self._program: StageProgram | None = None
        self._seconds_left: Callable[[], float] = lambda: math.inf

    @property
    def begun(self) -> bool:
        """Whether the first linear programme was solved."""
        return self._first is None or self._program is not None

    @property
    def stuck(self) -> bool:
        """Whether there are cases that cannot be refuted unless *most* falls."""
        return bool(self._stuck)

    @property
    def finished(self) -> bool:
        """Whether more time is of no use."""
        return self._first is None or ((self.begun or self.failed) and not self._open)

    @property
    def nearly_too_long(self) -> bool:
        """Whether the proof is about as long as it may be, or longer."""
        return self._proof.nearly_too_long

    @property
    def most_refuted(self) -> int:
        """The most that stages may cost so that there is no partition, −1 if nothing is known."""
        if self._first is None:
            return self.most
        return self._proof.most_refuted(self.most, {case.node: case.most_refuted for case in self._cases()})

    def document(self, cutoff: int) -> dict[str, Any] | None:
        """Return the proof that there is no partition below a cutoff, one whose stages cost :attr:`most_refuted`.

        None if it is longer than it may be.
        """
        return self._proof.document(cutoff, {case.node: case.best for case in self._cases()})

    def run(
        self, ended: Callable[[], bool], seconds_left: Callable[[], float], found: Callable[[Int32Array], int]
    ) -> None:
        """Refute cases until none is left or the time is up.

        Parameters
        ----------
        ended
            Tells whether to stop now; asked between linear programmes.
        seconds_left
            For a linear programme.
        found
            Is given the block of each op, by number in the blocks, in a partition of the model; returns the most that
            stages may cost from now on.
        """
        self._seconds_left = seconds_left
        if not self.begun and not self.failed:
            self._begin()
        while self._open and not ended():
            _, _, case = heapq.heappop(self._open)
            fractional = case.fractional()
            if case.most_refuted >= self.most:
                self._close(case, case.best)
            elif fractional.size and not case.probed and self._is_small(case):
                self._probe(case, ended)
            elif fractional.size:
                self._split(case, fractional, ended)
            elif case.stale:
                self._solve_again(case)
            else:
                self._take(case, ended, found)

    def _cases(self) -> Iterator[_Case]:
        yield from (case for _, _, case in self._open)
        yield from self._stuck

    def _push(self, case: _Case) -> None:
        heapq.heappush(self._open, (case.value, next(self._numbers), case))

    def _begin(self) -> None:
        """Solve the first linear programme; again without what its multipliers settle where that is much."""
        assert self._first is not None
        known, case = self._first, None
        while True:
            try:
                program = StageProgram(self._blocks, known, self.most)
            except RuntimeError:
                self.failed = True
                break
            relaxed = program.solve(known, self._seconds_left())
            if relaxed is None:
                self.failed |= program.failed or self._seconds_left() > _EARLY_S
                break
            self._program = program
            case = self._tightened(0, known, relaxed, 0)
            if case is None or _unknown(case.known, self._blocks) >= _SMALLER * _unknown(known, self._blocks):
                break
            known = case.known
        if case is not None:
            self._push(case)

    def _solve(self, known: KnownPrefixes) -> Relaxed | None:
        assert self._program is not None
        return self._program.solve(known, self._seconds_left())

    def _put_back(self, case: _Case) -> None:
        """Keep a case for later whose linear programme was not solved; for good if that was not for time."""
        assert self._program is not None
        if self._program.failed or self._seconds_left() > _EARLY_S:
            self.failed = True
            self._stuck.append(case)
        else:
            self._push(case)

    def _solve_again(self, case: _Case) -> None:
        relaxed = self._solve(case.known)
        if relaxed is None:
            self._put_back(case)
            return
        again = self._tightened(case.node, case.known, relaxed, case.depth)
        if again is not None:
            self._push(again)

    def _take(self, case: _Case, ended: Callable[[], bool], found: Callable[[Int32Array], int]) -> None:
        """Take the partition of a case whose y are all whole, and refute or split what may be better."""
        inside = case.prefixes > 0.5
        self.most = min(self.most, found((~inside).sum(axis=0).astype(np.int32)))
        chosen = KnownPrefixes.complete(inside)
        exact = Multipliers.of_stages(self._blocks, chosen)
        if exact.prove(self._blocks, chosen, self.most).refuted < self.most:
            self._stuck.append(case)  # what is left out of the model matters here
            return
        unknown = case.unknown()
        if not unknown.size:
            self._close(case, exact)
            return
        relaxed = self._solve(case.known)
        if relaxed is None:
            self._put_back(case)
            return
        multipliers, proven = self._rounded(case.known, relaxed)
        if proven.refuted >= self.most:
            self._close(case, multipliers)
        else:
            self._split(case, unknown, ended)

    def _is_small(self, case: _Case) -> bool:
        """Tell whether probing a case is worth its time: always for the first one, if there are few y for others."""
        several = len(self._blocks.stages) > 2  # at a single boundary the choice of a split finds as much
        return case.depth == 0 or (several and _unknown(case.known, self._blocks) <= _FEW)

    def _probe(self, case: _Case, ended: Callable[[], bool]) -> None:
        """Settle y that work nearly settles; once more if that helps much.

        On each side of a boundary the ops stand in the order of the work around them. Where an op can be settled is
        found by halving: it takes along all that it leads to, or that leads to it.
        """
        blocks, unknown = self._blocks, _unknown(case.known, self._blocks)
        for b in range(len(case.known.inside)):
            for inside, around in ((True, blocks.before), (False, blocks.after)):
                ops = [op for op in np.argsort(-around, kind="stable").tolist() if not case.knows(op, b)]
                while ops:
                    if ended():
                        self._push(replace(case, probed=True))
                        return
                    half = len(ops) // 2
                    tried = self._side(case, ops[half], b, inside=inside)
                    if tried is None:
                        self._put_back(case)
                        return
                    if not tried.shut:
                        ops = ops[:half]
                        continue
                    left = self._settled(case, ops[half], b, tried, inside=inside)
                    if left is None:
                        return
                    case = left
                    ops = [op for op in ops[half + 1 :] if not case.knows(op, b)]
        helped = _unknown(case.known, blocks) < _SMALLER * unknown
        self._push(replace(case, probed=not helped))

    def _split(self, case: _Case, some: Int64Array, ended: Callable[[], bool]) -> None:
        """Split a case by the y of some that raises both sides most; what refutes a side settles it on the way."""
        n = self._blocks.op_count
        best: tuple[float, int, int, list[_Side]] | None = None
        for flat in self._candidates(some, case):
            b, op = divmod(flat, n)
            if case.knows(op, b):
                continue
            if best is not None and ended():
                break
            sides = self._sides(case, op, b)
            if sides is None:
                self._put_back(case)
                return
            if sides[0].shut or sides[1].shut:
                inside = sides[1].shut
                opened = self._settled(case, op, b, sides[inside], inside=inside)
                if opened is None:
                    return
                case, best = opened, None
                if ended():
                    break
                continue
            rises = [max(side.value - case.value, _NEGLIGIBLE) for side in sides]
            score = rises[0] * rises[1]
            if best is None or score > best[0]:
                best = score, op, b, sides
        if best is None:
            self._push(case)
            return
        _, op, b, sides = best
        cases = []
        for node, side in zip(self._proof.branch(case.node, op, b), sides, strict=True):
            assert side.known is not None
            assert side.relaxed is not None
            cases.append(self._tightened(node, side.known, side.relaxed, case.depth + 1))
        for opened in cases:
            if opened is not None:
                self._push(opened)

    def _candidates(self, some: Int64Array, case: _Case) -> list[int]:
        """Return some y to split by: the first ones, and as many drawn from the others."""
        if len(some) <= _CANDIDATES:
            return list(some.tolist())
        half = _CANDIDATES // 2
        others = np.random.default_rng(case.node).choice(some[half:], _CANDIDATES - half, replace=False)
        return [*some[:half].tolist(), *others.tolist()]

    def _sides(self, case: _Case, op: int, b: int) -> list[_Side] | None:
        """Return both sides of a possible split, None if a linear programme was not solved."""
        sides = []
        for inside in (False, True):
            side = self._side(case, op, b, inside=inside)
            if side is None:
                return None
            sides.append(side)
        return sides

    def _side(self, case: _Case, op: int, b: int, *, inside: bool) -> _Side | None:
        """Return one side of a possible split, None if its linear programme was not solved."""
        known = case.known.with_one(op, b, inside=inside, reach=self._blocks.reach)
        if known is None:
            return _Side(None, None, None)
        relaxed = self._solve(known)
        if relaxed is None:
            return None
        refuting = None
        if relaxed.value > self._scale:
            multipliers, found = self._rounded(known, relaxed)
            refuting = multipliers if found.refuted >= self.most else None
        return _Side(known, relaxed, refuting)

    @property
    def _scale(self) -> float:
        """Objective of a partition whose stages cost the most that they may."""
        assert self._program is not None
        return SCALE * self.most / self._program.most

    def _settled(self, case: _Case, op: int, b: int, shut: _Side, *, inside: bool) -> _Case | None:
        """Settle a y by what refutes one side of it; return what is left of the case, None for nothing."""
        nodes = self._proof.branch(case.node, op, b)
        if shut.refuting is not None:
            self._proof.keep(nodes[inside], shut.refuting)
        self._proof.refute(nodes[inside])
        known = case.known.with_one(op, b, inside=not inside, reach=self._blocks.reach)
        if known is None:
            self._refute(nodes[not inside], case.depth)
            return None
        relaxed = self._solve(known)
        if relaxed is None:
            return replace(case, node=nodes[not inside], known=known, stale=True)
        return self._tightened(nodes[not inside], known, relaxed, case.depth)

    def _tightened(self, node: int, known: KnownPrefixes, relaxed: Relaxed, depth: int) -> _Case | None:
        """Apply multipliers as long as they settle much; return the case that is left, None if it is refuted."""
        while True:
            multipliers, found = self._rounded(known, relaxed)
            more = None
            if found.refuted < self.most:
                if not any(found.inside) and not any(found.outside):
                    return _case(node, known, relaxed, found, multipliers, depth)
                more = known.extended(found.inside, found.outside, self._blocks.reach)
            self._proof.keep(node, multipliers)
            if more is None:
                self._refute(node, depth)
                return None
            settled = _unknown(known, self._blocks) - _unknown(more, self._blocks)
            again = self._solve(more) if settled >= _WORTHWHILE * _unknown(known, self._blocks) else None
            if again is None:
                return replace(_case(node, more, relaxed, found, multipliers, depth), stale=True)
            known, relaxed = more, again

    def _rounded(self, known: KnownPrefixes, relaxed: Relaxed) -> tuple[Multipliers, Found]:
        """Return the multipliers of an optimum with as few digits as refute what it seems to refute."""
        assert self._program is not None
        for digits in DIGITS if relaxed.value > (1 - 1e-9) * self._scale else DIGITS[1:2]:
            multipliers = Multipliers.rounded(self._program, relaxed, digits)
            found = multipliers.prove(self._blocks, known, self.most)
            if found.refuted >= self.most:
                break
        return multipliers, found

    def _close(self, case: _Case, multipliers: Multipliers) -> None:
        self._proof.keep(case.node, multipliers)
        self._refute(case.node, case.depth)

    def _refute(self, node: int, depth: int) -> None:
        self._proof.refute(node)
        self.closed_share += 2.0**-depth


def _case(
    node: int, known: KnownPrefixes, relaxed: Relaxed, found: Found, multipliers: Multipliers, depth: int
) -> _Case:
    """Return an open case whose linear programme is solved; its multipliers are rounded, so they need not be kept."""
    return _Case(node, known, relaxed.value, relaxed.prefixes, False, found.refuted, multipliers, depth)


def _unknown(known: KnownPrefixes, blocks: Blocks) -> int:
    """Return how many y are unknown."""
    return len(known.inside) * blocks.op_count - sum(bits.bit_count() for bits in (*known.inside, *known.outside))
