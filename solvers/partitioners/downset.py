"""``downset``, also known as ``piper``: dynamic programming over downsets, for the best partition and its proof."""

from __future__ import annotations

from dataclasses import replace

from mtpp.host.stop_reason import StopReason
from mtpp.inference.instance import Instance
from mtpp.solvers.downsets.prover import Prover
from mtpp.solvers.limits import SearchLimits, SearchResult
from mtpp.solvers.partitioners.auto import search
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.registry import default_sweeps
from mtpp.solvers.unequal.partition import partition_unequal
from mtpp.solvers.unequal.replicated import partition_replicated

_START_SHARE = 0.25
"""Of the evaluations and of the time, for the portfolio at most."""


def partition(instance: Instance, limits: SearchLimits) -> SearchResult:
    """Start from the portfolio's bottleneck, and improve it by exhaustive search until nothing better exists.

    Piper's programme (Tarnawski et al. 2021, section 4) without data and tensor parallelism: the least bottleneck
    over all chains of downsets, turned around to the fewest stages under a limit. Optimal when it ends by itself
    (``stopped == "optimal"``); else the lower bound says how far it came.

    Raises
    ------
    Infeasible
        Proven, if no partition keeps to the stage memory; else because none was found.

    Notes
    -----
    Exponential in the width of the graph at worst. The downsets kept take at most ``limits.memory_bytes``. Without a
    deadline the result depends on the seed and the number of evaluations alone, as long as the memory suffices; an
    evaluation is as many steps as there are ops.
    """
    if instance.replicas:
        return partition_replicated(instance, limits)
    if not instance.equal_devices:
        return partition_unequal(instance, limits)
    reduced = reduce_instance(instance, ended=limits.ended)
    prover = Prover(reduced, limits, strictly=True)
    part = replace(
        limits,
        evaluations=max(1, min(default_sweeps(instance), int(_START_SHARE * limits.evaluations))),
        deadline=limits.deadline.share(_START_SHARE),
    )
    found = search(reduced, part, prover)
    n = prover.inner.op_count
    before = prover.steps
    left = max(0, limits.evaluations - found.evaluations)
    steps = left * n
    upper = found.bottleneck
    limits.observer.phase("downset")
    while not prover.exhausted(upper) and limits.stop is None and prover.steps < before + steps:
        reached = prover.steps
        upper = prover.close(upper, before + steps - prover.steps)
        if prover.steps == reached and prover.lower < upper:  # too few steps are left for anything
            break
    if upper < found.bottleneck:
        assert prover.found is not None
        found = replace(found, partition=reduced.lift(prover.found), bottleneck=upper, found_by="downset")
    stopped = StopReason.OPTIMAL if prover.lower >= upper else limits.stop or StopReason.BUDGET
    spent = min(left, -(-(prover.steps - before) // n))  # the last step may be a long one
    return replace(found, evaluations=found.evaluations + spent, stopped=stopped, lower=prover.bound)
