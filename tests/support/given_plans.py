"""Plans of partitions that tests bring along."""

from __future__ import annotations

from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.inference.system import load_system
from mtpp.solvers.bounds.simple import simple_bound


def given_plan(graph: CostGraph, stages: list[int]) -> Plan:
    """Return the plan with the stage of each op given, on the reference system."""
    instance = Instance.build(graph, load_system(), max(stages) + 1)
    return Plan(
        graph,
        instance,
        Partition.from_stages(instance, stages),
        simple_bound(instance),
        "given",
        "given",
        0,
        1,
        "finished",
    )
