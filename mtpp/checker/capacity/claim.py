"""Capacity of devices for a language model: stages that fit at a value, and none that fit at the next.

Weights, caches and working memory of a range of layers never shrink as it grows, nor as context or sequences do: layers
only add weights, caches and tensors that live somewhere, and what is kept to the end of a range stays live in a longer
one at least as long. So the furthest stop that fits from a layer lets all nearer ones fit, and a value at which nothing
fits rules out all higher ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from mtpp.checker.capacity.layer_columns import LayerColumns, LayerSizes, Load
from mtpp.checker.capacity.shape import CAPACITY, CONTEXT, PREFILL
from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph, model_in_ticks
from mtpp.checker.report import OUT_OF_TIME, Check, Interrupts

_VALUE, _COLUMNS, _NEXT = ROWS = (CAPACITY, "memory of layers", "next value")
_ANY_RATE = 10**18
"""Bytes per second of a link: times of tensors do not matter."""

LayersDue = Mapping[tuple[int, str, int], Any]
"""Graphs of the model, as documents, by degree, phase and value of the objective."""


def check_capacity(
    plan: Mapping[str, Any], graph: TickGraph, due: LayersDue | None, ended_by: Interrupts, *, hindered: str = ""
) -> list[Check]:
    """Return the rows on a capacity; none where the plan has none.

    Parameters
    ----------
    due
        Graphs that the model has at the value and at the next one; None where there is no model beside the plan.
    hindered
        Reason not to check anything.
    """
    if CAPACITY not in plan:
        return []
    claim, rows = _Claim(plan, graph), list[Check]()
    try:
        if not hindered:
            rows.append(_row(_VALUE, claim.fault_in_value(), claim.said))
            rows.append(_row(_COLUMNS, claim.fault_in_columns(due), claim.columns_said(due)))
            wrong = any(row.passed is False for row in rows)
            rows.append(Check(_NEXT, None, "its memory is wrong") if wrong else claim.next_row())
    except ended_by:
        pass
    return [*rows, *(Check(name, None, hindered or OUT_OF_TIME) for name in ROWS[len(rows) :])]


def capacity_words(plan: Mapping[str, Any]) -> str:
    """Say what a capacity proves, as the sentence on a plan goes on; nothing where the plan has none."""
    if CAPACITY not in plan:
        return ""
    value, of_context = plan[CAPACITY]["value"], plan[CAPACITY]["objective"] == CONTEXT
    if plan[CAPACITY]["next_infeasible"] is None:
        return f"; any number of {'tokens' if of_context else 'sequences'} fits"
    return f"; no stages fit with {value + 1} {'tokens' if of_context else 'sequences'}"


def _row(name: str, fault: str | None, said: str) -> Check:
    return Check(name, fault is None, fault or said)


@dataclass(frozen=True)
class _Class:
    """Devices with the same figures: limit, reserve of working memory or None for layers in order, and degrees."""

    limit: int | None
    reserve: int | None
    degrees: tuple[int, ...]


class _Claim:
    """A plan's claim on capacity."""

    def __init__(self, plan: Mapping[str, Any], graph: TickGraph) -> None:
        self.plan, self.graph = plan, graph
        self.stated: Mapping[str, Any] = plan[CAPACITY]
        self.value: int = self.stated["value"]
        self.following: int | None = self.stated["next_infeasible"]
        self.columns = {(row["degree"], row["phase"]): LayerColumns(row) for row in self.stated["layers"]}

    @property
    def said(self) -> str:
        """The capacity in words."""
        more = "" if self.following is not None else " or any more"
        of = f"of {counted(self.stated['sequences'], 'sequence')}"
        if self.stated["objective"] == CONTEXT:
            return f"stages fit at {self.value} tokens{more} {of}"
        return f"stages fit at {counted(self.value, 'sequence')}{more} of {self.stated['context']} tokens"

    def load(self, value: int) -> Load:
        """Return the load at a value of the objective."""
        of_context = self.stated["objective"] == CONTEXT
        context = value if of_context else self.stated["context"]
        sequences = self.stated["sequences"] if of_context else value
        batch = self.stated["batch"]
        return Load(context, sequences, -(-sequences // self.plan["k"]) if batch is None else min(batch, sequences))

    @cached_property
    def devices(self) -> list[_Class]:
        """Figures of each device in order."""
        machine = self.plan.get("machine")
        rows = [self.plan["system"]] * self.plan["k"] if machine is None else machine["devices"]
        considered = self.plan.get("degrees", [1])
        return [
            _Class(
                row.get("stage_memory_bytes"),
                row["activation_reserve_bytes"] if row["peak"] == "reserve" else None,
                tuple(degree for degree in row.get("tensor_parallel", (1,)) if degree in considered),
            )
            for row in rows
        ]

    @property
    def free(self) -> bool:
        """Whether it is all the same which devices of a class stages stand on."""
        machine = self.plan.get("machine")
        return len(set(self.devices)) == 1 or (machine is not None and machine["order"] == "free")

    @cached_property
    def phases(self) -> list[str]:
        """Phases that stages have to hold."""
        return sorted({phase for _, phase in self.columns})

    def fault_in_value(self) -> str | None:
        """Return the first thing that is wrong with the value, or with the stages at it."""
        own, load = self.stated, self.load(self.value)
        dims = self.plan["model"]["dims"]
        key = "prompt" if "prompt" in dims else CONTEXT
        served = self.plan["system"].get("sequences", 1)
        if own["value"] != own[own["objective"]]:
            return f"the plan says {own[own['objective']]} beside a value of {self.value}"
        for name, stated, due in (
            (f"a {key}", dims.get(key), load.context),
            ("sequences", served, load.sequences),
            ("a batch", dims.get("batch", 1), load.batch),
        ):
            if stated != due:
                return f"the plan is for {name} of {stated}, the capacity for {due}"
        if self.following not in (None, self.value + 1):
            return f"the next value is {self.value + 1}, not {self.following}"
        missing = next(
            (
                (degree, phase)
                for phase in self.phases
                for device in self.devices
                for degree in device.degrees
                if (degree, phase) not in self.columns
            ),
            None,
        )
        if missing is not None or not self.phases:
            return "the layers have no memory at some degree" if missing else "the layers have no memory"
        return self._fault_in_stages(load)

    def _fault_in_stages(self, load: Load) -> str | None:
        n, assignment = self.graph.op_count, self.plan["assignment"]
        if any(columns.count != n for columns in self.columns.values()):
            return f"the memory is not that of {n} layers"
        stage_of = [assignment.get(name, -1) for name in self.graph.op_names]
        if stage_of != sorted(stage_of) or not all(0 <= stage < len(self.plan["stages"]) for stage in stage_of):
            return "its stages are no consecutive layers"
        for stage in sorted(set(stage_of)):
            row = self.plan["stages"][stage]
            device = self.devices[row.get("device", {}).get("index", stage)]
            start = stage_of.index(stage)
            stop = start + stage_of.count(stage)
            degree = row.get("tensor_parallel", 1)
            if degree not in device.degrees:
                return f"stage {stage} has {degree} GPUs, its device does not"
            need = max(_need(self.columns[degree, phase].at(load), device, start, stop) for phase in self.phases)
            if device.limit is not None and need > device.limit:
                return f"stage {stage} needs {need} bytes at {self.value}, the limit is {device.limit}"
        return None

    def fault_in_columns(self, due: LayersDue | None) -> str | None:
        """Return the first thing in which the columns differ from the graph, or from the model at either value."""
        load = self.load(self.value)
        phase = PREFILL if "prompt" in self.plan["model"]["dims"] else "decode"
        if (1, phase) in self.columns:
            fault = self.columns[1, phase].difference(self.graph, load)
            if fault is not None:
                return fault
        for (degree, phase, value), document in (due or {}).items():
            if (degree, phase) not in self.columns:
                return f"there is no memory for {phase} at degree {degree}"
            graph = model_in_ticks(document, _ANY_RATE, self.plan["k"])
            fault = self.columns[degree, phase].difference(graph, self.load(value))
            if fault is not None:
                return f"{fault} at {value}, {phase}, degree {degree}"
        return None

    def columns_said(self, due: LayersDue | None) -> str:
        """Return the columns in words."""
        held = "the graph's at this value; give the model to hold them to it at the next one"
        return f"{counted(len(self.columns), 'column')}, {held if due is None else 'the model has them at both values'}"

    def next_row(self) -> Check:
        """Return the row on the next value: no stages fit, or nothing that grows fits any device."""
        if self.following is None:
            fault = self._unsettled()
            return _row(_NEXT, fault, "nothing that grows with it fits any device: higher values change nothing")
        least = self.plan["k"] if self.stated.get("none_empty") else 1
        considered = self.plan.get("degrees", [1])
        parts = [[degree] for degree in considered] if self.plan.get("one_degree") else [considered]
        reaches = (self._reach(self.load(self.following), degrees) for degrees in parts)
        if any(_any_stages(reach, self.devices, self.plan["k"], least, free=self.free) for reach in reaches):
            return Check(_NEXT, False, f"stages fit at {self.following}, too")
        return Check(_NEXT, True, f"no stages fit at {self.following}: all cuts and devices were looked at")

    def _reach(self, load: Load, degrees: Sequence[int]) -> Mapping[_Class, list[int]]:
        """Return for each kind of device the stops of the stages from each layer that fit at some degrees, as bits."""
        sizes = {key: columns.at(load) for key, columns in self.columns.items()}
        cuts = self._cuts()
        found = {}
        for device in set(self.devices):
            own = [degree for degree in device.degrees if degree in degrees]
            ways = [[sizes[degree, phase] for phase in self.phases] for degree in own]
            found[device] = _stops(ways, device, cuts)
        return found

    def _cuts(self) -> list[bool]:
        """Return whether a stage may end at each place: no group of ops is cut there."""
        number = {name: v for v, name in enumerate(self.graph.op_names)}
        cuts = [True] * (self.graph.op_count + 1)
        for group in self.plan["together"]:
            members = [number[name] for name in group if name in number]
            for place in range(min(members, default=0) + 1, max(members, default=0) + 1):
                cuts[place] = False
        return cuts

    def _unsettled(self) -> str | None:
        """Return a layer that grows with the value and still fits a device; None where there is none."""
        load, of_context = self.load(self.value), self.stated["objective"] == CONTEXT
        limit = max((device.limit for device in self.devices if device.limit is not None), default=-1)
        for columns in self.columns.values():
            caches, passing = columns.caches(load.context), columns.passing(load)
            for i, (per_token, window, per_source_token, _) in enumerate(columns.row["caches"]):
                if window is not None and of_context and window > load.context and per_token:
                    return f"the window of layer {i} is not full at {self.value}"
                grows = (per_token and window is None) or per_source_token if of_context else caches[i]
                if grows and load.sequences * caches[i] <= limit:
                    return f"the cache of layer {i} grows beyond {self.value}"
            for size, (per_token, rest, _, _) in zip(passing, columns.row["passing"], strict=True):
                grows = per_token and columns.row["phase"] == PREFILL if of_context else per_token or rest
                if grows and (of_context or self._batch_grows()) and size <= limit:
                    return f"working memory grows beyond {self.value}"
        return None

    def _batch_grows(self) -> bool:
        batch = self.stated["batch"]
        return batch is None or batch > self.value


def _need(sizes: LayerSizes, device: _Class, start: int, stop: int) -> int:
    return sizes.kept(start, stop) + (sizes.peak(start, stop) if device.reserve is None else device.reserve)


def _stops(ways: Sequence[Sequence[LayerSizes]], device: _Class, cuts: Sequence[bool]) -> list[int]:
    """Return for each layer the stops of stages from it that fit in any of some ways, as bits.

    Parameters
    ----------
    ways
        Sizes at a degree, of each phase.
    """
    n = len(cuts) - 1
    found = []
    furthest = [0] * len(ways)
    for start in range(n):
        bits = 0
        for i, phases in enumerate(ways):
            stop = max(furthest[i], start)
            while stop < n and (
                device.limit is None or all(_need(sizes, device, start, stop + 1) <= device.limit for sizes in phases)
            ):
                stop += 1
            furthest[i] = stop
            bits |= sum(1 << place for place in range(start + 1, stop + 1) if cuts[place])
        found.append(bits)
    return found


def _any_stages(
    reach: Mapping[_Class, Sequence[int]], devices: Sequence[_Class], most: int, least: int, *, free: bool
) -> bool:
    """Tell whether stages on from *least* to *most* devices cover all layers; all cuts and devices are looked at."""
    n = len(next(iter(reach.values())))
    sets = _by_counts(reach, devices, most) if free else _by_order(reach, devices, most)
    return any(places >> n & 1 for used, places in sets if least <= used <= most)


def _by_order(reach: Mapping[_Class, Sequence[int]], devices: Iterable[_Class], most: int) -> Iterable[tuple[int, int]]:
    """Yield numbers of used devices, in their order, with the places that they reach, as bits."""
    places = [1] + [0] * most
    for device in devices:
        for used in range(most, 0, -1):
            places[used] |= _step(reach[device], places[used - 1])
    return enumerate(places)


def _by_counts(
    reach: Mapping[_Class, Sequence[int]], devices: Iterable[_Class], most: int
) -> Iterable[tuple[int, int]]:
    """Yield the same of devices in any order, for each number of devices of each kind."""
    count = Counter(devices)
    kinds = list(count)
    reached = {(0,) * len(kinds): 1}
    for state in product(*(range(count[kind] + 1) for kind in kinds)):
        if not 0 < sum(state) <= most:
            continue
        places = 0
        for i, kind in enumerate(kinds):
            if state[i]:
                places |= _step(reach[kind], reached[(*state[:i], state[i] - 1, *state[i + 1 :])])
        reached[state] = places
        yield sum(state), places


def _step(stops: Sequence[int], places: int) -> int:
    """Return the places that one more stage from any of some places ends at."""
    found = 0
    for start, ends in enumerate(stops):
        if places >> start & 1:
            found |= ends
    return found
