"""Small problems with a random relaxation of each, as the solvers have it and as the verifier derives it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import oracles
from flow_proofs import claim_of, grouped, random_problem

from mtpp.checker.graph import TickGraph
from mtpp.checker.relaxed import Relaxation as Said
from mtpp.checker.relaxed import relaxed_graph
from mtpp.inference.graph import CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.inference.relaxation import Relaxation, relax
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine


@dataclass(frozen=True)
class RelaxedProblem:
    """A problem, a relaxation of its instance, and the verifier's graph before and after it."""

    graph: CostGraph
    system: Device
    k: int
    groups: list[list[int]]
    relaxation: Relaxation
    said: dict[str, Any]
    whole: TickGraph
    relaxed: TickGraph

    def assignments(self, pick: random.Random, most: int) -> Iterator[list[int]]:
        """Yield up to *most* random assignments of the graph's ops that keep edges and groups."""
        found = [
            list(stages)
            for stages in oracles.monotone_assignments(self.graph, self.k)
            if all(len({stages[v] for v in group}) == 1 for group in self.groups)
        ]
        yield from pick.sample(found, min(most, len(found)))

    def whole_partition(self, stages: list[int]) -> Partition:
        """Return a partition of the instance with all ops, given the stages of the graph's ops."""
        original = self.relaxation.original
        of_op = stages if original.ground is None else [stages[m] for m in original.first_members.tolist()]
        return Partition.from_stages(original, of_op)

    def restricted(self, partition: Partition) -> Partition:
        """Return a partition of all ops without those left out."""
        return Partition.from_stages(self.relaxation.instance, partition.assignment[self.relaxation.kept])


def relaxed_problem(seed: int) -> RelaxedProblem:
    """Draw a problem of up to 6 ops, with memories and groups, and leave some of its ops out."""
    pick = random.Random(seed)
    graph, system, k, together = random_problem(seed, op_count=pick.randint(2, 6))
    k = min(k, 4)
    instance, groups = grouped(graph, system, k, together)
    transfer = Instance.build(graph, Machine.uniform(k, system)).transfer.tolist()
    lowered = {t: pick.randint(0, ticks) for t, ticks in enumerate(transfer) if pick.random() < 0.2}
    left_out = np.array([pick.random() < 0.5 for _ in range(instance.op_count)], dtype=np.bool_)
    left_out[pick.randrange(instance.op_count)] = False
    relaxation = relax(instance, left_out, lowered)
    said = relaxation.record(dict(enumerate(graph.tensor_names)))
    whole = claim_of(graph, system, k, together, 0, {}).graph
    relaxed = relaxed_graph(whole, Said(**said))
    assert isinstance(relaxed, TickGraph), relaxed
    return RelaxedProblem(graph, system, k, groups, relaxation, said, whole, relaxed)
