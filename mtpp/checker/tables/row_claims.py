"""Claims that a row of a table of certificates makes, on equal devices or on those of its machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtpp.checker.bounds.device_room import check_device_room
from mtpp.checker.claim import BoundClaim, together_classes
from mtpp.checker.devices.replicas import REPLICAS, DeviceList, devices_row
from mtpp.checker.facts import counted
from mtpp.checker.goal import PlanGoal, claim_of_bound
from mtpp.checker.graph import TickGraph, ceil_div
from mtpp.checker.machine import PlacedGraph, Times, machine_rows, times_row
from mtpp.checker.report import Check
from mtpp.document_shape import Path

SIMPLE = "simple"

_DEVICE_ROWS = 1
"""Rows at the end of those of a machine that are about the devices of stages."""


@dataclass(frozen=True)
class MachineDue:
    """Values that a row on a machine is held to.

    Attributes
    ----------
    machine
        In the form of documents; None: the row may choose.
    times, measured
        As :func:`~mtpp.checker.plan.verify_plan` takes them.
    """

    machine: Mapping[str, Any] | None = None
    times: Sequence[Times | None] | None = None
    measured: Sequence[Times | None] | None = None


FREE_TO_CHOOSE = MachineDue()


@dataclass(frozen=True)
class RowClaims:
    """A row with its graph.

    Attributes
    ----------
    graph
        In ticks; on a machine with the least ticks of any device.
    placed
        The graph on each device of the row's machine; None where it has none.
    goal
        Objective, and the limit on the other figure.
    device_list
        Devices of stages that may stand on several; None: each has one.
    """

    row: Mapping[str, Any]
    graph: TickGraph
    placed: PlacedGraph | None
    goal: PlanGoal
    device_list: DeviceList | None

    @classmethod
    def of(cls, row: Mapping[str, Any], graph: TickGraph, placed: PlacedGraph | None, path: Path) -> RowClaims:
        """Return the claims of a row at *path*.

        Raises
        ------
        InputError
            If its goal is none.
        """
        replicated = DeviceList.of(row, graph, placed) if REPLICAS in row else None
        return cls(row, graph, placed, PlanGoal.of(row, path), replicated)

    def machine_checks(self, due: MachineDue) -> list[Check]:
        """Return the rows of the report on the machine, and on the devices of stages where the row has stages."""
        own = self._devices_rows()
        if self.placed is None:
            said = "the row is for equal devices, it has to be for a machine"
            return own if due.machine is None else [Check("machine", False, said), *own]
        machine = self.placed.machine
        rows = machine_rows(self.as_plan(), self.placed, due.machine)
        if self.device_list is None:
            rows[-_DEVICE_ROWS:] = own or (rows[-_DEVICE_ROWS:] if "upper" in self.row else [])
        else:
            rows += own
        return [*rows, *times_row(machine, due.times, due.measured)]

    def _devices_rows(self) -> list[Check]:
        """Return the row on the devices of stages with several, or on none being said."""
        listed = self.placed is not None or self.device_list is not None
        if listed and "upper" in self.row and "devices" not in self.row:
            return [Check("devices", False, "the row does not say on which devices its stages stand")]
        if self.device_list is None or "upper" not in self.row:
            return []
        return [devices_row(self.as_plan(), self.device_list.names, self.device_list.order)]

    def claim(self, method: str, value: int, proof: Any, path: Path, name: str) -> BoundClaim | Check:
        """Return the claim of a bound, or the row called *name* of a proof that is for other devices."""
        bound = {"method": method, "value": value, "proof": proof}
        devices = self.device_list or self.placed
        found = claim_of_bound(self.as_plan(), self.graph, devices, bound, self.goal, path)
        return replace(found, name=name) if isinstance(found, Check) else found

    def check_simple(self, value: int) -> tuple[bool, str]:
        """Tell whether the simple bound is right: that of the envelope, or of the room that devices have for work."""
        k, groups = self.row["k"], self.row.get("together", [])
        graph = self.graph if self.placed is None else self.placed.envelope
        due = simple_bound(graph, k, groups)
        # One of all partitions holds for fewer too.
        if value in (due, simple_bound(graph, k, [])):
            return True, f"simple: {value} ticks"
        if self.placed is None or self.placed.uniform or value < due:
            return False, f"simple: the row says {value} ticks, it is {due}"
        if not self._room_holds(value):
            return False, f"simple: within {value - 1} ticks, {counted(k, 'device')} may hold all work"
        if self._room_holds(value + 1):
            return False, f"simple: the row says {value} ticks, the room of the devices shows more"
        return True, f"simple: {value} ticks"

    def _room_holds(self, value: int) -> bool:
        """Tell whether the devices are shown by any measure not to hold all work in less than so many ticks."""
        assert self.placed is not None
        order = self.placed.machine["order"]
        for measure in range(len(self.placed.by_class)):
            proof = {"rule": "device-room", "order": order, "cutoff": value, "k": self.row["k"], "measure": measure}
            claim = self.claim(SIMPLE, value, proof, (), SIMPLE)
            if isinstance(claim, BoundClaim) and check_device_room(claim.holding_states())[0]:
                return True
        return False

    def as_plan(self) -> dict[str, Any]:
        """Return the row as a plan states the same."""
        row = self.row
        shared = {key: row[key] for key in ("system", "k", "machine", REPLICAS) if key in row}
        shared["together"] = row.get("together", [])
        names: Sequence[str]
        if self.device_list is not None:
            names = self.device_list.names
        elif self.placed is not None:
            names = [device["name"] for device in self.placed.devices]
        else:
            return shared
        ops = Counter(row.get("assignment", {}).values())
        stages: list[dict[str, Any]] = []
        for s, own in enumerate(row.get("devices", range(len(names)))):
            on = [{"index": i, "name": names[i] if i < len(names) else ""} for i in _numbers(own)]
            stages.append(
                {"index": s, "ops": ops[s], **({"device": on[0]} if isinstance(own, int) else {"devices": on})}
            )
        return {**shared, "stages": stages}


def _numbers(own: int | Sequence[int]) -> Sequence[int]:
    """Return the numbers of a stage's devices, given the one or all."""
    return [own] if isinstance(own, int) else own


def simple_bound(graph: TickGraph, k: int, groups: list[list[str]]) -> int:
    """Return the largest work of ops that share a stage, or the work of an average stage, rounded up."""
    classes = together_classes(graph, groups)
    work = [0] * graph.op_count
    for v, one in enumerate(classes):
        work[one] += graph.work[v]
    return max(max(work), ceil_div(sum(work), k))
