"""Small random models to be trained, and problems of planning them: seeded builders, and hypothesis strategies.

Both are made by the same builder. Costs are such that stages of every size, all degrees and each part of the objective
decide some plans; memory is tight, ample or not enough; numbers do not come out even.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

from mtpp.machine.machine import Machine
from mtpp.names import CONVENTIONS
from mtpp.training.model import Configuration, Edge, Layer, LayerId, TrainingModel
from mtpp.training.problem import PlanningProblem, Schemes
from mtpp.units import PICOSECONDS, Exact

Pick = Callable[[int, int], int]
"""Gives an integer between two others, both included."""

DEGREES = (1, 2, 3)
_CHAIN = 4
UNITS = ("ps", "ns", "us", "ms", "s")


def random_model(seed: int, most_layers: int = 7) -> TrainingModel:
    """Make the same model from the same seed every time."""
    return build_model(random.Random(seed).randint, most_layers)


def random_problem(seed: int, most_layers: int = 7, most_devices: int = 6) -> PlanningProblem:
    """Make the same problem from the same seed every time."""
    pick = random.Random(seed).randint
    return build_problem(pick, build_model(pick, most_layers), most_devices)


def four_layers() -> TrainingModel:
    """Return a chain with an edge past it, in which everything costs something else."""

    def configurations(v: int, t: int) -> list[Configuration]:
        forward = {v - 1: 2 + v + t} if v and t > 1 else {}
        backward = {v + 1: 3 + v + t} if v < _CHAIN - 1 and t > 1 else {}
        return [
            Configuration("plain", Fraction(30 + v, t) + 1, 5 + v, 20 // t, 11, forward, backward),
            Configuration("lean", Fraction(40 + v, t) + 1, 5 + v, 4 // t, 12, forward, backward, recomputes=True),
        ]

    layers = [Layer(v, f"layer {v}", {t: configurations(v, t) for t in (1, 2)}) for v in range(_CHAIN)]
    edges = [*(Edge(v, v + 1, 4 + v) for v in range(_CHAIN - 1)), Edge(0, _CHAIN - 1, 3)]
    return TrainingModel("chain", "ns", layers, edges)


@st.composite
def problems(draw: st.DrawFn, *, most_layers: int = 5, most_devices: int = 5) -> PlanningProblem:
    """Draw a problem."""

    def pick(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    return build_problem(pick, build_model(pick, most_layers), most_devices)


def build_model(pick: Pick, most_layers: int) -> TrainingModel:
    """Make a model of one or more layers, side by side in ranks, with edges to the next ranks and a few further ones.

    The file lists layers and edges in any order.
    """
    count = max(pick(1, most_layers), pick(1, most_layers))
    ids: list[LayerId] = [f"L{v}" for v in range(count)] if pick(0, 1) else [3 * v + 1 for v in range(count)]
    rank = [0]
    while len(rank) < count:
        rank.append(rank[-1] + (pick(0, 3) > 0))
    pairs = [(u, v) for u in range(count) for v in range(count) if rank[u] < rank[v]]
    joined = [(u, v) for u, v in pairs if pick(0, 5) < (5 if rank[v] == rank[u] + 1 else 1)]
    edges = [Edge(ids[u], ids[v], pick(0, 12)) for u, v in joined]
    unit = UNITS[pick(0, 4)]
    lacking = pick(0, 7) == 0  # some layer cannot run on one device
    layers = []
    for v in range(count):
        before = [ids[a] for a, b in joined if b == v]
        after = [ids[b] for a, b in joined if a == v]
        degrees = [t for t in DEGREES if t == 1 or pick(0, 2)]
        if lacking and v == count - 1:
            degrees = [2, *degrees[1:]] if 2 not in degrees else degrees[1:]
        layers.append(Layer(ids[v], f"layer {v}", {t: _choices(pick, t, before, after) for t in degrees}))
    order = random.Random(pick(0, 1000))
    order.shuffle(layers)
    order.shuffle(edges)
    return TrainingModel("random", unit, layers, edges)


def _choices(pick: Pick, t: int, before: list[LayerId], after: list[LayerId]) -> list[Configuration]:
    time = pick(1, 60)
    a, b = pick(0, 12), pick(0, 30)
    found = []
    for c in range((1, 1, 2, 2, 3)[pick(0, 4)]):
        # Later ones are mostly slower and leaner.
        takes = Fraction(40 * time * (3 + c) // (3 * t) + 40 * pick(0, 5) - pick(0, 6), 40)
        found.append(
            Configuration(
                id=f"way {c}",
                time_per_sample=_exact(max(takes, Fraction(0))),
                parameter_bytes=pick(0, 40) // t,
                memory_a=a // (c + 1) // t + pick(0, 2),
                memory_b=b // (c + 1) // t + pick(0, 4),
                forward_sync_bytes={u: pick(1, 8) for u in before if pick(0, t)},
                backward_sync_bytes={v: pick(1, 8) for v in after if pick(0, t)},
                recomputes=c > 0 and pick(0, 1) == 1,
            )
        )
    return found


def _exact(value: Fraction) -> Exact:
    return value.numerator if value.denominator == 1 else value


def build_problem(pick: Pick, model: TrainingModel, most_devices: int) -> PlanningProblem:
    """Make a problem out of a model, of any kind that it can be asked as."""
    needed = max(min(layer.configurations) for layer in model.layers)
    devices = pick(needed, most_devices)
    micro_batches = pick(1, most_devices + 2)
    heaviest = [
        max(one.memory_a + one.memory_b for one in layer.configurations[min(layer.configurations)])
        for layer in model.layers
    ]
    memory = max(1, sum(heaviest) * pick(1, 12) // 4)
    return PlanningProblem(
        model,
        machine=Machine.of_devices(
            devices,
            memory_bytes=memory,
            bandwidth_bytes_per_s=PICOSECONDS["s"] // PICOSECONDS[model.time_unit] * (1, 2, 3, 7)[pick(0, 3)],
        ),
        micro_batches=micro_batches,
        exact_micro_batches=pick(0, 3) == 0,
        convention=CONVENTIONS[pick(0, 1)],
        schemes=Schemes(
            data_parallel=pick(0, 4) > 0,
            tensor_parallel=needed > 1 or pick(0, 4) > 0,
            recompute=pick(0, 4) > 0,
        ),
    )
