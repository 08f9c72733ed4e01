"""Memory of ranges of consecutive layers, against the stages of partitions."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from layer_memories import graph_of, random_memory
from refusals import refusal

from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_memory import LayerMemory
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine
from mtpp.solvers.serving.memory_needs import RangeMemory


@pytest.mark.parametrize("whole_prompts", [False, True])
def test_a_range_needs_the_memory_of_its_stage(whole_prompts: bool) -> None:
    """Everything counted once, and the most that is live while its layers run, at each of several loads."""
    random = Random(1)
    for _ in range(40):
        memory = random_memory(random, whole_prompts=whole_prompts)
        ranges = RangeMemory(memory)
        for _ in range(2):
            context, batch, sequences = random.randint(1, 30), random.randint(1, 3), random.randint(3, 5)
            device = Device("d", None, None, Link(10), peak="order", memory_bytes=2**40, sequences=sequences)
            instance = Instance.build(graph_of(memory, context, batch), Machine.uniform(3, device))
            needs = ranges.weights + ranges.caches(context, sequences) + ranges.peaks(context, batch)
            n = instance.op_count
            for start in range(n):
                for stop in range(start + 1, n + 1):
                    stages = np.array([(v >= start) + (v >= stop) for v in range(n)], dtype=np.int32)
                    costs = stage_costs(instance, Partition.from_stages(instance, stages))
                    assert needs[start, stop] == costs.held_bytes[1], (start, stop)


@pytest.mark.parametrize("whole_prompts", [False, True])
def test_a_range_needs_no_less_than_those_inside_it_and_at_smaller_loads(whole_prompts: bool) -> None:
    """So what fits at a number fits at all lower ones."""
    random = Random(2)
    for _ in range(60):
        ranges = RangeMemory(random_memory(random, whole_prompts=whole_prompts))
        parts = [ranges.weights, ranges.caches(9, 2), ranges.peaks(9, 2)]
        n = len(parts[0]) - 1
        stages = np.triu(np.ones((n + 1, n + 1), dtype=bool), 1)
        for part in parts:
            assert (np.diff(part, axis=1) >= 0)[stages[:, :-1]].all()
            assert (np.diff(part, axis=0) <= 0)[stages[1:]].all()
        for larger in (ranges.caches(10, 2), ranges.caches(9, 3)):
            assert (larger >= parts[1])[stages].all()
        for larger in (ranges.peaks(10, 2), ranges.peaks(9, 3)):
            assert (larger >= parts[2])[stages].all()


def test_caches_beyond_what_is_counted_are_refused() -> None:
    """Rather than being taken for less."""
    memory = LayerMemory((1,), (LayerCache(per_token=2**20),), (), (), "bf16", False)
    assert RangeMemory(memory).caches(2**30, 1)[0, 1] == 2**51
    error = refusal(RangeMemory(memory).caches, 2**30, 2**20)
    assert error.problem == "caches are too large: their total reaches 2^62 bytes"
