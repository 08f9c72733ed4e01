"""Best plans of language models cut to a few layers, by all cuts between layers and all orders of devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtpp.api.inputs.groups import engine_groups
from mtpp.api.inputs.model import Model
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device, DeviceGroup
from mtpp.machine.link import Level, Link
from mtpp.machine.machine import Machine

CONFIGURATIONS = (
    "cohere2-7b", "deepseek-v3", "gemma3n-e4b-text", "llama-70b", "mamba2-2.7b", "mistral-7b", "phi3-mini", "qwen3-8b",
    "qwen3-next-80b", "t5-large",
)  # fmt: skip


class Kind(NamedTuple):
    """Equal devices: how many, memory as a share of the weights, TFLOP/s, and GB/s of the link."""

    count: int
    share: float
    rate: int
    link: int


class Line(NamedTuple):
    """Devices in fixed or free order."""

    order: str
    kinds: tuple[Kind, ...]

    @property
    def small(self) -> bool:
        """Whether there are few orders and cuts."""
        return sum(kind.count for kind in self.kinds) < 4


MACHINES = {
    "three equal": Line("fixed", (Kind(3, 0.6, 10, 50),)),
    "four that differ": Line(
        "fixed", (Kind(1, 0.8, 30, 50), Kind(1, 0.4, 10, 25), Kind(1, 0.45, 10, 50), Kind(1, 0.7, 20, 5))
    ),
    "two of three kinds": Line("free", (Kind(2, 0.75, 30, 50), Kind(2, 0.25, 10, 25), Kind(2, 0.35, 15, 25))),
    "four kinds": Line(
        "free", (Kind(1, 0.9, 30, 50), Kind(2, 0.3, 10, 25), Kind(1, 0.25, 25, 100), Kind(1, 0.5, 5, 5))
    ),
    "two": Line("fixed", (Kind(1, 0.9, 10, 2), Kind(1, 0.8, 40, 2))),
}


def cut_configuration(source: Path, layers: int, folder: Path) -> str:
    """Write a configuration with at most so many layers, and return its path."""
    values = json.loads(source.read_text())
    names = ("num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers")
    total = max(values.get(name) or 0 for name in names)
    most = layers // 2 if "num_decoder_layers" in values or values["model_type"] == "t5" else layers
    for key, value in values.items():
        if key in names and value:
            values[key] = min(value, most)
        elif isinstance(value, list) and len(value) == total:
            values[key] = value[-most:] if key == "layer_types" and "full_attention" in value[-most:] else value[:most]
    if values.get("num_kv_shared_layers"):
        values["num_kv_shared_layers"] = most // 3
    path = folder / source.name
    path.write_text(json.dumps(values))
    return str(path)


def machine_for(name: str, weights: int) -> Machine:
    """Return one of :data:`MACHINES` for a model with so many bytes of weights."""
    order, kinds = MACHINES[name]
    groups = []
    for i, kind in enumerate(kinds):
        peak, rate, link = kind.rate * 10**12, kind.rate * 10**11, Link(kind.link * 10**9, 1000 * i)
        device = Device(f"kind{i}", peak, rate, link, memory_bytes=int(kind.share * weights), peak="order")
        groups.append(DeviceGroup(device, kind.count, f"kind{i}"))
    return Machine(tuple(groups), (Level(sum(kind.count for kind in kinds), groups[0].device.link),), name, order)


@dataclass(frozen=True, eq=False)
class Oracle:
    """A model on a machine at one load: cost and memory of all ranges of layers, as stages of evaluated partitions."""

    model: Model

    @property
    def machine(self) -> Machine:
        """Devices of the model."""
        assert self.model.machine is not None
        return self.model.machine

    @cached_property
    def figures(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ticks and bytes by class, start and stop."""
        model, classes = self.model, self.machine.classes
        n = model.graph.op_count
        cost = np.zeros((len(classes), n + 1, n + 1), dtype=np.int64)
        held = np.zeros_like(cost)
        for c, device in enumerate(classes):
            times = [model.times[c]] if model.times else None
            instance = Instance.build(model.graph, Machine.uniform(3, device), times)
            for start, stop in combinations(range(n + 1), 2):
                stages = np.array([(v >= start) + (v >= stop) for v in range(n)], dtype=np.int32)
                costs = stage_costs(instance, Partition.from_stages(instance, stages))
                cost[c, start, stop], held[c, start, stop] = costs.cost[1], costs.held_bytes[1]
        return cost, held

    def cuts(self, stages: int) -> NDArray[np.int64]:
        """Return the bounds of all ways to cut the layers into so many stages, by rows; no group is cut."""
        n, number = self.model.graph.op_count, {name: i for i, name in enumerate(self.model.graph.op_names)}
        groups = [[number[name] for name in group] for group in engine_groups(self.model)]
        places = [p for p in range(1, n) if not any(min(group) < p <= max(group) for group in groups)]
        return np.array([[0, *inner, n] for inner in combinations(places, stages - 1)], dtype=np.int64)

    def lines(self, stages: int) -> NDArray[np.int64]:
        """Return the classes of so many devices in all orders in which they may stand."""
        class_of = list(self.machine.class_of)
        lines = permutations(class_of, stages) if self.machine.free else combinations(class_of, stages)
        return np.array(sorted(set(lines)), dtype=np.int64)

    def of_stages(self) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield whether plans fit, their bottlenecks and latencies, of all lines of devices and all cuts."""
        cost, held = self.figures
        limits = np.array([device.memory_bytes for device in self.machine.classes])
        for stages in range(1, min(self.machine.count, self.model.graph.op_count) + 1):
            cuts, lines = self.cuts(stages), self.lines(stages)
            if not len(cuts):
                continue
            at = (lines[:, None, :], cuts[None, :, :-1], cuts[None, :, 1:])
            yield (held[at] <= limits[lines][:, None, :]).all(axis=2), cost[at].max(axis=2), cost[at].sum(axis=2)

    def least_bottleneck(self) -> int | None:
        """Return the least bottleneck of plans that fit; None where none do."""
        return min((int(cost[fits].min()) for fits, cost, _ in self.of_stages() if fits.any()), default=None)

    def fits(self) -> bool:
        """Tell whether any plan fits."""
        return any(fits.any() for fits, _, _ in self.of_stages())


def both_phases(decoding: Oracle, prompts: Oracle) -> Iterator[tuple[int, int]]:
    """Yield bottleneck of decoding and time of a prompt of all plans that fit both."""
    for (fits, cost, _), (also, _, latency) in zip(decoding.of_stages(), prompts.of_stages(), strict=True):
        good = fits & also
        yield from set(zip(cost[good].tolist(), latency[good].tolist(), strict=True))


def least_within(plans: Sequence[tuple[int, int]], limit: int) -> int:
    """Return the least bottleneck of plans whose prompts take no longer than a limit."""
    return min(bottleneck for bottleneck, latency in plans if latency <= limit)
