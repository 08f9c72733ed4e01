"""Random chains of layers on devices that run a stage in several ways, and the best of all plans by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations, product
from random import Random
from typing import Any

import numpy as np

from mtpp.checker.machine import classes_of, digest_of
from mtpp.formats.graphs.native import plain_document
from mtpp.inference.goal import Goal
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.plan import Plan
from mtpp.inference.states import State
from mtpp.inference.weights import Weight
from mtpp.machine.device import Device, DeviceGroup
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine
from mtpp.solvers.layer_chains.devices import ChainDevices
from mtpp.solvers.layer_chains.solve import DegreeProblem
from mtpp.solvers.layer_chains.tables import Alternative, Choice


@dataclass(frozen=True)
class DegreeCase:
    """A graph for each degree, a machine, the degrees of each class of its devices, and groups of ops.

    Times of each degree are by class of devices; without them they are the graph's own work at the device's speed.
    """

    graphs: dict[int, CostGraph]
    machine: Machine
    degrees: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[str, ...], ...] = ()
    times: dict[int, Any] = field(default_factory=dict)

    def choices(self) -> list[Choice]:
        """All alternatives."""
        built = {degree: Instance.build(graph, self.machine) for degree, graph in self.graphs.items()}
        return [
            Choice(Alternative(c, degree), built[degree])
            for c, degrees in enumerate(self.degrees)
            for degree in degrees
        ]

    def devices(self, most: int | None = None, *, none_empty: bool = False) -> ChainDevices:
        """Devices of the machine."""
        machine = self.machine
        return ChainDevices.of(machine.class_of, free=machine.free, most_used=most, none_empty=none_empty)


def random_case(draw: Random, *, most_ops: int = 7, most_devices: int = 4) -> DegreeCase:
    """Draw a chain of ops with further tensors, shared weights, states, inputs and results, and devices for it."""
    n = draw.randint(1, most_ops)
    names = [f"l{i}" for i in range(n)]
    degrees = tuple(sorted(draw.sample((1, 2, 4), draw.randint(1, 3))))
    linked = draw.random() < 0.8
    links = [(i, (i + 1,)) for i in range(n - 1) if linked or draw.random() < 0.6]
    for _ in range(draw.randint(0, 4) if n > 1 else 0):
        maker = draw.randrange(n - 1)
        links.append((maker, tuple(sorted(draw.sample(range(maker + 1, n), draw.randint(1, n - maker - 1))))))
    if draw.random() < 0.5:
        links.append((draw.randrange(n), ()))
    results = [f"t{t}" for t in range(len(links)) if draw.random() < 0.2]

    def readers() -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(draw.sample(range(n), draw.randint(1, min(n, 3)))) for _ in range(draw.randint(0, 3)))

    weights, inputs, states = readers(), readers(), readers()
    graphs = {}
    for degree in degrees:

        def size(most: int, degree: int = degree) -> int:
            return draw.randint(0, most) // degree

        graphs[degree] = CostGraph.build(
            name="chain",
            time_unit="ps",
            ops=[Op(name, draw.randint(0, 40) // degree, "layer", size(20)) for name in names],
            tensors=[
                Tensor(f"t{t}", names[u], [names[v] for v in vs], size(8), draw.randint(0, 6))
                for t, (u, vs) in enumerate(links)
            ],
            weights=[Weight(f"w{i}", size(15), [names[v] for v in row]) for i, row in enumerate(weights)],
            inputs=[Weight(f"i{i}", size(8), [names[v] for v in row]) for i, row in enumerate(inputs)],
            results=results,
            states=[
                State(f"s{i}", f"si{i}", f"so{i}", size(6), [names[v] for v in row]) for i, row in enumerate(states)
            ],
        )
    machine, by_class = _random_machine(draw, degrees, n, most_devices)
    groups = []
    for _ in range(draw.choice((0, 0, 1, 2)) if n > 1 else 0):
        first = draw.randrange(n - 1)
        groups.append((names[first], names[draw.randrange(first + 1, min(n, first + 3))]))
    return DegreeCase(graphs, machine, by_class, tuple(groups))


def _random_machine(
    draw: Random, degrees: tuple[int, ...], n: int, most_devices: int
) -> tuple[Machine, tuple[tuple[int, ...], ...]]:
    peak, sequences = draw.choice(("order", "reserve")), draw.randint(1, 3)
    kinds = []
    for _ in range(draw.randint(1, 3)):
        memory = draw.choice((None, draw.randint(5, 40 + 15 * n)))
        fast = draw.choice((None, None, draw.randint(5, 60)))
        kinds.append(
            Device(
                "device", None, None, Link(10**12, draw.choice((0, 0, 2)), draw.choice((1, 2))),
                fast_memory_bytes=fast, memory_bytes=memory, peak=peak, sequences=sequences,
                activation_reserve_bytes=min(3, *(m for m in (memory, fast) if m is not None), 3),
                speed=draw.choice((1, 2, 3)),
            )
        )  # fmt: skip
    groups = tuple(
        DeviceGroup(draw.choice(kinds), draw.randint(1, 2), f"d{i}") for i in range(draw.randint(1, most_devices))
    )
    count = min(most_devices, sum(group.count for group in groups))
    groups = tuple(
        DeviceGroup(device, 1, f"d{i}")
        for i, device in enumerate([group.device for group in groups for _ in range(group.count)][:count])
    )
    machine = Machine(groups, (Level(count, groups[0].device.link),), "m", draw.choice(("fixed", "free")))
    chosen = tuple(tuple(sorted(draw.sample(degrees, draw.randint(1, len(degrees))))) for _ in machine.classes)
    return machine, chosen


Chosen = list[tuple[int, int, int, int]]
"""Device, degree, start and stop of each stage."""


def all_plans(case: DegreeCase, most: int, least: int) -> Iterator[tuple[int, int]]:
    """Bottleneck and latency of every plan that keeps to memory and groups, by the definition of stages alone."""
    stage = stages_of(case)
    for chosen in all_stages(case, most, least):
        found = [stage(*one) for one in chosen]
        if all(fits for _, fits in found):
            yield max(cost for cost, _ in found), sum(cost for cost, _ in found)


def all_plans_of_both(case: DegreeCase, prompts: DegreeCase, most: int, least: int) -> Iterator[tuple[int, int]]:
    """Bottleneck of a case and latency of another one of every plan that keeps to memory in both."""
    stage, also = stages_of(case), stages_of(prompts)
    for chosen in all_stages(case, most, least):
        found = [(*stage(*one), *also(*one)) for one in chosen]
        if all(fits and fitting for _, fits, _, fitting in found):
            yield max(cost for cost, *_ in found), sum(time for _, _, time, _ in found)


def stages_of(case: DegreeCase) -> Callable[[int, int, int, int], tuple[int, bool]]:
    """Cost of a stage on a device at a degree, and whether it fits."""
    machine, first = case.machine, next(iter(case.graphs.values()))
    n, order = first.op_count, first.order.tolist()

    @cache
    def figures(c: int, degree: int, start: int, stop: int) -> tuple[int, bool]:
        stages = [0] * n
        for i, v in enumerate(order):
            stages[v] = 0 if i < start else 1 if i < stop else 2
        own = [case.times[degree][c]] if degree in case.times else None
        whole = Instance.build(case.graphs[degree], Machine.uniform(3, machine.classes[c]), own)
        costs = stage_costs(whole, Partition(np.array(stages, dtype=np.int32), 3))
        limit = machine.classes[c].memory_bytes
        return int(costs.cost[1]), limit is None or int(costs.held_bytes[1]) <= limit

    return lambda device, degree, start, stop: figures(machine.class_of[device], degree, start, stop)


def all_stages(case: DegreeCase, most: int, least: int) -> Iterator[Chosen]:
    """Stages of every plan that keeps to groups, whether they fit or not."""
    machine, first = case.machine, next(iter(case.graphs.values()))
    n = first.op_count
    position = {first.op_names[v]: i for i, v in enumerate(first.order.tolist())}
    whole = [[position[name] for name in group] for group in case.groups]
    for stages in range(least, min(most, n) + 1):
        for cuts in combinations(range(1, n), stages - 1):
            ends = list(zip((0, *cuts), (*cuts, n), strict=True))
            if any(any(min(group) < cut <= max(group) for cut in cuts) for group in whole):
                continue
            choose = permutations if machine.free else combinations
            for devices in choose(range(machine.count), stages):
                for degrees in product(*(case.degrees[machine.class_of[d]] for d in devices)):
                    yield [(d, t, *end) for d, t, end in zip(devices, degrees, ends, strict=True)]


def problem_of(
    case: DegreeCase, goal: Goal, most: int | None = None, *, none_empty: bool = False, one_degree: bool = False
) -> DegreeProblem:
    """Return the problem of a case; its whole model is the graph of the least degree."""
    built = {degree: Instance.build(graph, case.machine, most_used=most) for degree, graph in case.graphs.items()}
    whole = case.graphs[min(case.graphs)]
    return DegreeProblem(whole, built[min(built)], built, case.degrees, case.groups, goal, none_empty, one_degree)


def document_of(case: DegreeCase, plan: Plan) -> dict[str, Any]:
    """Return the document of a plan with its graphs, as times of each class of devices."""
    machine = case.machine.to_document()
    for row, c in zip(machine["devices"], case.machine.class_of, strict=True):
        row["tensor_parallel"] = list(case.degrees[c])
    machine["sha256"] = digest_of(machine)
    number = classes_of(machine)
    first = [case.machine.class_of[number.index(c)] for c in range(max(number) + 1)]
    graphs = {
        str(degree): {
            "graph": plain_document(graph),
            "times": [Instance.build(graph, case.machine).cost.work[c].tolist() for c in first],
        }
        for degree, graph in case.graphs.items()
        if degree > 1
    }
    whole = plain_document(case.graphs[min(case.graphs)])
    return plan.to_document(
        file={"sha256": "0" * 64}, dims={}, elapsed_s=1.0, graph_document=whole, machine=machine, graphs=graphs
    )
