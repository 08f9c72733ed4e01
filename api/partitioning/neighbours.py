"""Results for one number of stages that hold for the next: partitions for more stages, lower bounds for fewer.

Stages may stay empty, and devices that may be used but are not cost nothing. So a partition into k stages is one into
k + 1, and a bound on all partitions into k + 1 is one on those into k. Both are for the same graph, in the same ticks,
under the same goal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mtpp.inference.certificate import LowerBound
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.names import NODE
from mtpp.solvers.last_look.partition import look_at_partition
from mtpp.solvers.last_look.replicas import look_at_replicas

if TYPE_CHECKING:
    from mtpp.api.partitioning.single import Prepared
    from mtpp.inference.instance import Instance
    from mtpp.inference.plan import Plan

OF_STAGES = "of_stages"
"""Key of a proof: number of stages, more than the plan has, of the partitions that the bound is on."""


def comparable(fewer: Plan, more: Plan) -> bool:
    """Tell whether plans for two numbers of stages are of one graph and goal, so that results of one hold for both."""
    same = fewer.graph is more.graph and fewer.instance.ticks_per_unit == more.instance.ticks_per_unit
    return same and fewer.goal == more.goal and _is_plain(fewer) and _is_plain(more)


def settled(before: Plan, prepared: Prepared) -> bool:
    """Tell whether a plan for fewer stages is known to be optimal for more as well.

    That is so where its bound is the least cost of any stage with some op, however many stages there are.
    """
    same = before.graph is prepared.model.graph and before.instance.ticks_per_unit == prepared.instance.ticks_per_unit
    plain = _is_plain(before) and prepared.instance.uniform and not prepared.instance.replicas
    counted = prepared.asked.counts_latency or prepared.model.machine is not None
    return same and plain and not counted and before.certificate.optimal and before.lower.method == NODE


def carried(fewer: Plan, instance: Instance, more: Plan) -> Plan:
    """Return the plan for fewer stages as one for more.

    Parameters
    ----------
    instance
        For that many stages, as the plan *more* has it.
    more
        The plan for them, whose bound and limits stay.
    """
    partition = fewer.partition
    if fewer.instance.k == instance.k:  # a stage for each device of a machine, some of which are not to be used
        instance = replace(fewer.instance, spare=instance.spare)
    elif isinstance(partition, ReplicatedPartition):
        partition = partition.over(instance, partition.assignment)
    else:
        partition = Partition.from_stages(instance, partition.assignment)
    plan = replace(
        more,
        instance=instance,
        partition=partition,
        devices=fewer.devices,
        found_by=fewer.found_by,
    )
    costs, by, together = plan.costs, plan.found_by, plan.together
    bounds = [(plan.lower.method, plan.lower.value)] if plan.goal.plain else []
    if isinstance(partition, ReplicatedPartition):
        look_at_replicas(instance, partition, costs.bottleneck, by, together=together, bounds=bounds)
    else:
        look_at_partition(instance, partition, costs.bottleneck, by, together=together, bounds=bounds, costs=costs)
    return plan


def with_bound_of_more(fewer: Plan, more: Plan) -> Plan:
    """Return a plan with the bound for more stages where that is above its own, and no weaker in kind."""
    mine, theirs = fewer.lower, more.lower
    stronger = theirs.value > mine.value and (theirs.is_proof or not mine.is_proof)
    if not stronger or not comparable(fewer, more) or fewer.instance.replicas:
        return fewer
    stages = theirs.proof.get(OF_STAGES, more.instance.most_used)
    proof = {OF_STAGES: stages, **{key: value for key, value in theirs.proof.items() if key != OF_STAGES}}
    return replace(fewer, lower=LowerBound(theirs.value, theirs.method, theirs.tier, proof))


def _is_plain(plan: Plan) -> bool:
    return plan.degrees is None and plan.capacity is None and not plan.frontier
