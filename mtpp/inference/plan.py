"""A plan: a partition with everything that is said about it, ready to be shown, written and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Certificate, LowerBound
from mtpp.inference.degrees.first_token import FirstToken
from mtpp.inference.degrees.stage_degrees import StageDegrees
from mtpp.inference.goal import Goal
from mtpp.inference.graph import CostGraph, Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.objective import OneDevice, StageCosts, crossing_tensors, fastest_alone, stage_costs
from mtpp.inference.partition import Partition
from mtpp.inference.replicas.costs import ReplicaCosts, replica_costs
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.language_models.capacity_proof import CapacityProof
from mtpp.units import PICOSECONDS

FORMAT = "mtpp-plan"
VERSION = 1


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """One of the plans that no other one beats in both bottleneck and latency.

    Attributes
    ----------
    bottleneck, latency
        In ticks.
    lower
        On the latency of all plans whose bottleneck is below the next point's, of all plans for the last point.
    partition, devices
        As those of a :class:`Plan`.
    """

    bottleneck: int
    latency: int
    lower: LowerBound
    partition: Partition
    devices: tuple[int, ...] | None

    def to_document(self, op_names: Sequence[str]) -> dict[str, Any]:
        """Return the JSON object of a plan's ``frontier``."""
        return {
            "bottleneck": self.bottleneck,
            "latency": self.latency,
            "lower_bound": self.lower.to_document(),
            "assignment": dict(zip(op_names, self.partition.assignment.tolist(), strict=True)),
            "devices": list(range(self.partition.k) if self.devices is None else self.devices),
        }


@dataclass(frozen=True, eq=False)
class FewestDevicesProof:
    """That a plan is on the fewest devices that keep to a bottleneck.

    Attributes
    ----------
    max_bottleneck
        In ticks.
    lower
        Bound above it for one device fewer; None for a plan on one device.
    """

    max_bottleneck: int
    lower: LowerBound | None

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of a plan's ``fewest_devices``."""
        below = {} if self.lower is None else {"lower_bound": self.lower.to_document()}
        return {"max_bottleneck": self.max_bottleneck, **below}


