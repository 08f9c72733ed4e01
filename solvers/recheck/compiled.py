"""The search over downsets by its kernel, for graphs that plain Python is too slow for."""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.solvers.flows.kernels.max_flow import FlowArcs, flow_arcs, flow_scratch, max_flow
from mtpp.solvers.recheck.arrays import claim_arrays, ground_arrays, stage_limits, work_around
from mtpp.solvers.recheck.claim import DownsetClaim, Found, SearchTooLarge, digest_of
from mtpp.solvers.recheck.crossings import SINK, SOURCE, MinimumCut, Network, least_crossings
from mtpp.solvers.recheck.kernels.downsets import DONE, FALSE, FULL, search_again
from mtpp.solvers.recheck.kernels.state import NEXT, PAIRS, REACHED
from mtpp.solvers.recheck.kernels.store import fill_table
from mtpp.solvers.recheck.layout import Store, nodes, scratch

_FIRST_CAPACITY = 4096

_STEPS = 2_000_000


def minimum_cut_compiled(network: Network) -> tuple[int, set[int]]:
    """Find a minimum cut.

    Notes
    -----
    No flow is larger than any cut. So if what is left of the capacities lets nothing more from the source to the sink,
    the nodes that it lets the source reach are a cut of the flow's value, and neither a larger flow nor a smaller cut
    exists, whatever the kernel did.
    """
    if not network.arcs:
        return 0, {SOURCE}
    tails, heads, capacity = (np.array(column, dtype=np.int64) for column in zip(*network.arcs, strict=True))
    arcs = flow_arcs(tails, heads, network.nodes)
    residual = np.zeros(len(arcs.heads), dtype=np.int64)
    residual[arcs.forward] = capacity
    inject, absorb = np.zeros(network.nodes, dtype=np.int64), np.zeros(network.nodes, dtype=np.int64)
    inject[SOURCE] = absorb[SINK] = 2**63 - 1
    max_flow(arcs, residual, inject, absorb, flow_scratch(network.nodes), 2**62, whole_phases=True)

    flow = capacity - residual[arcs.forward]
    if np.any(flow < 0) or np.any(flow > capacity) or np.any(flow != residual[arcs.backward]):
        raise RuntimeError("a flow is not within its capacities")
    balance = np.zeros(network.nodes, dtype=np.int64)
    np.add.at(balance, tails, flow)
    np.subtract.at(balance, heads, flow)
    value = int(balance[SOURCE])
    balance[SOURCE], balance[SINK] = 0, balance[SINK] + value
    side = _reached(arcs, residual)
    if np.any(balance) or SINK in side:
        raise RuntimeError("a flow is not balanced, or not a maximum one")
    return value, side


def _reached(arcs: FlowArcs, residual: Int64Array) -> set[int]:
    reached = {SOURCE}
    queue = [SOURCE]
    for node in queue:  # grows on the way
        for arc in range(arcs.offsets[node], arcs.offsets[node + 1]):
            head = int(arcs.heads[arc])
            if residual[arc] > 0 and head not in reached:
                reached.add(head)
                queue.append(head)
    return reached


class Watcher(Protocol):
    """Listens to a search; its methods have to return quickly, and may raise what ends the search."""

    def alive(self) -> None:
        """Take note that the search goes on."""

    def searched(self, downsets: int) -> None:
        """Take note of the number of downsets expanded."""


class Unwatched:
    """The watcher that ignores everything."""

    def alive(self) -> None:
        """Ignore it."""

    def searched(self, downsets: int) -> None:
        """Ignore it."""


def search_compiled(
    claim: DownsetClaim,
    most_downsets: int,
    most_pairs: int,
    watcher: Watcher,
    steps: int = _STEPS,
    memory_bytes: int = 2**62,
) -> Found:
    """Search all chains of downsets for a partition within the claim's limit.

    Parameters
    ----------
    most_downsets, most_pairs
        The search ends early, without a digest, once there are more.
    steps
        Decisions between looks at the clock and at signals, a tenth of a second's worth.
    memory_bytes
        That the downsets reached may take.

    Notes
    -----
    Memory: twice n / 8 + 20 bytes per downset of the store, whose capacity doubles as it grows. The claim's
    sums must fit into 64 bits (:func:`~mtpp.solvers.recheck.arrays.fits_arrays`).
    """
    if claim.allows(claim.everything):
        return Found(1, 0, None, stages=1)
    upto, onward = work_around(claim)
    least: list[int] | None = []
    if claim.crossings:
        least = least_crossings(claim, upto, onward, _watched_cut(watcher))
    if least is None or claim.too_heavy:
        return Found(1, 0, digest_of([(0, 0)], claim.op_count))
    arrays, limits, ground = claim_arrays(claim, onward, least), stage_limits(claim), ground_arrays(claim)
    words = (claim.op_count + 63) // 64
    work = scratch(arrays, ground, words)
    state = work.state
    way = nodes(claim.op_count)
    store = _grown(None, words, 0)
    state[REACHED] = 1  # the empty set
    while True:
        status = search_again(arrays, limits, ground, store, work, way, steps)
        reached, pairs = int(state[REACHED]), int(state[PAIRS])
        watcher.searched(int(state[NEXT]))
        if status == FALSE:
            return Found(reached, pairs, None, stages=int(store.level[reached - 1]) + 1)
        if reached > most_downsets or pairs > most_pairs:
            return Found(reached, pairs, None)
        if status == DONE:
            return Found(reached, pairs, _digest(store, reached, claim.op_count))
        if status == FULL:
            if 2 * _store_bytes(words, 2 * len(store.level)) > memory_bytes:
                raise SearchTooLarge(f"{reached} downsets take all the memory that it may ({memory_bytes >> 20} MiB)")
            store = _grown(store, words, reached)


def _watched_cut(watcher: Watcher) -> MinimumCut:
    def cut(network: Network) -> tuple[int, set[int]]:
        watcher.alive()
        return minimum_cut_compiled(network)

    return cut


def _store_bytes(words: int, capacity: int) -> int:
    return capacity * (8 * words + 4 + 16)


def _grown(store: Store | None, words: int, count: int) -> Store:
    """Return a store of twice the capacity with the same downsets; the first one holds the empty set."""
    capacity = _FIRST_CAPACITY if store is None else 2 * len(store.level)
    larger = Store(
        np.zeros((capacity, words), dtype=np.uint64),
        np.zeros(capacity, dtype=np.int32),
        np.zeros(2 * capacity, dtype=np.int64),
    )
    if store is not None:
        larger.sets[:count] = store.sets[:count]
        larger.level[:count] = store.level[:count]
    fill_table(larger, max(1, count))
    return larger


def _digest(store: Store, count: int, op_count: int) -> str:
    """Return the SHA-256 of the downsets reached; see :func:`mtpp.solvers.recheck.claim.digest_of`."""
    length = (op_count + 7) // 8
    records = np.empty((count, 4 + length), dtype=np.uint8)
    records[:, :4] = store.level[:count, None].astype(">i4").view(np.uint8)
    records[:, 4:] = store.sets[:count].astype("<u8").view(np.uint8)[:, :length]
    rows = records.view(f"S{4 + length}")[:, 0]
    rows.sort()
    return sha256(records.data).hexdigest()  # which rows are a view of
