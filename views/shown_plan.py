"""A plan as tables show it, made from a search at hand or from a document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from mtpp.inference.certificate import Certificate, LowerBound, Tier
from mtpp.inference.replicas.partition import ReplicatedPartition
from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.units import InTicks

_MOST_NAMED = 4
"""Devices of a stage that are all named."""

if TYPE_CHECKING:
    from mtpp.inference.plan import Plan
    from mtpp.machine.device import Device


@dataclass(frozen=True)
class Crossing:
    """Tensors that cross a boundary of stages: how many, of how many, and their bytes."""

    count: int
    of: int
    size_bytes: int


@dataclass(frozen=True)
class ShownPoint:
    """A point of a frontier: its figures in ticks, the lower bound on its latency, and how many stages have ops."""

    bottleneck: int
    latency: int
    lower: int
    tier: str
    busy: int


@dataclass(frozen=True, eq=False)
class ShownPlan(InTicks):
    """Figures of a plan, and what they rest on.

    Attributes
    ----------
    name, ops, tensors
        Of the graph.
    stages
        One row per stage as in a plan's document: ticks and bytes.
    certificate
        Objective and lower bound.
    bottleneck
        Ticks of the most expensive stage.
    claimed
        Whether these are a document's word that nobody has verified.
    devices
        Of the stages, where a machine lists them.
    one_stage
        Ticks of the whole graph in one stage; None if the stage memory rules that out.
    one_stage_known, crossing
        A document alone need not tell: whether *one_stage* is known, and None for the tensors.
    coverage
        What the search left out of that which its algorithm is to look through.
    assumptions
        What the figures rest on.
    alone_on
        Name of the fastest device that holds the whole graph, where devices differ.
    limit
        Ticks that the figure which is not the objective may come to; None: any.
    frontier
        The plans that no other one beats in both figures.
    most_used
        Devices that may be used at most; None: all.
    fewest_for
        Ticks of a bottleneck that no fewer devices than *most_used* keep to; None where that is not said.
    serving
        Load of a language model, as its plan's document has it; empty for other graphs.
    first_token
        Ticks of a prompt, limit and sizes as in a plan's document; None of plans for one phase.
    capacity
        Largest context or most sequences as in a plan's document; None where that is not said.
    """

    name: str
    ops: int
    tensors: int
    time_unit: str
    ticks_per_unit: int
    system: Device
    stages: Sequence[Mapping[str, Any]]
    certificate: Certificate
    bottleneck: int
    found_by: str
    one_stage: int | None
    one_stage_known: bool = True
    crossing: Crossing | None = None
    coverage: str = ""
    assumptions: Sequence[str] = ()
    claimed: bool = False
    devices: Sequence[Device] | None = None
    alone_on: str = ""
    limit: int | None = None
    frontier: Sequence[ShownPoint] = ()
    most_used: int | None = None
    fewest_for: int | None = None
    serving: Mapping[str, Any] = field(default_factory=dict)
    capacity: Mapping[str, Any] | None = None
    first_token: Mapping[str, Any] | None = None

    @property
    def latency(self) -> int:
        """Ticks of all stages together; of one on several devices as the slowest takes for it."""
        return sum(max(each_cost(row)) for row in self.stages)

    @property
    def of_latency(self) -> bool:
        """Whether the latency is the objective."""
        return self.certificate.objective == LATENCY_OBJECTIVE

    @property
    def k(self) -> int:
        """Number of stages, one for each device."""
        return len(self.stages)

    @property
    def replicated(self) -> bool:
        """Whether stages may stand on several devices."""
        return any("devices" in row for row in self.stages)

    @property
    def has_degrees(self) -> bool:
        """Whether several GPUs of a device may share a stage."""
        listed = any(one.tensor for one in self.devices or [])
        return listed and any("tensor_parallel" in row for row in self.stages)

    @property
    def device_count(self) -> int:
        """Number of devices of all stages."""
        return sum(len(row.get("devices", (None,))) for row in self.stages)

    @property
    def lower(self) -> LowerBound:
        """The lower bound."""
        return self.certificate.lower

    @property
    def empty_count(self) -> int:
        """Number of stages without ops."""
        return sum(not row["ops"] for row in self.stages)

    @property
    def slowest(self) -> int:
        """The most expensive stage, the first of several."""
        costs = [row["cost"] for row in self.stages]
        return costs.index(max(costs))


def each_cost(row: Mapping[str, Any]) -> list[int]:
    """Return the cost of a stage on each of its devices."""
    return [one["cost"] or 0 for one in row["devices"]] if "devices" in row else [row["cost"]]


def state_bytes(row: Mapping[str, Any]) -> int:
    """Return the bytes of states that a stage keeps between requests."""
    return int(row.get("state_bytes", 0))


def devices_text(row: Mapping[str, Any]) -> str:
    """Return the names of a stage's devices: ``d0 + d3``, ``3 × fast + slow``."""
    if "devices" not in row:
        return str(row["device"]["name"])
    names = [one["name"] for one in row["devices"]]
    if len(set(names)) == len(names) > _MOST_NAMED:
        return f"{names[0]} + … + {names[-1]} ({len(names)})"
    counts = [(name, names.count(name)) for name in dict.fromkeys(names)]
    return " + ".join(name if count == 1 else f"{count} × {name}" for name, count in counts)


