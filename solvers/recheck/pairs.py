"""Pairs of downsets of a model to be trained, for searches over several levels of devices that are run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int64Array
from mtpp.checker.training.model import TickModel, transfer_ticks

if TYPE_CHECKING:
    from mtpp.solvers.recheck.kernels.levels import Pairs


def all_pairs(masks: Sequence[int], layers: int, alive: Callable[[], None]) -> Pairs:
    """Return all pairs of a downset and a smaller one that it holds. O(downsets² · layers / 64).

    *alive* is called for each downset; it may raise what ends the search.
    """
    from mtpp.solvers.recheck.kernels.levels import Pairs

    count, words = len(masks), -(-layers // 64)
    members = np.array([[mask >> 64 * word & (2**64 - 1) for word in range(words)] for mask in masks], dtype=np.uint64)

    def held_by(o: int) -> NDArray[np.int32]:
        alive()
        return np.flatnonzero(((members[:o] & ~members[o]) == 0).all(axis=1)).astype(np.int32)

    below = [held_by(o) for o in range(count)]
    sizes = np.array([len(one) for one in below])
    inner = np.concatenate(below)
    above_pair = np.argsort(inner, kind="stable").astype(np.int32)
    place = np.empty_like(above_pair)
    place[above_pair] = np.arange(len(inner), dtype=np.int32)
    return Pairs(
        members,
        np.repeat(np.arange(count, dtype=np.int32), sizes),
        inner,
        offsets_of(sizes),
        offsets_of(np.bincount(inner, minlength=count)),
        above_pair,
        place,
    )


def outer_ticks(model: TickModel, pairs: Pairs, bandwidth_bytes_per_s: int) -> tuple[Int64Array, Int64Array]:
    """Return for each pair the ticks of edges that cross it, and of its layers' weights, in an outer network."""
    from mtpp.solvers.recheck.kernels.levels import crossing_ticks

    ends = np.array([(u, v) for u, v, _ in model.edges], dtype=np.int64).reshape(-1, 2)
    edges = np.array([transfer_ticks(2 * size, bandwidth_bytes_per_s) for size in model.edge_bytes], dtype=np.int64)
    by_layer = np.array(
        [transfer_ticks(4 * size, bandwidth_bytes_per_s) for size in model.weight_bytes], dtype=np.int64
    )
    bits = np.unpackbits(pairs.members.view(np.uint8), axis=1, bitorder="little")[:, : len(by_layer)]
    by_downset = bits.astype(np.int64) @ by_layer
    weights = by_downset[pairs.outer] - by_downset[pairs.inner]
    return crossing_ticks(pairs, ends[:, 0].copy(), ends[:, 1].copy(), edges), weights


def ends_of(wanted: NDArray[np.bool_], pairs: Pairs) -> Int64Array:
    """Return where in ``above_pair`` the last *wanted* pair of each smaller downset ends; 0 if there is none."""
    ends = np.zeros(len(pairs.members), dtype=np.int64)
    places = np.flatnonzero(wanted[pairs.above_pair])
    ends[pairs.inner[pairs.above_pair[places]]] = places + 1  # of several, the last one stays
    return ends


def offsets_of(counts: NDArray[Any]) -> Int64Array:
    """Return where rows of so many items each begin, and the end."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
