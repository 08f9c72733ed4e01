"""The bound of an exhaustive search over downsets: what ``auto`` proves on its way, here by itself."""

from __future__ import annotations

from dataclasses import replace

from mtpp.inference.instance import Instance
from mtpp.solvers.aim import Aim
from mtpp.solvers.bounds.limits import BoundLimits, BoundResult
from mtpp.solvers.bounds.simple import simple_bound
from mtpp.solvers.downsets.enumeration import downset_problem
from mtpp.solvers.downsets.prover import Problem, Prover
from mtpp.solvers.limits import UNLIMITED, SearchLimits
from mtpp.solvers.reduction.reduced_instance import ReducedInstance
from mtpp.solvers.reduction.reduction import reduce_instance
from mtpp.solvers.unequal.chains.goals import ChainGoalSearch
from mtpp.solvers.unequal.chains.partition import ChainSearch
from mtpp.solvers.unequal.latency import latency_problem
from mtpp.solvers.unequal.neighbours import exhaustive_problem
from mtpp.solvers.unequal.replica_enumeration import replica_problem

_FIRST_STEPS = 1 << 22
"""Of the first turn; in each, part of the steps is for limits closer to the bound. The next has twice as many."""


def bound(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Search below the bottleneck known, and raise the bound where the search finds nothing, until the two meet.

    Devices may differ: the search is on them, not on their envelope. Stages may have replicas, or the latency count. Of
    equal devices, ``limits.shares`` are a rule of the search.

    Returns
    -------
    A bound of tier ``enumerated``, solved if bound and bottleneck met; None if no search came to its end in the time
    and the memory. Nothing that *limits* knows is proven again: the bound is above ``limits.lower`` and the simple one.

    Notes
    -----
    See :class:`~mtpp.solvers.downsets.prover.Prover`. Exponential in the width of the graph at worst; the downsets kept
    take at most ``limits.memory_bytes``.
    """
    if instance.cost.counts_ops:
        return _of_chain(instance, limits)
    aim = Aim(instance, limits.goal)
    plain = instance.equal_devices and aim.plain
    known = max(limits.lower, simple_bound(instance.envelope).value if aim.plain else aim.first_bound().value)
    search = SearchLimits(
        UNLIMITED,
        deadline=limits.deadline,
        lower_bound=known,
        memory_bytes=limits.memory_bytes,
        observer=limits.observer,
        interrupted=limits.interrupted,
    )
    reduced = ReducedInstance(instance) if plain else reduce_instance(instance, ended=limits.ended)
    if plain:
        problem: Problem = replace(downset_problem(reduced.instance), shares=limits.shares)
    else:
        problem = _problem(Aim(reduced.instance, limits.goal))
    prover = Prover(reduced, search, problem)
    upper, steps = limits.upper, _FIRST_STEPS
    while prover.lower < min(upper, limits.target) and not prover.exhausted(upper) and not limits.ended():
        upper = prover.close(upper, steps)
        steps *= 2
    found = prover.found if upper < limits.upper else None
    lower = prover.bound
    if not plain:
        return BoundResult(lower, solved=prover.lower >= upper)
    if lower is not None:  # the merges are those of the caller that reduced the instance
        lower = replace(lower, proof={key: value for key, value in lower.proof.items() if key != "merges"})
    return BoundResult(lower, solved=prover.lower >= upper, partition=found)


def _problem(aim: Aim) -> Problem:
    """Return what is searched: plans with replicas, those for a goal, or on devices that differ."""
    if aim.instance.replicas:
        return replica_problem(aim.instance)
    return exhaustive_problem(aim.instance) if aim.goal.plain else latency_problem(aim.instance, aim.goal)


def _of_chain(instance: Instance, limits: BoundLimits) -> BoundResult:
    """Return the bound of a chain on devices with times of stages."""
    inside = SearchLimits(
        UNLIMITED,
        deadline=limits.deadline,
        memory_bytes=limits.memory_bytes,
        observer=limits.observer,
        interrupted=limits.interrupted,
    )
    plain = limits.goal.plain
    search = ChainSearch(instance, inside) if plain else ChainGoalSearch(instance, limits.goal, inside)
    search.run()
    return BoundResult(search.bound, solved=search.closed)