def shown_plan(plan: Plan, assumptions: Sequence[str]) -> ShownPlan:
    """Return what is shown of a plan that was found or scored here."""
    from mtpp.inference.working_memory import peaks_in_order

    graph, instance = plan.graph, plan.instance
    sizes = instance.tensor_bytes[plan.crossing].tolist()  # their sum is more than 64 bits hold, perhaps
    system = instance.device
    peak = system.activation_reserve_bytes
    if system.peak == "order" and system.limits_memory:
        peak = int(peaks_in_order(instance, plan.partition.assignment * 0, 1)[0])
    one_stage, alone_on = _one_stage(system, int(instance.work.sum()), int(instance.param_bytes.sum()), peak), ""
    differ = len(instance.machine.classes) > 1 and plan.degrees is None
    if differ:
        one_stage = None if plan.alone is None else plan.alone.ticks
        alone_on = "" if plan.alone is None else _name_of_device(plan, plan.alone.device)
    return ShownPlan(
        name=graph.name,
        ops=graph.op_count,
        tensors=graph.tensor_count,
        time_unit=graph.time_unit,
        ticks_per_unit=instance.ticks_per_unit,
        system=system,
        stages=plan.stage_rows(),
        certificate=plan.certificate,
        bottleneck=plan.bottleneck,
        found_by=plan.found_by,
        one_stage=one_stage,
        one_stage_known=plan.degrees is None and (differ or not instance.cost.counts_ops),
        alone_on=alone_on,
        crossing=Crossing(len(plan.crossing), instance.tensor_count, sum(sizes)),
        coverage=plan.coverage,
        assumptions=assumptions,
        devices=_devices_of_plan(plan),
        limit=plan.goal.limit,
        frontier=[
            ShownPoint(
                point.bottleneck,
                point.latency,
                point.lower.value,
                str(point.lower.tier),
                point.partition.k - len(point.partition.empty_stages),
            )
            for point in plan.frontier
        ],
        most_used=instance.most_used,
        serving=plan.serving,
        fewest_for=None if plan.fewest is None else plan.fewest.max_bottleneck,
        first_token=None if plan.first_token is None else plan.first_token.to_document(plan.partition, None),
        capacity=None if plan.capacity is None else plan.capacity.to_document(),
    )


