"""Chains of downsets, searched again: whether stages that could each end in time make up a model.

The stages of any plan, in a topological order, are such a chain, without the layers that are left out: so if there is
none for T ticks, every plan takes T + 1 or more. The same with bytes in place of ticks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic

import numpy as np

from mtpp.checker.facts import counted
from mtpp.checker.report import Outcome
from mtpp.checker.training.graphpipe.bounds import UNITS, GraphClaim
from mtpp.solvers.recheck.graphpipe.kernels.stage_chains import (
    ACTIVE,
    COUNT,
    FOUND,
    FULL,
    NONE,
    STATE,
    STEPS,
    Known,
    Limits,
    Paths,
    Walk,
    fill_table,
    search_chains,
)
from mtpp.solvers.recheck.graphpipe.path_costs import Chained, chain_arrays, layer_paths
from mtpp.solvers.recheck.pipelines import TooLarge, Watcher

MOST_LAYERS = 256
MOST_STEPS = 400_000_000
MOST_COUNTS = 200_000_000
"""Of a model, of a search, and of layers of paths that downsets of a search are kept as."""

_FIRST_ROOM = 1 << 12
_SLICE_S = 0.1


def recheck_chains(claim: GraphClaim, watcher: Watcher) -> Outcome:
    """Tell whether no chain of stages is below a bound.

    Returns
    -------
    Whether there is none, and that in words; None if the search is out of reach.

    Notes
    -----
    Exponential in the paths of the model that lie side by side; at most :data:`MOST_STEPS` steps, each of which looks
    at a part of a path with every (b, d). Without ``per_stage_micro_batch`` each size is searched by itself.
    """
    if claim.value == 0:
        return True, "nothing is below zero"
    setting = claim.setting
    sets = [setting.ways()] if setting.per_stage else [setting.ways(size) for size in setting.sizes]
    unit, below = UNITS[claim.measure], claim.value - 1
    left_out = f", {counted(len(claim.left_out), 'layer')} left out" if claim.left_out else ""
    try:
        searched = _Searched(watcher)
        asked = _asked(claim)
        if any(ways and searched.finds(asked, ways) for ways in sets):
            return False, f"stages of {below} {unit} each make up the model, so nothing shows that plans need more"
    except TooLarge as error:
        return None, f"the search cannot be run again: {error}"
    return (
        True,
        f"no stages of {below} {unit} make up the model: {counted(searched.downsets, 'downset')} looked at{left_out}",
    )


def _asked(claim: GraphClaim) -> Chained:
    layers = layer_paths(claim.model, claim.left_out)
    count = sum(map(len, layers.paths))
    if count > MOST_LAYERS:
        raise TooLarge(f"the model has {count} layers, more than {MOST_LAYERS}")
    if claim.measure == "memory":
        return Chained(claim.model, claim.setting, layers, None, claim.value - 1)
    return Chained(claim.model, claim.setting, layers, claim.value - 1, claim.setting.memory_bytes)


class _Searched:
    """Searches one after the other, with the steps and downsets of all of them."""

    def __init__(self, watcher: Watcher) -> None:
        self.downsets = 0
        self._steps = 0
        self._watcher = watcher

    def finds(self, asked: Chained, ways: Sequence[tuple[int, int]]) -> bool:
        """Tell whether there is a chain of stages with these (b, d)."""
        if not asked.layers.paths:
            return True
        made = chain_arrays(asked, ways)
        if made is None:
            return False
        paths, limits = made
        layers, width = int(paths.length.sum()), len(paths.length)
        known, walk = _room(_FIRST_ROOM, width), _walk(width, len(paths.replicas), layers)
        known.used[0] = known.counts[0] = 0
        fill_table(known, paths.mixer, 1)
        walk.at[COUNT] = 1
        try:
            return self._run(paths, limits, known, walk, layers)
        finally:
            self.downsets += int(walk.at[COUNT])
            self._steps += int(walk.at[STEPS])

    def _run(self, paths: Paths, limits: Limits, known: Known, walk: Walk, layers: int) -> bool:
        larger = np.zeros(len(paths.length), dtype=np.uint16)
        for steps in _slices():
            answer = search_chains(paths, limits, known, walk, larger, layers, steps)
            if answer in (NONE, FOUND):
                return bool(answer == FOUND)
            if answer == FULL:
                known = self._more_room(known, paths)
            done = self._steps + int(walk.at[STEPS])
            if done > MOST_STEPS:
                raise TooLarge(f"more than {MOST_STEPS} steps")
            self._watcher.searched(done, MOST_STEPS)
        raise AssertionError

    @staticmethod
    def _more_room(known: Known, paths: Paths) -> Known:
        count, width = known.counts.shape
        if 2 * count * width > MOST_COUNTS:
            raise TooLarge(f"more than {count} downsets of {width} paths")
        larger = _room(2 * count, width)
        larger.counts[:count] = known.counts
        larger.used[:count] = known.used
        larger.following[:count] = known.following
        fill_table(larger, paths.mixer, count)
        return larger


def _room(count: int, width: int) -> Known:
    return Known(
        np.zeros((count, width), dtype=np.uint16),
        np.zeros(count, dtype=np.int64),
        np.full(count, -1, dtype=np.int32),
        np.full(4 * count, -1, dtype=np.int32),
    )


def _walk(width: int, options: int, layers: int) -> Walk:
    depths = width + 1
    return Walk(
        at=np.zeros(max(STATE, ACTIVE, COUNT, STEPS) + 1, dtype=np.int64),
        newest=np.full(layers + 1, -1, dtype=np.int32),
        active=np.zeros(depths, dtype=np.int64),
        upcoming=np.zeros(depths, dtype=np.int64),
        current=np.zeros(width, dtype=np.uint16),
        rest=np.zeros(depths, dtype=np.int64),
        entry=np.zeros((depths, 3, options), dtype=np.int64),
        live=np.zeros((depths, options), dtype=np.int64),
        live_count=np.zeros(depths, dtype=np.int64),
        load=np.zeros((depths, options), dtype=np.int64),
        kept=np.zeros((depths, options), dtype=np.int64),
        entered=np.zeros((depths, 3, options), dtype=np.int64),
        sums=np.zeros((depths, 4), dtype=np.int64),
    )


def _slices() -> Iterator[int]:
    """Yield steps a tenth of a second's worth at a time, so that the watcher hears of them and work can be ended."""
    size = 1 << 12
    while True:
        begun = monotonic()
        yield size
        took = monotonic() - begun
        size = max(1 << 10, size // 2) if took > _SLICE_S else 2 * size if took < _SLICE_S / 4 else size
