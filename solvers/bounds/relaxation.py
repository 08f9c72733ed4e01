"""Lower bound by leaving ops out: the optimum of a relaxed instance, by exhaustive search."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.convex_weights.search_rule import SearchRules
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.relaxation.loop import DEFAULT_MEMORY_BYTES, MOST_OPS, RelaxationLoop
from mtpp.solvers.threads import Threads

_SCANS = 4
"""Scans for weights of searches have one part in so many of the memory."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Leave out ops that fit anywhere and cost little, solve the rest, and give back those that make the bound loose.

    Tier ``enumerated``: what proves the bound is a downset search on the relaxed instance.

    Notes
    -----
    Exponential in the width of what is left at worst; a set of ops that takes too many steps is given up for another.
    """
    reduced = limits.reduced or ReducedInstance(instance)
    if reduced.original.op_count > MOST_OPS:
        return BoundResult(None, solved=False, left_out=f"for graphs of up to {MOST_OPS} ops")
    memory_bytes = DEFAULT_MEMORY_BYTES if limits.memory_bytes is None else limits.memory_bytes
    of_scans = memory_bytes // _SCANS
    rules, rest = SearchRules(of_scans, limits.seed), replace(limits, memory_bytes=memory_bytes - of_scans)
    with Threads(limits.jobs) as threads:
        loop = RelaxationLoop(reduced, limits.lower, limits.upper, rest, threads, enough=limits.target, rules=rules)
        loop.run()
    return _result(loop, limits)


def _resumed(loop: RelaxationLoop, limits: BoundLimits) -> BoundResult:
    """Go on where a loop gave up, with more steps for each search."""
    with Threads(limits.jobs) as threads:
        loop.renew(limits.lower, limits.upper, limits, threads, enough=limits.target)
        loop.run()
    return _result(loop, limits)


def _result(loop: RelaxationLoop, limits: BoundLimits) -> BoundResult:
    partition = loop.partition
    if partition is not None and limits.reduced is not None:
        partition = limits.reduced.carry(partition)
    solved = loop.finished or loop.lower >= min(loop.upper, limits.upper)
    done = solved or loop.lower >= limits.target
    return BoundResult(loop.bound, solved, partition, resume=None if done else partial(_resumed, loop))