@dataclass(frozen=True, eq=False)
class Plan:
    """A partition of a graph, its costs, its certificate and where they come from.

    Raises
    ------
    InconsistentBound
        From :attr:`certificate`, if *lower* is above the bottleneck.

    Attributes
    ----------
    graph, instance, partition
        What was partitioned, and how.
    lower
        The best lower bound on the objective of any partition into k stages, within the goal's limit.
    algorithm, found_by, seed, evaluations, stopped
        What was asked for, which part of it found the partition, and why it ended.
    together
        Groups of op names that had to share a stage.
    coverage
        What the search left out of that which its algorithm is to look through; empty if nothing.
    devices
        Device of each stage, by its number in the machine's list; None where all are equal and nobody listed them.
    goal
        Objective, and the limit on the other figure.
    frontier
        All plans that no other one beats, in increasing bottleneck, of which this one is the first; empty if nobody
        asked for them.
    fewest
        Proof that no fewer devices keep to a bottleneck; None where nobody asked, or there is none.
    capacity
        Proof of the largest context, or of the most sequences, that the devices hold; None where nobody asked.
    first_token
        Prefill of the stages; None of plans for one phase.
    degrees
        Degrees of tensor parallelism of the stages, intervals of the graph's order; None where devices have none.
    """

    graph: CostGraph
    instance: Instance
    partition: Partition
    lower: LowerBound
    algorithm: str
    found_by: str
    seed: int
    evaluations: int
    stopped: StopReason
    together: Sequence[Sequence[str]] = field(default=())
    coverage: str = ""
    devices: tuple[int, ...] | None = None
    goal: Goal = field(default=Goal())
    frontier: tuple[FrontierPoint, ...] = ()
    fewest: FewestDevicesProof | None = None
    degrees: StageDegrees | None = None
    capacity: CapacityProof | None = None
    first_token: FirstToken | None = None

    @property
    def bottleneck(self) -> int:
        """Cost of the most expensive stage, in ticks."""
        return self.costs.bottleneck

    @property
    def latency(self) -> int:
        """Time of one request on an idle pipeline: the sum of the stages' costs, in ticks."""
        return self.costs.latency

    @cached_property
    def costs(self) -> StageCosts:
        """Cost of every stage and its parts."""
        if isinstance(self.partition, ReplicatedPartition):
            return replica_costs(self.instance, self.partition)
        if self.degrees is not None:
            return self.degrees.costs(self.partition)
        return stage_costs(self.instance, self.partition)

    @cached_property
    def certificate(self) -> Certificate:
        """Objective and lower bound, checked against each other."""
        return Certificate(self.goal.value(self.costs), self.lower, self.goal.objective)

    @cached_property
    def alone(self) -> OneDevice | None:
        """The fastest device that holds the whole graph, by its number in the machine's list; None if none does."""
        return fastest_alone(self.instance, self.devices or range(self.instance.machine.count))

    @property
    def throughput_per_s(self) -> float | None:
        """Inferences per second of a full pipeline, steps of a language model; None of abstract or of no costs."""
        return float(Fraction(PICOSECONDS["s"], self.bottleneck)) if self.instance.timed and self.bottleneck else None

    @property
    def speed_up(self) -> float | None:
        """Time of the whole graph on the fastest device that holds it over the bottleneck; None if none does."""
        if self.degrees is not None or not self.bottleneck or self.alone is None:
            return None
        return float(Fraction(self.alone.ticks, self.bottleneck))

    @property
    def crossing_count(self) -> int:
        """Number of tensors that cross a stage boundary."""
        return len(self.crossing)

    @property
    def crossing_bytes(self) -> int:
        """Bytes of all tensors that cross a stage boundary."""
        sizes = self.instance.tensor_bytes[self.crossing].tolist()  # their sum is more than 64 bits hold, perhaps
        return sum(sizes)

    @cached_property
    def crossing(self) -> Int32Array:
        """Tensors that cross a stage boundary, int32."""
        return crossing_tensors(self.instance, self.partition)

    @cached_property
    def ends(self) -> list[tuple[str | None, str | None]]:
        """Names of the first and last op of each stage in the graph's order; None in empty stages."""
        order = self.instance.order
        stage = self.partition.assignment[order]
        first = np.full(self.partition.k, len(order), dtype=np.int64)
        last = np.full(self.partition.k, -1, dtype=np.int64)
        np.minimum.at(first, stage, np.arange(len(order)))
        np.maximum.at(last, stage, np.arange(len(order)))
        names = self.instance.op_names
        return [
            (names[order[i]], names[order[j]]) if j >= 0 else (None, None)
            for i, j in zip(first.tolist(), last.tolist(), strict=True)
        ]

    def stage_rows(self) -> list[dict[str, Any]]:
        """Return the JSON objects of the stages, times in ticks and sizes in bytes."""
        costs, on = self.costs, self._devices_of_stages()
        return [
            {
                "index": b,
                **on[b],
                **({} if self.degrees is None else {"tensor_parallel": self.degrees.of_stage[b]}),
                "ops": int(costs.ops[b]),
                "first": self.ends[b][0],
                "last": self.ends[b][1],
                "work": int(costs.work[b]),
                "input": int(costs.input[b]),
                "output": int(costs.output[b]),
                "overflow": int(costs.overflow[b]),
                "cost": int(costs.cost[b]),
                "param_bytes": int(costs.param_bytes[b]),
                "peak_bytes": int(costs.peak_bytes[b]),
                **({"state_bytes": int(costs.state_bytes[b])} if self.graph.states.inputs else {}),
            }
            for b in range(self.partition.k)
        ]

    def _devices_of_stages(self) -> list[dict[str, Any]]:
        """Return of each stage the device, or the devices with the cost on each; nothing where none are listed."""
        machine, costs = self.instance.machine, self.costs
        names = machine.names if machine.groups[0].name else [f"d{j}" for j in range(machine.count)]
        if isinstance(self.partition, ReplicatedPartition) and isinstance(costs, ReplicaCosts):
            rows = zip(self.partition.replicas, costs.each, strict=True)
            return [
                {"devices": [{"name": names[j], "index": j, "cost": t} for j, t in zip(devices, each, strict=True)]}
                for devices, each in rows
            ]
        if self.devices is None:
            return [{}] * self.partition.k
        return [{"device": {"name": names[b], "index": self.devices[b]}} for b in range(self.partition.k)]

    @property
    def serving(self) -> dict[str, Any]:
        """Load of a language model; empty for other graphs."""
        load = self.graph.metadata.get("serving")
        return {**load, "sequences": self.instance.device.sequences} if isinstance(load, Mapping) else {}

    def _system(self) -> dict[str, Any]:
        """Return the system, with the number of sequences if stages keep any states of them."""
        device = self.instance.device
        held = bool(self.graph.states.inputs) or bool(self.serving)
        return device.to_document() | ({"sequences": device.sequences} if held else {})

    def to_document(
        self,
        *,
        file: Mapping[str, Any],
        dims: Mapping[str, int],
        elapsed_s: float,
        proposed_dims: Sequence[str] = (),
        keep_state: Mapping[str, str] = MappingProxyType({}),
        graph_document: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] | None = None,
        graphs: Mapping[str, Any] | None = None,
        prompt_graphs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the ``mtpp-plan`` document, version 1.

        Parameters
        ----------
        file
            The model's file: its ``sha256``, and its ``path`` where it has one; so of its measured costs, if any.
        dims
            Values of symbolic dimensions.
        proposed_dims
            Names of those that nobody gave.
        keep_state
            Inputs that were named as states, with the results that they come out as.
        graph_document
            The graph in ticks, to embed; with a machine in its own unit.
        machine
            The devices, as :meth:`Machine.to_document` writes them.
        graphs, prompt_graphs
            Graph and times of each degree above one, to embed, and those of each degree at prefill.
        """
        graph = self.graph
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "model": {
                "name": graph.name,
                **file,
                "ops": graph.op_count,
                "tensors": graph.tensor_count,
                "dims": dict(dims),
                **({"proposed_dims": list(proposed_dims)} if proposed_dims else {}),
                **({"keep_state": dict(keep_state)} if keep_state else {}),
                **({"param_bytes": graph.all_bytes} if graph.weights.names else {}),
                **({"serving": self.serving} if self.serving and dims else {}),
            },
            "system": self._system(),
            **({} if machine is None else {"machine": machine}),
            "k": self.instance.most_used,
            **({"replicas": True} if isinstance(self.partition, ReplicatedPartition) else {}),
            **({} if self.degrees is None else self.degrees.to_document()),
            "algorithm": self.algorithm,
            "found_by": self.found_by,
            "seed": self.seed,
            "evaluations": self.evaluations,
            "stopped": str(self.stopped),
            "ticks_per_unit": self.instance.ticks_per_unit,
            "time_unit": self.instance.time_unit,
            "together": [list(group) for group in self.together],
            **self.goal.to_document(),
            "bottleneck": self.bottleneck,
            "latency": self.latency,
            "throughput_per_s": self.throughput_per_s,
            "speed_up": self.speed_up,
            "crossing": {"tensors": self.crossing_count, "bytes": self.crossing_bytes},
            "lower_bound": self.lower.to_document(),
            "ratio": self.certificate.ratio,
            "optimal": self.certificate.optimal,
            "stages": self.stage_rows(),
            "assignment": dict(zip(graph.op_names, self.partition.assignment.tolist(), strict=True)),
        }
        if machine is not None and len(self.instance.machine.classes) > 1 and self.degrees is None:
            one = self.alone
            document["one_device"] = None if one is None else {"index": one.device, "cost": one.ticks}
        if self.frontier:
            document["frontier"] = [point.to_document(graph.op_names) for point in self.frontier]
        if self.fewest is not None:
            document["fewest_devices"] = self.fewest.to_document()
        if self.first_token is not None:
            document["first_token"] = self.first_token.to_document(self.partition, prompt_graphs)
        if self.capacity is not None:
            document["capacity"] = self.capacity.to_document()
        if graph_document is not None:
            document["graph"] = graph_document
        if graphs is not None:
            document["graphs"] = dict(graphs)
        document["elapsed_s"] = round(elapsed_s, 3)
        return document
