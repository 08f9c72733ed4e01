"""The hypergraph of an instance as a flow network in which the sets that hold one op are cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.flows.kernels.max_flow import FlowArcs

NO_LIMIT = -1
DRAWING = -2

MOST_OPS_IN_BITS = 20_000
"""Ops up to which edges that follow from others are left out, with a bit per pair of ops."""


class AnchoredNetwork(NamedTuple):
    """What cuts are made in. Ops are numbered along a topological order, and nodes begin with them.

    A tensor that two ops touch is an arc each way; one that more touch is two nodes with an arc between them, into the
    first of which all its ops lead, and the second of which leads to them. An edge of the data flow is an arc each way
    without capacity: which of them is without a limit depends on the op that a set has to hold.

    Attributes
    ----------
    arcs
        As :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow` takes them.
    capacity
        Of each arc: ticks, :data:`NO_LIMIT` or :data:`DRAWING`; int64.
    successor_offsets, successors, successor_arcs, predecessor_offsets, predecessors, predecessor_arcs
        The edges of the data flow that do not follow from others, two CSR, with the arcs from the op to its neighbour.
    """

    arcs: FlowArcs
    capacity: Int64Array
    successor_offsets: Int64Array
    successors: Int32Array
    successor_arcs: Int32Array
    predecessor_offsets: Int64Array
    predecessors: Int32Array
    predecessor_arcs: Int32Array


class TensorArcs(NamedTuple):
    """Which arcs carry what each tensor does.

    Attributes
    ----------
    number
        Place of each tensor that the network holds among those that at least two ops touch.
    pin_offsets, pins
        Ops that touch it, CSR; producer first.
    into, out_of
        Arcs from that op into the tensor, and out of the tensor to the op; int32, shape (pins,). Of two ops each is
        the other's tensor.
    """

    number: Int64Array
    pin_offsets: Int64Array
    pins: Int32Array
    into: Int32Array
    out_of: Int32Array


def anchored_network(instance: Instance) -> tuple[AnchoredNetwork, TensorArcs]:
    """Return the network of an instance and the arcs of its tensors; O(pins·log pins) and a bit per pair of ops."""
    n = instance.op_count
    place = np.empty(n, dtype=np.int32)
    place[instance.order] = np.arange(n, dtype=np.int32)
    touching = np.diff(instance.pin_offsets)
    number = np.cumsum(touching > 1) - 1
    kept = (touching > 1) & (instance.transfer > 0)
    pins = place[instance.pins[np.repeat(kept, touching)]]
    counts, transfer = touching[kept], instance.transfer[kept]
    pin_offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=pin_offsets[1:])
    pairs = counts == 2
    sources, targets = _least_edges(instance, place)
    first_pin = pin_offsets[:-1]
    big = np.flatnonzero(~pairs)
    entry = np.full(len(counts), -1, dtype=np.int64)
    entry[big] = n + 2 * np.arange(len(big))
    of_big = np.repeat(~pairs, counts)
    entry_of_pin = np.repeat(entry, counts)[of_big]
    # Arcs in couples: the first of a couple and its reverse.
    tails = [pins[first_pin[pairs]], pins[of_big], entry_of_pin + 1, entry[big], sources]
    heads = [pins[first_pin[pairs] + 1], entry_of_pin, pins[of_big], entry[big] + 1, targets]
    at_pins, inside, drawing = np.full(int(of_big.sum()), NO_LIMIT), transfer[big], np.full(len(sources), DRAWING)
    forward = [transfer[pairs], at_pins, at_pins, inside, drawing]
    backward = [transfer[pairs], np.zeros_like(at_pins), np.zeros_like(at_pins), np.zeros_like(inside), drawing]
    tail, head = np.concatenate(tails), np.concatenate(heads)
    couples = len(tail)
    both_tails, both_heads = np.concatenate([tail, head]), np.concatenate([head, tail])
    order = np.argsort(both_tails, kind="stable")
    position = np.empty(2 * couples, dtype=np.int64)
    position[order] = np.arange(2 * couples)
    reverse = np.concatenate([np.arange(couples, 2 * couples), np.arange(couples)])
    nodes = n + 2 * len(big)
    offsets = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(both_tails, minlength=nodes), out=offsets[1:])
    ends = np.cumsum([len(part) for part in tails])
    into, out_of = np.empty(len(pins), dtype=np.int64), np.empty(len(pins), dtype=np.int64)
    two = np.arange(ends[0])
    into[first_pin[pairs]] = out_of[first_pin[pairs] + 1] = position[two]
    out_of[first_pin[pairs]] = into[first_pin[pairs] + 1] = position[two + couples]
    into[of_big] = position[ends[0] : ends[1]]
    out_of[of_big] = position[ends[1] : ends[2]]
    edge = np.arange(ends[3], ends[4])
    network = AnchoredNetwork(
        FlowArcs(
            offsets,
            *(column.astype(np.int32) for column in (both_heads[order], position[reverse[order]])),
            *position.astype(np.int32).reshape(2, couples),
        ),
        np.concatenate([*forward, *backward])[order].astype(np.int64),
        *_grouped(sources, targets, position[edge], n),
        *_grouped(targets, sources, position[edge + couples], n),
    )
    tensors = TensorArcs(number[kept], pin_offsets, pins, into.astype(np.int32), out_of.astype(np.int32))
    return network, tensors


def _least_edges(instance: Instance, place: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Return the ends of the edges, without those that follow from others where the graph is not too large for that."""
    n = instance.op_count
    sources, targets = instance.edges
    keys = np.unique(place[sources].astype(np.int64) * n + place[targets])
    tails, heads = keys // n, keys % n
    if n > MOST_OPS_IN_BITS:
        return tails, heads
    kept = np.zeros(len(keys), dtype=bool)
    after = [0] * n
    ends = np.searchsorted(tails, np.arange(n + 1)).tolist()
    reads = heads.tolist()
    for u in range(n - 1, -1, -1):
        covered = 0
        for e in range(ends[u], ends[u + 1]):  # ascending: what comes between comes first
            if not covered >> reads[e] & 1:
                kept[e] = True
                covered |= after[reads[e]] | 1 << reads[e]
        after[u] = covered
    return tails[kept], heads[kept]


def _grouped(
    keys: Int64Array, values: Int64Array, arcs: Int64Array, count: int
) -> tuple[Int64Array, Int32Array, Int32Array]:
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=offsets[1:])
    order = np.argsort(keys, kind="stable")
    return offsets, values[order].astype(np.int32), arcs[order].astype(np.int32)
