"""Costs of the same assignment under other bandwidths of the link, in exact ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mtpp.errors import MtppError
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.instance import Instance
from mtpp.inference.objective import stage_costs
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.machine import Machine
from mtpp.units import PICOSECONDS, Exact

FACTORS = ((1, 2, "× ½"), (1, 1, "as planned"), (2, 1, "× 2"))
"""Numerator and denominator of each bandwidth over that of the plan, and what to call it."""

PARTS = ("work", "input", "output", "overflow", "cost")


@dataclass(frozen=True)
class Variant:
    """Stages under one bandwidth; *rows* are their work, input, output, overflow and cost, in ticks."""

    name: str
    bandwidth_bytes_per_s: int
    rows: Sequence[Sequence[int]]

    @property
    def bottleneck(self) -> int:
        """Cost of the most expensive stage."""
        return max(row[-1] for row in self.rows)

    @property
    def slowest(self) -> int:
        """The most expensive stage, the first of several."""
        return [row[-1] for row in self.rows].index(self.bottleneck)


def variants(graph: CostGraph, system: Device, stages: Sequence[int], k: int) -> list[Variant]:
    """Return the costs of an assignment for each of :data:`FACTORS` for which there are such.

    Parameters
    ----------
    graph
        With bytes of tensors; what has a transfer time of its own pays that under every bandwidth.
    stages
        Stage of each op.
    """
    found = []
    for numerator, denominator, name in FACTORS:
        bandwidth = system.link.bandwidth_bytes_per_s * numerator // denominator
        if bandwidth < 1:
            continue
        try:
            instance = Instance.build(graph, Machine.uniform(k, system.overriding(bandwidth_bytes_per_s=bandwidth)))
        except MtppError:
            if numerator == denominator:
                raise
            continue  # costs that are too large for ticks
        costs = stage_costs(instance, Partition.from_stages(instance, np.array(stages, dtype=np.int32)))
        rows = np.stack([getattr(costs, part) for part in PARTS], axis=1).tolist()
        found.append(Variant(name, bandwidth, rows))
    return found


def bytes_over_link(graph: CostGraph, system: Device) -> CostGraph:
    """Return a graph whose tensors pay for their bytes, wherever the transfer that they state is just that.

    A plan embeds its graph in ticks: every tensor states its transfer, also those that only had bytes in the model.
    """
    if graph.time_unit == "1":
        return graph
    unit = PICOSECONDS[graph.time_unit]
    transfer = tuple(
        None
        if given is not None and size != UNKNOWN_BYTES and _ticks(given, unit) == system.link.streaming_ps(size)
        else given
        for given, size in zip(graph.transfer, graph.tensor_bytes.tolist(), strict=True)
    )
    return replace(graph, transfer=transfer)


def _ticks(given: Exact, unit: int) -> int:
    exact = Fraction(given) * unit
    return -(-exact.numerator // exact.denominator)


def bandwidth_matters(graph: CostGraph, system: Device) -> bool:
    """Whether another bandwidth changes anything."""
    return system.fast_memory_bytes is not None or any(given is None for given in graph.transfer)
