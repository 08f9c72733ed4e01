"""Working memory of stages that run their ops in the graph's own order."""

from __future__ import annotations

import numpy as np

from mtpp.inference.graph import Int32Array, Int64Array
from mtpp.inference.instance import Instance
from mtpp.inference.live_tensors import NO_PRODUCER


def peaks_in_order(instance: Instance, stage: Int32Array, k: int) -> Int64Array:
    """Return peak(S) of each stage: the most bytes live at once while it runs its ops in the graph's order.

    A tensor from outside, or an input of the graph, lives from its first use in the stage to its last; one made inside
    from its production to its last use, or to the end of the stage if another stage needs it or it is a result of the
    graph. Merged ops stand for all that they hold.

    Parameters
    ----------
    stage
        Of each op, int32, shape (n,), values below *k*.

    Returns
    -------
    Bytes, int64, shape (k,); 0 for an empty stage.

    Notes
    -----
    O(pins·log pins + k) time.
    """
    return _peaks(instance, stage, k, to_the_end=True)


def least_peaks(instance: Instance) -> Int64Array:
    """Return for each op the least peak of any stage that holds it, int64, shape (n,).

    Notes
    -----
    In mode ``"reserve"`` every stage has the same peak. In order: let G be the ops of the graph that an op stands for
    (itself, where nothing was merged), and S ⊇ G a stage. Say a tensor spans a step x of G if an op of G touches it
    at x or before, and one at x or after. Then it is live in S at x: if it comes from outside S, its first use in S is
    not after the first of those ops and its last use not before the last; if it is made in S, its production is not
    after the first of them (a producer precedes its consumers) and it is kept at least to its last use in S. So
    peak(S) is at least the sum of the bytes that span x, for every x in G: for a single op, the bytes of all tensors
    that it reads or makes. That much is also enough for S = {op} alone.
    """
    n = instance.op_count
    if instance.device.peak == "reserve":
        return np.full(n, instance.device.activation_reserve_bytes, dtype=np.int64)
    return _peaks(instance, np.arange(n, dtype=np.int32), n, to_the_end=False)


def _peaks(instance: Instance, stage: Int32Array, k: int, *, to_the_end: bool) -> Int64Array:
    """Return the peaks; tensors needed outside are kept to the end of the stage that makes them, or not."""
    ground = instance.ground
    if ground is not None:
        instance, stage = ground.instance, stage[ground.op_of]
    in_order = instance.order[np.argsort(stage[instance.order], kind="stable")]
    stage_length = np.bincount(stage, minlength=k).astype(np.int64)
    base = np.concatenate(([0], np.cumsum(stage_length + 1)))  # one slot more per stage: the end of its last step
    step = np.empty(instance.op_count, dtype=np.int64)  # position of each op within its stage
    step[in_order] = np.arange(instance.op_count) - (base[:-1] - np.arange(k))[stage[in_order]]

    live = instance.live
    pin_stage = stage[live.pins].astype(np.int64)
    pairs, where = np.unique(live.tensor_of_pin.astype(np.int64) * k + pin_stage, return_inverse=True)
    tensor, holder = pairs // k, pairs % k
    first = np.full(len(pairs), np.iinfo(np.int64).max)
    last = np.full(len(pairs), -1, dtype=np.int64)
    np.minimum.at(first, where, step[live.pins])
    np.maximum.at(last, where, step[live.pins])
    if to_the_end:
        home = np.where(live.producer == NO_PRODUCER, -1, stage[live.producer])
        needed = np.bincount(tensor, minlength=len(live.sizes)) > 1
        needed[live.results] = True
        leaves = (holder == home[tensor]) & needed[tensor]
        last = np.where(leaves, stage_length[holder] - 1, last)

    change = np.zeros(int(base[-1]), dtype=np.int64)
    size = live.sizes[tensor]
    np.add.at(change, base[holder] + first, size)
    np.add.at(change, base[holder] + last + 1, -size)
    return np.maximum.reduceat(np.cumsum(change), base[:-1])
