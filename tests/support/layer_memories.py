"""Memories of made-up layers, their graphs, and devices for them."""

from __future__ import annotations

from random import Random

from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.states import State
from mtpp.inference.weights import Weight
from mtpp.language_models.cache import LayerCache
from mtpp.language_models.layer_memory import LayerMemory, Passing, Shared
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.tables import Alternative
from mtpp.solvers.serving.capacity import CapacityProblem, Holding, Load


def random_memory(random: Random, most: int = 8, *, whole_prompts: bool = False) -> LayerMemory:
    """Return layers with tensors that skip some, weights of several, windows, states and sources."""
    n = random.randint(1, most)

    def size(largest: int = 50) -> int:
        return random.choice([0, random.randint(1, largest)])

    def some(first: int) -> tuple[int, ...]:
        return tuple(sorted(random.sample(range(first, n), random.randint(1, n - first))))

    passing = [Passing(size(), size(), i, (i + 1,)) for i in range(n - 1)]
    for _ in range(random.randint(0, 3)):
        maker = random.randint(-1, n - 2)
        if maker >= 0:
            passing.append(Passing(size(), size(), maker, some(maker + 1)))
    passing += [Passing(size(), size(), -1, (i,)) for i in range(n)]
    caches = [
        LayerCache(per_token=size(9), window=random.choice([None, None, random.randint(1, 20)]), state=size(),
                   per_source_token=random.choice([0, 0, 0, 3]))
        for _ in range(n)
    ]  # fmt: skip
    return LayerMemory(
        tuple(size() for _ in range(n)),
        tuple(caches),
        tuple(Shared(size(), some(0)) for _ in range(random.randint(0, 2))),
        tuple(passing),
        random.choice(["bf16", "fp8", "q4_0"]),
        whole_prompts,
    )


def graph_of(memory: LayerMemory, context: int, batch: int) -> CostGraph:
    """Return the graph of layers at a load, in which nothing takes any time."""
    names = [f"op{i}" for i in range(len(memory.weights))]
    tensors, inputs = [], []
    sizes = memory.passing_bytes(context, batch)
    for i, (held, (*_, maker, readers)) in enumerate(zip(sizes, memory.passing, strict=True)):
        by = [names[v] for v in readers]
        if maker < 0:
            inputs.append(Weight(f"in{i}", held, by))
        else:
            tensors.append(Tensor(f"t{i}", names[maker], tuple(by), held, 0))
    return CostGraph.build(
        name="layers",
        time_unit="1",
        ops=[Op(name, 0, param_bytes=held) for name, held in zip(names, memory.weights, strict=True)],
        tensors=tensors,
        inputs=inputs,
        weights=[Weight(f"w{i}", row.bytes, [names[v] for v in row.readers]) for i, row in enumerate(memory.shared)],
        states=[
            State(f"c{i}", f"c{i}", f"c{i}", held, [names[i]]) for i, held in enumerate(memory.cache_bytes(context))
        ],
    )


def random_problem(random: Random, objective: str) -> CapacityProblem:
    """Return a few layers on up to four devices of up to three classes, with limits that some loads exceed."""
    prompts = random.random() < 0.3
    memory = random_memory(random, 6, whole_prompts=prompts)
    count = random.randint(1, 4)
    classes = sorted(random.randrange(3) for _ in range(count))
    classes = [sorted(set(classes)).index(c) for c in classes]
    random.shuffle(classes)
    n, groups = len(memory.weights), []
    if n > 2 and random.random() < 0.3:
        groups.append(sorted(random.sample(range(n), 2)))
    holdings = [
        Holding(Alternative(c), random.choice([None] + [random.randint(50, 900) for _ in range(6)]),
                random.choice([None, None, 7]), (memory,))
        for c in range(max(classes) + 1)
    ]  # fmt: skip
    devices = ChainDevices.of(
        classes, free=random.random() < 0.5, most_used=random.randint(1, count), none_empty=random.random() < 0.2
    )
    batch = random.choice([None, 1, 2])
    load = Load(objective, random.randint(1, 12), 1 if batch is None else batch, batch, devices.most_used)
    return CapacityProblem(holdings, devices, groups, load)