def shown_document(document: Mapping[str, Any], assumptions: Sequence[str] = ()) -> ShownPlan:
    """Return what is shown of a well-formed plan's document, whose figures nobody has checked."""
    from mtpp.machine.device import Device

    system = Device.from_document(document["system"])
    objective = document.get("objective", BOTTLENECK_OBJECTIVE)
    stages, bound = document["stages"], document["lower_bound"]
    devices = _devices_of(document)
    known = "degrees" not in document and (system.peak == "reserve" or not system.limits_memory)
    listed = {Device.from_figures(one) for one in document["machine"]["devices"]} if devices else set()
    known = known and len(listed) <= 1 and not any(device.stage_times_ps for device in listed)
    work, params = (sum(row[figure] for row in stages) for figure in ("work", "param_bytes"))
    params = document["model"].get("param_bytes", params)  # where stages share weights, the sum is more
    one_stage, alone_on = _one_stage(system, work, params, system.activation_reserve_bytes) if known else None, ""
    if "one_device" in document:
        known, one_stage = True, None
        if (one := document["one_device"]) is not None:
            one_stage, alone_on = one["cost"], document["machine"]["devices"][one["index"]]["name"]
    shared = document.get("crossing")
    return ShownPlan(
        name=document["model"]["name"],
        ops=document["model"]["ops"],
        tensors=document["model"]["tensors"],
        time_unit=document["time_unit"],
        ticks_per_unit=document["ticks_per_unit"],
        system=system,
        crossing=None if shared is None else Crossing(shared["tensors"], document["model"]["tensors"], shared["bytes"]),
        stages=stages,
        certificate=Certificate(
            document[objective],
            LowerBound(bound["value"], bound["method"], Tier(bound["tier"]), bound["proof"]),
            objective,
        ),
        bottleneck=document["bottleneck"],
        found_by=document.get("found_by", document["algorithm"]),
        one_stage=one_stage,
        alone_on=alone_on,
        one_stage_known=known,
        assumptions=assumptions,
        claimed=True,
        devices=devices,
        limit=document.get("max_bottleneck", document.get("max_latency")),
        frontier=[
            ShownPoint(
                point["bottleneck"],
                point["latency"],
                point["lower_bound"]["value"],
                point["lower_bound"]["tier"],
                len(set(point["assignment"].values())),
            )
            for point in document.get("frontier", ())
        ],
        most_used=document["k"],
        serving=document["model"].get("serving", {}),
        fewest_for=document["fewest_devices"]["max_bottleneck"] if "fewest_devices" in document else None,
        first_token=document.get("first_token"),
        capacity=document.get("capacity"),
    )


def _devices_of_plan(plan: Plan) -> list[Device] | None:
    """Return the device of each stage of a plan for a machine; with replicas the one with the least memory."""
    machine = plan.instance.machine
    if isinstance(plan.partition, ReplicatedPartition):
        if not machine.groups[0].name:
            return None
        return [_tightest([machine.devices[j] for j in devices]) for devices in plan.partition.replicas]
    return None if plan.devices is None else list(machine.devices)


def _tightest(devices: Sequence[Device]) -> Device:
    return min(devices, key=lambda one: inf if one.memory_bytes is None else one.memory_bytes)


def _devices_of(document: Mapping[str, Any]) -> list[Device] | None:
    """Return the device of each stage of a plan for a machine."""
    from mtpp.machine.device import Device

    if "machine" not in document:
        return None
    return devices_of_stages(document["stages"], [Device.from_figures(one) for one in document["machine"]["devices"]])


def devices_of_stages(stages: Sequence[Mapping[str, Any]], listed: Sequence[Device]) -> list[Device]:
    """Return the device of each stage of a document; with replicas the one with the least memory."""
    return [
        _tightest([listed[one["index"]] for one in row["devices"]])
        if "devices" in row
        else listed[row["device"]["index"]]
        for row in stages
    ]


def in_any_phase(stages: Sequence[Mapping[str, Any]], first_token: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return stages with the larger working memory of two phases, where a plan has a first token besides."""
    if first_token is None:
        return [dict(row) for row in stages]
    pairs = zip(stages, first_token["stages"], strict=True)
    return [{**row, "peak_bytes": max(row["peak_bytes"], first["peak_bytes"])} for row, first in pairs]


class FullestStage(NamedTuple):
    """Stage with the largest share of its memory limit, its bytes, and that limit; None: without one."""

    stage: int
    held: int
    limit: int | None


def fullest_stage(stages: Sequence[Mapping[str, Any]], devices: Sequence[Device]) -> FullestStage:
    """Return the stage of a document with the largest share of its device's limit.

    Where no stage with a limit holds anything and another does, it is the one that holds most.
    """
    held = [row["param_bytes"] + row.get("state_bytes", 0) + row["peak_bytes"] for row in stages]
    rows = [FullestStage(s, size, one.memory_bytes) for s, (size, one) in enumerate(zip(held, devices, strict=True))]
    limited = [row for row in rows if row.limit is not None]
    if limited and (any(row.held for row in limited) or not any(held)):
        return max(limited, key=lambda row: row.held / row.limit if row.limit else row.held)
    return max(rows, key=lambda row: row.held)


def _name_of_device(plan: Plan, number: int) -> str:
    """Return the name of a device by its number in the machine's list."""
    names = plan.instance.machine.names
    return names[number if plan.devices is None else plan.devices.index(number)]


def _one_stage(system: Device, work: int, params: int, peak: int) -> int | None:
    """Return the ticks of a whole graph in one stage; None if the stage memory rules that out."""
    limit, held = system.memory_bytes, params + peak
    return None if limit is not None and held > limit else work + system.overflow_ps(held)
