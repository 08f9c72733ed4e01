"""Some of the downsets of a model that has too many: those that a fast plan can use, and those around a given one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.solvers.planners.layer_options import layer_options, least_by_layer, most_degrees
from mtpp.solvers.planners.limits import PlanLimits
from mtpp.solvers.planners.piper.layer_downsets import Sets, layer_bits
from mtpp.solvers.planners.topological_orders import depth_first
from mtpp.training.problem import PlanningProblem


def useful_downsets(problem: PlanningProblem, time: Fraction, most: int, limits: PlanLimits) -> Sets | None:
    """Return a family with every downset that lies behind a stage of any plan within *time* ticks, if it is small.

    Returns
    -------
    None if more than *most* downsets come up on the way, or if the limits strike.

    Notes
    -----
    Let T be the time, D a downset behind a stage, and let an edge into D be paid for by the stages at both its ends, at
    the least for any configuration. Then K · T ≥ Σ d · t · f ≥ Σ over layers of the least t · p + what all edges into D
    are paid, and min(N, K) · T ≥ Σ over layers of the least p + the same. Each of D and the rest needs whole devices,
    which is asked for at the end. Layers are decided from the sinks on, branch by branch; an edge counts as soon as
    both its ends are decided, one in and one out, so what is left out early cannot come back. O(n · D · n / 64).
    """
    n, ends = len(problem.model.layers), problem.model.ends
    devices, degrees = problem.devices, most_degrees(problem)
    least = np.array(least_by_layer(problem, lambda option: option.compute), dtype=np.int64)
    least_device = np.array(least_by_layer(problem, lambda option: option.device_compute), dtype=np.int64)
    paid_in, paid_out = _least_paid(problem)
    spare: Fraction = min(devices * time - int(least_device.sum()), degrees * time - int(least.sum()))
    if spare < 0:
        return np.stack([layer_bits((), n), layer_bits(range(n), n)])
    room = min(int(spare), 2**62)
    sets = layer_bits((), n)[None, :]
    paid, work, device_work, inward = (np.zeros(1, dtype=np.int64) for _ in range(4))
    for v in reversed(depth_first(problem.model)):
        if limits.stop:
            return None
        bit = layer_bits([v], n)
        successors = [(e, layer_bits([ends[e][1]], n)) for e in problem.edges_out[v]]
        needed = layer_bits((ends[e][1] for e in problem.edges_out[v]), n)
        joins = ((sets & needed) == needed).all(axis=1)
        # Left out, the layer's edges into the downset cross.
        stays_paid, stays_inward = paid.copy(), inward.copy()
        for e, target in successors:
            crossing = (sets & target).any(axis=1)
            stays_paid += crossing * (paid_in[e] + paid_out[e])
            stays_inward += crossing * paid_in[e]
        kept = stays_paid <= room
        sets = np.concatenate([sets[kept], sets[joins] | bit])
        paid = np.concatenate([stays_paid[kept], paid[joins]])
        inward = np.concatenate([stays_inward[kept], inward[joins]])
        work = np.concatenate([work[kept], work[joins] + least[v]])
        device_work = np.concatenate([device_work[kept], device_work[joins] + least_device[v]])
        if len(sets) > most:
            return None
    ticks = max(1, -(-time.numerator // time.denominator))
    enough = np.ones(len(sets), dtype=bool)
    for inside, total, number in (
        (device_work, int(least_device.sum()), devices),
        (work, int(least.sum()), degrees),
    ):
        behind, before = inside + inward, total - inside + (paid - inward)
        enough &= -(-behind // ticks) - (-before // ticks) <= number
    whole = (sets == layer_bits(range(n), n)).all(axis=1) | ~sets.any(axis=1)
    useful: Sets = sets[enough | whole]
    return useful


def neighbours(problem: PlanningProblem, layers: Iterable[int], most: int) -> Sets:
    """Return the up to *most* downsets that fewest layers have to be added to or taken from a given one to reach."""
    n, ends = len(problem.model.layers), problem.model.ends
    after = [sum(1 << ends[e][1] for e in edges) for edges in problem.edges_out]
    before = [sum(1 << ends[e][0] for e in edges) for edges in problem.edges_in]
    start = sum(1 << v for v in layers)
    seen = {start}
    waiting = deque([start])
    while waiting and len(seen) < most:
        here = waiting.popleft()
        for v in range(n):
            inside = here >> v & 1
            if (inside and not before[v] & here) or (not inside and after[v] & ~here == 0):
                other = here ^ 1 << v
                if other not in seen and len(seen) < most:
                    seen.add(other)
                    waiting.append(other)
    words = -(-n // 64)
    mask = 2**64 - 1
    return np.array([[one >> (64 * w) & mask for w in range(words)] for one in sorted(seen)], dtype=np.uint64)


def _least_paid(problem: PlanningProblem) -> tuple[Int64Array, Int64Array]:
    """Return the least that the stages of each edge's target and source pay if they differ, sync included."""
    paid_in = np.array(problem.edge_ticks, dtype=np.int64)
    paid_out = paid_in.copy()
    for paid, edges_at, incoming in ((paid_in, problem.edges_in, True), (paid_out, problem.edges_out, False)):
        for v, edges in enumerate(edges_at):
            choices = [option.choice for option in layer_options(problem, v)]
            for i, e in enumerate(edges):
                paid[e] += min((one.sync_in_ticks if incoming else one.sync_out_ticks)[i] for one in choices)
    return paid_in, paid_out
