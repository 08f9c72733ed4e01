"""Memory of ranges of consecutive ops, against the stages of partitions."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.states import State
from mtpp.inference.weights import Weight
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.serving.memory_needs import memory_needs


def random_chain(random: Random) -> CostGraph:
    """Return a chain of ops with tensors that skip some, weights of several, states, inputs and results."""
    n = random.randint(1, 8)
    names = [f"op{i}" for i in range(n)]

    def some(first: int = 0) -> list[str]:
        return sorted(random.sample(names[first:], random.randint(1, n - first)))

    tensors = [Tensor(f"t{i}", names[i], (names[i + 1],), random.randint(0, 50)) for i in range(n - 1)]
    for number in range(random.randint(0, 4)):
        maker = random.randrange(n)
        readers = tuple(some(maker + 1)) if maker < n - 1 and random.random() < 0.8 else ()
        tensors.append(Tensor(f"far{number}", names[maker], readers, random.randint(0, 50)))
    return CostGraph.build(
        name="chain",
        time_unit="ps",
        ops=[Op(name, 1, param_bytes=random.randint(0, 50)) for name in names],
        tensors=tensors,
        weights=[Weight(f"w{i}", random.randint(0, 50), some()) for i in range(random.randint(0, 3))],
        inputs=[Weight(f"in{i}", random.randint(0, 50), some()) for i in range(random.randint(0, 3))],
        states=[State(f"s{i}", f"s{i}", f"s{i}", random.randint(0, 50), some()) for i in range(random.randint(0, 3))],
        results=random.sample([t.name for t in tensors], random.randint(0, len(tensors))),
    )


@pytest.mark.parametrize("peak", ["order", "reserve"])
def test_a_range_needs_the_memory_of_its_stage(peak: str) -> None:
    """Everything counted once, and the most that is live while its ops run."""
    random = Random(1)
    for _ in range(60):
        graph = random_chain(random)
        device = Device("d", None, None, Link(10), None, 5, peak, sequences=random.randint(1, 3))
        instance = Instance.build(graph, Machine.uniform(3, device))
        needs, n = memory_needs(graph, device), instance.op_count
        for start in range(n):
            for stop in range(start + 1, n + 1):
                stages = np.array([0 if v < start else 1 if v < stop else 2 for v in range(n)], dtype=np.int32)
                costs = stage_costs(instance, Partition.from_stages(instance, stages))
                # without a limit states do not join the other bytes
                held = sum(
                    size * device.sequences
                    for size, readers in zip(
                        graph.states.held.bytes.tolist(), graph.states.held.reader_lists(), strict=True
                    )
                    if any(start <= v < stop for v in readers)
                )
                due = costs.param_bytes[1] + costs.peak_bytes[1] + (costs.state_bytes[1] or held)
                assert needs[start, stop] == due, (start, stop)


def test_a_range_needs_no_less_than_those_inside_it() -> None:
    """So the furthest stop that fits says all."""
    random = Random(2)
    for _ in range(60):
        graph = random_chain(random)
        needs = memory_needs(graph, Device("d", None, None, Link(10), peak="order"))
        n = len(needs)
        for start in range(n):
            assert (np.diff(needs[start, start + 1 :]) >= 0).all()
            assert (needs[start, start + 2 :] >= needs[start + 1, start + 2 :]).all() if start + 1 < n else True
