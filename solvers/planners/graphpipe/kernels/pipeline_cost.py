"""Cost of a pipeline in annealing: about its bound J, with round trips of the micro-batches in flight, and memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtpp.array_types import Float64Array, Int64Array
from mtpp.solvers.jit import inlined

IMPOSSIBLE = 1e300
"""Cost of stages that make a cycle, need more devices than there are, or pass on sizes that do not divide."""

_SPARE = 0.05
"""Weight of the time that devices are busy, beside J: of two pipelines alike, the one with less work is better."""

_OVERFULL, _OVER = 2.0, 10.0
"""Times J that a pipeline costs which does not fit into memory: at least, and more for each device's memory beyond."""


class AnnealedModel(NamedTuple):
    """A model as the kernel takes it, with the sizes and replicas that stages may have; times in ticks, sizes in bytes.

    Attributes
    ----------
    options
        Replicas d, samples b of micro-batches and micro-batches of an iteration, int64, shape (options, 3).
    forward, backward, kept, fixed, parameters
        By option, configuration and layer, int64: of a micro-batch; kept for each in flight; fixed, whatever is.
    choices
        Configurations of each layer, int64.
    edges
        Source and target of each edge, int64, shape (edges, 2).
    moved
        Bytes of a sample over each edge, float64.
    neighbour_start, neighbours
        Layers at the other ends of each layer's edges, CSR, int64.
    limits
        Devices, memory of each, bytes a second, ticks of latency; whether stages form one line, whether as few
        micro-batches as can be are in flight; int64, shape (6,).
    forever
        Ticks and bytes of a layer that an option has no costs of.
    """

    options: Int64Array
    forward: Int64Array
    backward: Int64Array
    kept: Int64Array
    fixed: Int64Array
    parameters: Int64Array
    choices: Int64Array
    edges: Int64Array
    moved: Float64Array
    neighbour_start: Int64Array
    neighbours: Int64Array
    limits: Int64Array
    forever: int


class Workspace(NamedTuple):
    """Arrays that costs are worked out in, for so many stages and edges.

    Attributes
    ----------
    sums
        Of each stage, as in :class:`AnnealedModel`: forward, backward, kept, fixed, parameters, int64,
        shape (stages, 5).
    pair
        Transfer from a stage to another, −1 between calls, int64, shape (stages, stages).
    newest, transfers
        Last transfer out of each stage, −1 for none; source, target and the transfer out of the same source before,
        int64, shapes (stages,) and (transfers, 3).
    moved, rates
        Bytes of a sample of each transfer, and the ticks that they take, float64.
    waiting
        Transfers into each stage from stages that have no place in the order yet, int64.
    order
        Stages in a topological order after a cost was found, int64, shape (stages,).
    times
        Ticks of the longest path into a stage, of both passes and forward, and from its first forward pass until the
        last gradients are back, of all micro-batches and of one, float64, shape (stages, 4).
    samples
        Fewest samples that each stage may have in flight, int64.
    """

    sums: Int64Array
    pair: Int64Array
    newest: Int64Array
    transfers: Int64Array
    moved: Float64Array
    rates: Float64Array
    waiting: Int64Array
    order: Int64Array
    times: Float64Array
    samples: Int64Array


@inlined
def workspace(stages: int, edges: int) -> Workspace:
    """Return arrays for so many stages, in a line or not, and edges of the model."""
    return Workspace(
        np.zeros((stages, 5), dtype=np.int64),
        np.full((stages, stages), -1, dtype=np.int64),
        np.zeros(stages, dtype=np.int64),
        np.zeros((edges + stages, 3), dtype=np.int64),
        np.zeros(edges + stages),
        np.zeros(edges + stages),
        np.zeros(stages, dtype=np.int64),
        np.zeros(stages, dtype=np.int64),
        np.zeros((stages, 4)),
        np.zeros(stages, dtype=np.int64),
    )


@inlined
def _add_transfers(model: AnnealedModel, stage: Int64Array, stages: int, work: Workspace) -> int:
    """Collect the bytes of a sample between stages; return the number of transfers."""
    count = 0
    for s in range(stages):
        work.newest[s] = -1
        work.waiting[s] = 0
    for e in range(len(model.edges)):
        a, b = stage[model.edges[e, 0]], stage[model.edges[e, 1]]
        if a == b:
            continue
        at = work.pair[a, b]
        if at < 0:
            at = count
            work.pair[a, b] = at
            work.transfers[at, 0], work.transfers[at, 1], work.transfers[at, 2] = a, b, work.newest[a]
            work.newest[a] = at
            work.moved[at] = 0.0
            work.waiting[b] += 1
            count += 1
        work.moved[at] += model.moved[e]
    return count


@inlined
def _in_order(stages: int, work: Workspace) -> int:
    """Put the stages into a topological order; return how many have a place in it."""
    ready = 0
    for s in range(stages):
        if work.waiting[s] == 0:
            work.order[ready] = s
            ready += 1
    at = 0
    while at < ready:
        t = work.newest[work.order[at]]
        at += 1
        while t >= 0:
            b = work.transfers[t, 1]
            work.waiting[b] -= 1
            if work.waiting[b] == 0:
                work.order[ready] = b
                ready += 1
            t = work.transfers[t, 2]
    return ready


