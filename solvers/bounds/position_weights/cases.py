"""Cases of a limit: an op is in one of the first stages, or in one of the others, each case with windows of its own.

The cases of a split lose what the labellings without an op on their side are worth less, at the two stages that look at
that side, so that the split with the most to lose on its better side comes first. Cases are worked at depth first; what
is known of closed ones need not be kept, but for their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.bounds.frontier.kernels.layers import AFTER, BEFORE, INSIDE
from mtpp.solvers.bounds.frontier.kernels.marginals import WHOLE, Swept
from mtpp.solvers.bounds.position_weights.bundle import Bundle
from mtpp.solvers.bounds.position_weights.proof import Case, Split, Step
from mtpp.solvers.bounds.position_weights.sweeps import Sweeps
from mtpp.solvers.bounds.position_weights.windows import Windows

_DEEPEST = 200
"""Splits of a case one below the other at most: JSON readers go down a level for each."""


class _Open(NamedTuple):
    """A case that is not closed, and what it begins with."""

    case: Case
    windows: Windows
    weight: Int64Array
    units: int
    mixtures: Bundle | None
    depth: int


@dataclass(eq=False)
class Cases:
    """Cases of one limit.

    Attributes
    ----------
    root
        The case of all partitions.
    work, checked
        Entries of all sweeps, and of those whose steps are in the proof.
    steps
        Of all cases.
    stuck
        Whether there is no room for a case, or it has been split too often.
    met
        Whether a case has each op in one stage, and is not ruled out: the limit cannot be.
    closed
        Share of the cases that have been ruled out, each split counting half for both sides.
    """

    order: Int32Array
    sweeps_of: Callable[[Windows, Int64Array, int, Bundle | None], Sweeps]
    root: Case = field(default_factory=Case)
    closed: float = 0.0
    stuck: bool = False
    met: bool = False
    work: int = 0
    checked: int = 0
    steps: int = 0
    _open: list[_Open] = field(default_factory=list)
    _now: tuple[_Open, Sweeps] | None = None

    @classmethod
    def of(
        cls, order: Int32Array, sweeps_of: Callable[[Windows, Int64Array, int, Bundle | None], Sweeps], sweeps: Sweeps
    ) -> Cases:
        """Split what sweeps have come to nothing more with."""
        made = cls(order, sweeps_of)
        made._record(made.root, sweeps.done, sweeps.checked)
        made._split(_Open(made.root, sweeps.windows, sweeps.weight[1:], sweeps.units, sweeps.mixtures, 0), sweeps)
        return made

    @property
    def over(self) -> bool:
        """Whether all cases are ruled out."""
        return not self._open and self._now is None and not self.met

    @property
    def sweeps(self) -> Sweeps | None:
        """Sweeps of the case that is worked at."""
        return None if self._now is None else self._now[1]

    def put_off(self) -> None:
        """Give the memory of the scans back."""
        if self._now is not None:
            self._now[1].put_off()

    def advance(self, limit: int, ended: Callable[[], bool]) -> None:
        """Work at the next case: a sweep, and its split or its end where that is due.

        Parameters
        ----------
        limit
            To rule out, in ticks.
        ended
            Tells whether there is no more time.
        """
        if self.met or self.over:
            return
        if self._now is None:
            one = self._open.pop()
            self._now = one, self.sweeps_of(one.windows, one.weight, one.units, one.mixtures)
        one, sweeps = self._now
        found = sweeps.sweep(limit - 1, ended)
        if found is None:
            self.stuck = sweeps.cramped
            return
        self.work += sweeps.entries
        if found.limit >= limit and found.steps is not None:
            self._record(one.case, found.steps, sweeps.checked)
            self.closed += 0.5**one.depth
            self._now = None
        elif sweeps.exhausted:
            self._record(one.case, sweeps.done, sweeps.checked)
            self._now = None
            self._split(one, sweeps)

    def _record(self, case: Case, steps: list[Step], checked: int) -> None:
        case.steps += steps
        self.steps += len(steps)
        self.checked += checked

    def _split(self, one: _Open, sweeps: Sweeps) -> None:
        split = best_split(sweeps.last, sweeps.windows, self.order, int(sweeps.weight[-1].sum()))
        if split is None:
            self.met = True
            return
        if one.depth == _DEEPEST:
            self.stuck = True
            return
        op, stage, early_first = split
        early, late = sweeps.windows.copy(), sweeps.windows.copy()
        early.last[op] = min(early.last[op], stage)
        late.first[op] = max(late.first[op], stage + 1)
        early.close()
        late.close()
        one.case.split = Split(op, stage, Case(), Case())
        weight, units, mixtures, depth = sweeps.weight[1:], sweeps.units, sweeps.mixtures, one.depth + 1
        both = [
            _Open(one.case.split.early, early, weight, units, mixtures, depth),
            _Open(one.case.split.late, late, weight, units, mixtures, depth),
        ]
        self._open += both[::-1] if early_first else both


def best_split(last: list[Swept], windows: Windows, order: Int32Array, credit: int) -> tuple[int, int, bool] | None:
    """Return the op and the stage to split at, and whether *early* is the side that loses less.

    Best are splits of which both sides lose much: worth, as far as the two stages tell that look at the side, and
    stages of windows along paths, which count alone where there is no slack.

    Parameters
    ----------
    last
        Of a pass in which no weights moved, by stage.
    order
        Op at each position, int32, shape (n,).
    credit
        Worth of every partition.

    Returns
    -------
    None where every op is in one stage.
    """
    best: tuple[float, int, int, bool] | None = None
    place = np.argsort(order)
    slack = sum(int(one.worth[-1]) for one in last) - credit
    stages = np.arange(1, len(last), dtype=np.float32)
    fewer_ahead, fewer_behind = windows.precedence.sums_along_paths(
        np.maximum(0, windows.last[:, None] - stages).astype(np.float32),
        np.maximum(0, stages + 1 - windows.first[:, None]).astype(np.float32),
    )
    for j, (here, there) in enumerate(pairwise(last), start=1):
        op = np.flatnonzero((windows.first <= j) & (windows.last > j))
        if len(op) == 0:
            continue
        one, other = [np.maximum(swept.through[place[op]], swept.least - 1) for swept in (here, there)]
        top, next_top = int(here.worth[-1]), int(there.worth[-1])
        early = _loss(top, one[:, [BEFORE, INSIDE]].max(axis=1)) + _loss(next_top, other[:, BEFORE])
        late = _loss(top, one[:, AFTER]) + _loss(next_top, other[:, [INSIDE, AFTER]].max(axis=1))
        score = np.minimum(fewer_ahead[op, j - 1], fewer_behind[op, j - 1]).astype(np.float64) / len(order)
        if slack > 0:
            score += np.minimum(1.0, (np.minimum(early, late) + 0.1 * np.maximum(early, late)) / slack)
        at = int(np.argmax(score))
        if best is None or score[at] > best[0]:
            best = float(score[at]), int(op[at]), j, bool(early[at] <= late[at])
    return None if best is None else best[1:]


def _loss(top: int, worth: Int64Array) -> Int64Array:
    """Return by how much worths are less than the best one; where there is none, much."""
    return np.where(worth < top - WHOLE, WHOLE, top - worth)
