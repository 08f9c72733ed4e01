"""Network of the cuts that bound families of stages, and sums over the ops that touch its tensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.array_types import Int32Array, Int64Array
from mtpp.solvers.flows.kernels.max_flow import FlowArcs
from mtpp.solvers.jit import kernel

Int8Array = NDArray[np.int8]

FREE, IN, OUT = 0, 1, 2
"""What is known of an op: nothing, that every set of the family holds it, or that none does."""

CUT, PIN, UP, DOWN = 0, 1, 2, 3
"""What an arc of the network stands for: a tensor that is cut, one of its pins, an op that draws another in as it is on
the way to (or from) an op of the set."""


class StageNetwork(NamedTuple):
    """The network of the cuts, one node per op and two per tensor of more than two; one per instance.

    Attributes
    ----------
    arcs
        As :func:`~mtpp.solvers.flows.kernels.max_flow.max_flow` takes them.
    kind, item
        What each arc is that is no reverse, and the tensor or edge whose it is, int32.
    tail, head
        The two ops of each edge, int32.
    work
        Ticks of each op, int64, shape (n,).
    transfer
        Ticks of each tensor, int64, shape (m,).
    pin_offsets, pins
        Ops that touch each tensor, CSR, int64 and int32.
    node
        First of the two nodes of each tensor of more than two ops, −1 for others, int32, shape (m,).
    reaches, reached
        Paths between ops, :func:`~mtpp.solvers.bounds.configuration.families.reachability` and its transpose.
    """

    arcs: FlowArcs
    kind: Int32Array
    item: Int32Array
    tail: Int32Array
    head: Int32Array
    work: Int64Array
    transfer: Int64Array
    pin_offsets: Int64Array
    pins: Int32Array
    node: Int32Array
    reaches: Int8Array
    reached: Int8Array


@kernel
def known_pins(network: StageNetwork, t: int, state: Int8Array) -> tuple[int, int]:
    """Return how many of the ops that touch a tensor are IN, and how many are FREE."""
    inside, free = 0, 0
    for i in range(network.pin_offsets[t], network.pin_offsets[t + 1]):
        inside += state[network.pins[i]] == IN
        free += state[network.pins[i]] == FREE
    return inside, free


@kernel
def work_and_cut(network: StageNetwork, inside: Int8Array, apart: Int8Array) -> tuple[int, int]:
    """Return the work of a set of ops, and the transfers of the tensors that it cuts or, if they are apart, touches.

    Parameters
    ----------
    inside
        1 for the ops of the set, int8, shape (n,).
    apart
        1 where no set of its family holds all ops that touch a tensor, int8, shape (m,).
    """
    work, cut = np.int64(0), np.int64(0)
    for u in range(len(inside)):
        work += network.work[u] * inside[u]
    for t in range(len(network.transfer)):
        touched = np.int64(0)
        first, last = network.pin_offsets[t], network.pin_offsets[t + 1]
        for i in range(first, last):
            touched += inside[network.pins[i]]
        if touched > 0 and (apart[t] == 1 or touched < last - first):
            cut += network.transfer[t]
    return int(work), int(cut)