@inlined
def _add_line(stages: int, count: int, work: Workspace) -> int:
    """Let each stage wait for the one before in the order; return the number of transfers."""
    for i in range(stages - 1):
        a, b = work.order[i], work.order[i + 1]
        if work.pair[a, b] < 0:
            work.pair[a, b] = count
            work.transfers[count, 0], work.transfers[count, 1], work.transfers[count, 2] = a, b, work.newest[a]
            work.newest[a] = count
            work.moved[count] = 0.0
            count += 1
    return count


@inlined
def pipeline_cost(
    model: AnnealedModel,
    stage: Int64Array,
    option: Int64Array,
    choice: Int64Array,
    stages: int,
    work: Workspace,
) -> float:
    """Return what a pipeline costs in ticks, more where it does not fit into memory; see :data:`IMPOSSIBLE`.

    Parameters
    ----------
    stage, option, choice
        Stage of each layer, option of each stage, configuration of each layer, int64.

    Notes
    -----
    With l micro-batches in flight, M of them take at least M / l round trips of one. l is the most that memory holds,
    or the fewest that stages may have (Jeon et al. 2025, Table 2, for 1F1B). O(layers + edges + stages).
    """
    devices, memory = model.limits[0], model.limits[1]
    bandwidth, latency = float(model.limits[2]), float(model.limits[3])
    sequential, fewest_only = model.limits[4], model.limits[5]
    used = 0
    for s in range(stages):
        used += model.options[option[s], 0]
    if used > devices:
        return IMPOSSIBLE
    for s in range(stages):
        for i in range(5):
            work.sums[s, i] = 0
    for v in range(len(stage)):
        s, c = stage[v], choice[v]
        o = option[s]
        work.sums[s, 0] += model.forward[o, c, v]
        work.sums[s, 1] += model.backward[o, c, v]
        work.sums[s, 2] += model.kept[o, c, v]
        work.sums[s, 3] += model.fixed[o, c, v]
        work.sums[s, 4] += model.parameters[o, c, v]
    count = _add_transfers(model, stage, stages, work)
    fine = _in_order(stages, work) == stages
    if fine and sequential:
        count = _add_line(stages, count, work)
    for t in range(count):
        a, b = work.transfers[t, 0], work.transfers[t, 1]
        work.pair[a, b] = -1
        ours, theirs = model.options[option[a], 1], model.options[option[b], 1]
        if ours != theirs:
            fine = fine and max(ours, theirs) % min(ours, theirs) == 0
    if not fine:
        return IMPOSSIBLE
    bound, busy = 0.0, 0.0
    for s in range(stages):
        work.times[s, 0] = work.times[s, 1] = 0.0
    for i in range(stages):
        x = work.order[i]
        d, size, batches = model.options[option[x], 0], model.options[option[x], 1], model.options[option[x], 2]
        forward, backward = work.sums[x, 0], work.sums[x, 1]
        busy += d * float(batches * (forward + backward))
        t = work.newest[x]
        while t >= 0:
            y = work.transfers[t, 1]
            other = option[y]
            rate = 1e12 * work.moved[t] / (bandwidth * min(d, model.options[other, 0]))
            work.rates[t] = rate
            there, back = latency + rate * size, latency + rate * model.options[other, 1]
            bound = max(bound, batches * there, model.options[other, 2] * back)
            work.times[y, 0] = max(work.times[y, 0], work.times[x, 0] + forward + backward + there + back)
            work.times[y, 1] = max(work.times[y, 1], work.times[x, 1] + forward + there)
            t = work.transfers[t, 2]
    over = 0.0
    for i in range(stages - 1, -1, -1):
        x = work.order[i]
        d, size, batches = model.options[option[x], 0], model.options[option[x], 1], model.options[option[x], 2]
        pair = float(work.sums[x, 0] + work.sums[x, 1])
        taken, trip, kept = batches * pair, pair, size
        t = work.newest[x]
        while t >= 0:
            y = work.transfers[t, 1]
            other = option[y]
            theirs = model.options[other, 1]
            moved = 2 * latency + work.rates[t] * (size + theirs)
            taken = max(taken, pair + moved + work.times[y, 2])
            trip = max(trip, pair + moved + work.times[y, 3])
            kept = max(kept, work.samples[y] + max(size, theirs))
            t = work.transfers[t, 2]
        fewest = min(batches, -(-kept // size))
        spare = memory - work.sums[x, 3]
        over += max(0.0, (float(fewest) * work.sums[x, 2] - spare) / memory)
        most = fewest
        if not fewest_only:
            most = batches
            if work.sums[x, 2] > 0:
                most = max(fewest, min(batches, spare // work.sums[x, 2]))
        taken = max(taken, trip * batches / most)
        work.times[x, 2], work.times[x, 3], work.samples[x] = taken, trip, fewest * size
        gradients = 2e12 * (d - 1) * work.sums[x, 4] / (d * bandwidth)
        bound = max(bound, work.times[x, 0] + taken, work.times[x, 1] + taken + gradients)
    if over > 0:
        return float(bound * (_OVERFULL + _OVER * over))
    return float(bound + _SPARE * busy / devices)
