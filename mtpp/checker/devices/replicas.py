"""Plans whose stages stand on several devices: the devices of each stage, and its figures on them.

Each device j of a stage S holds it whole and takes f_j(S); requests take turns. The stage costs ⌈1 / Σ 1/f_j(S)⌉, and
nothing if some f_j(S) is 0. Its work, transfers, overflow and memory are stated as they are on its first device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtpp.checker.claim import PLAN_PROOF, BoundClaim
from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph
from mtpp.checker.machine import STAGE_TIMES, PlacedGraph
from mtpp.checker.report import Check
from mtpp.checker.stages import StageFigures, shared_cost, stage_figures
from mtpp.document_shape import Path

REPLICAS = "replicas"
"""Key of plans whose stages may stand on several devices."""

_REPLICATED = "replicated"
"""Key of the proofs of their bounds."""

_NAME = "devices"

STAGE_TIMES_ROW = "stage times"


@dataclass(frozen=True)
class DeviceList:
    """Devices of a plan with replicas.

    Attributes
    ----------
    names
        Of each device, in the list's order.
    class_of, by_class
        Class of each device; graph in ticks and system of each class.
    order
        ``"fixed"`` or ``"free"``.
    devices
        A device of each class, as the plan states it.
    equal
        Whether proofs are of k equal devices in order.
    """

    names: Sequence[str]
    class_of: Sequence[int]
    by_class: Sequence[tuple[TickGraph, dict[str, Any]]]
    order: str
    devices: Sequence[Mapping[str, Any]]
    equal: bool

    @classmethod
    def of(cls, plan: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None) -> DeviceList:
        """Return the devices of the plan's machine, or k equal ones."""
        if placed is None:
            system = {"link_speed": "1", **plan["system"]}
            return cls(
                [f"d{i}" for i in range(plan["k"])], [0] * plan["k"], [(graph, system)], "fixed", [system], equal=True
            )
        names = [device["name"] for device in placed.devices]
        first = [placed.devices[placed.class_of.index(c)] for c in range(len(placed.by_class))]
        return cls(names, placed.class_of, placed.by_class, placed.machine["order"], first, placed.uniform)

    def claim(
        self, plan: Mapping[str, Any], graph: TickGraph, bound: Mapping[str, Any], path: Path = PLAN_PROOF
    ) -> BoundClaim:
        """Return the claim of a plan's bound, whose proof stands at *path*: on its devices, or on k equal ones."""
        class_of = [0] * plan["k"] if self.equal else self.class_of
        asked = (plan["k"], plan["together"], bound["value"], bound["proof"], path)
        return BoundClaim(graph, dict(plan["system"]), *asked, self.by_class, class_of)

    def fault(self, method: str, proof: Any) -> str | None:
        """Return in what the proof of a bound by a method is not of these devices, None if it is."""
        if method not in ("simple", "downset"):
            return "it does not bound stages on several devices"
        if not isinstance(proof, dict) or proof.get(_REPLICATED) is not True:
            return "its proof is not of stages on several devices"
        due = "fixed" if self.equal else self.order
        return None if proof.get("order") == due else "its proof is not for the order of devices"


def devices_row(plan: Mapping[str, Any], names: Sequence[str], order: str) -> Check:
    """Check that each stage has devices of the list that no other one has, in its order if that is fixed."""
    stages = plan["stages"]
    busy = [s for s, stage in enumerate(stages) if stage["ops"]]
    if busy != list(range(len(busy))):
        return Check(_NAME, False, "stages with ops do not come first")
    numbers: list[int] = []
    for s, stage in enumerate(stages):
        mine = [device["index"] for device in stage["devices"]]
        for device in stage["devices"]:
            if not 0 <= device["index"] < len(names):
                return Check(_NAME, False, f"stage {s} stands on no device of the list")
            due = names[device["index"]]
            if device["name"] != due:
                return Check(_NAME, False, f"stage {s}: device {device['index']} is {due!r}, not {device['name']!r}")
        if not mine or mine != sorted(set(mine)):
            return Check(_NAME, False, f"stage {s} has no devices, or not in the order of the list")
        if len(mine) > 1 and s not in busy:
            return Check(_NAME, False, f"stage {s} has several devices and no ops")
        numbers += mine
    if "machine" in plan and plan["machine"]["transport"] != "direct":
        return Check(_NAME, False, f"stages on several devices do not go with {plan['machine']['transport']}")
    if sorted(numbers) != list(range(len(names))):
        return Check(_NAME, False, f"the stages do not have each of {counted(len(names), 'device')} once")
    used = sum(len(stages[s]["devices"]) for s in busy)
    if plan["k"] > len(names):
        return Check(_NAME, False, f"k is {plan['k']}, there are {counted(len(names), 'device')}")
    if used > plan["k"]:
        return Check(_NAME, False, f"{counted(used, 'device')} have ops, k is {plan['k']}")
    if order == "fixed" and numbers[:used] != sorted(numbers[:used]):
        return Check(_NAME, False, "the order is fixed, and stages do not stand in the order of the devices")
    if numbers[used:] != sorted(numbers[used:]):
        return Check(_NAME, False, "devices without ops are not in order")
    return Check(_NAME, True, f"{counted(len(busy), 'stage')} on {counted(used, 'device')} of {len(names)}")


@dataclass(frozen=True)
class ReplicatedStages:
    """Figures of the stages of a plan with replicas.

    Attributes
    ----------
    stages
        Of each stage with ops on its first device, with the cost of all its devices together.
    each
        Cost of each stage on each of its devices; None where the stage exceeds its memory.
    needs
        Of each stage and device: bytes needed, and the limit.
    lengths
        Of each stage, on devices with times of stages: its ops, and the most that there is a time for.
    """

    stages: Mapping[int, StageFigures]
    each: Sequence[Sequence[int | None]]
    needs: Sequence[tuple[int, int, int | None]]
    lengths: Sequence[tuple[int, int, int]]

    @classmethod
    def of(cls, plan: Mapping[str, Any], stage_of: list[int], devices: DeviceList) -> ReplicatedStages:
        """Add up all stages on devices of each class."""
        system = plan["system"]
        rows = [
            stage_figures(graph, stage_of, system, [(graph, device)] * len(plan["stages"]))
            for (graph, _), device in zip(devices.by_class, devices.devices, strict=True)
        ]
        stages: dict[int, StageFigures] = {}
        each: list[list[int | None]] = []
        needs: list[tuple[int, int, int | None]] = []
        lengths: list[tuple[int, int, int]] = []
        for s, stage in enumerate(plan["stages"]):
            classes = [devices.class_of[device["index"]] for device in stage["devices"]]
            if s not in rows[0]:
                each.append([0] * len(classes))
                continue
            for c in dict.fromkeys(classes):
                figures = rows[c][s]
                held = figures.param_bytes + figures.state_bytes + figures.peak_bytes
                needs.append((s, held, devices.devices[c].get("stage_memory_bytes")))
                if STAGE_TIMES in devices.devices[c]:
                    lengths.append((s, figures.ops, len(devices.devices[c][STAGE_TIMES])))
            each.append([rows[c][s].cost for c in classes])
            stages[s] = replace(rows[classes[0]][s], cost=shared_cost([rows[c][s].cost for c in classes]))
        return cls(stages, each, needs, lengths)

    @property
    def latency(self) -> int:
        """Time of one request on an idle pipeline that meets the slowest device of each stage."""
        return sum(max(one or 0 for one in of_stage) for of_stage in self.each)

    def memory_row(self) -> Check:
        """Check that no stage needs more than each of its devices has."""
        over = [(s, need, limit) for s, need, limit in self.needs if limit is not None and need > limit]
        if over:
            s, need, limit = over[0]
            return Check("stage memory", False, f"stage {s} needs {need} bytes, the limit of a device is {limit}")
        return Check("stage memory", True, "no stage needs more than the limit of any of its devices")

    def length_rows(self) -> list[Check]:
        """Check that no stage has more ops than a device of it has times of stages for."""
        over = [(s, ops, most) for s, ops, most in self.lengths if ops > most]
        if over:
            s, ops, most = over[0]
            said = f"stage {s} has {ops} ops, a device of it times for at most {most}"
            return [Check(STAGE_TIMES_ROW, False, said)]
        return [Check(STAGE_TIMES_ROW, True, "each device has a time for so many ops")] if self.lengths else []

    def each_row(self, plan: Mapping[str, Any]) -> Check:
        """Check the cost that a plan states of each stage on each of its devices."""
        name = "costs on devices"
        for s, (stage, mine) in enumerate(zip(plan["stages"], self.each, strict=True)):
            said = [device["cost"] for device in stage["devices"]]
            if said != list(mine):
                return Check(name, False, f"stage {s}: the plan says {said} ticks on its devices, it is {list(mine)}")
        return Check(name, True, "as the devices have them")
