"""Plans and rows of tables as their documents state them: whatever contradicts itself can be shown too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf, log10
from typing import TYPE_CHECKING, Any

from mtpp.checker.facts import factor
from mtpp.inference.cost_columns import CostColumns, Ticks
from mtpp.inference.goal import Goal
from mtpp.inference.model_file import are_modelled
from mtpp.names import BOTTLENECK_OBJECTIVE, LATENCY_OBJECTIVE
from mtpp.units import PICOSECONDS, InTicks, format_picoseconds
from mtpp.views.shown_plan import devices_of_stages, each_cost
from mtpp.wording import counted

if TYPE_CHECKING:
    from mtpp.machine.device import Device
    from mtpp.machine.machine import Machine


def ratio_text(ratio: Fraction | float | None) -> str:
    """Write a ratio as the verifier does: with six digits, rounded up, so that it is proven as well."""
    return "none" if ratio is None else "∞" if ratio == inf else factor(ratio)


_DIGITS, _LEAST_DIGITS, _MORE_DIGITS = 4, 3, 2
"""Of the largest time, as :func:`mtpp.units.format_picoseconds` writes it, of the least, and more of it at most."""


def page_costs(ticks: Ticks, costs: Iterable[int]) -> CostColumns:
    """Return unit and digits of costs, on axes, in hints and in tables alike.

    The largest is written as in figures of a page, the least that is above zero in three digits if two more than that
    do.
    """
    every = sorted(cost for cost in costs if cost > 0) or [0]
    if not ticks.timed:
        return CostColumns.of(ticks, every[-1])
    number, unit = format_picoseconds(every[-1]).split(" ")
    size = Fraction(PICOSECONDS[unit])
    if size == 1:
        return CostColumns(unit, size, 0)
    digits = max(0, _DIGITS - len(number.partition(".")[0]))
    least = _LEAST_DIGITS - 1 - floor(log10(every[0] / size))
    return CostColumns(unit, size, min(max(digits, least), digits + _MORE_DIGITS))


def cost_text(ticks: int, costs: CostColumns) -> str:
    """Write a cost with its unit."""
    return f"{costs.text(ticks)} {costs.unit}".rstrip()


@dataclass(frozen=True)
class Stated(InTicks):
    """What has a bottleneck and a lower bound in ticks, either of which may be false.

    Attributes
    ----------
    upper
        Bottleneck; None where there is no partition.
    ratio, optimal
        As stated, whatever the two figures say.
    """

    k: int
    time_unit: str
    ticks_per_unit: int
    upper: int | None
    lower: int
    method: str
    tier: str
    ratio: float | None
    optimal: bool

    def describe(self, ticks: float | None) -> str:
        """Write a number of ticks for people: a time with its unit, or a plain number for an abstract graph."""
        return "–" if ticks is None else super().describe(ticks)


@dataclass(frozen=True)
class StatedPlan(Stated):
    """Figures of a well-formed plan.

    Attributes
    ----------
    stages
        One row per stage, as the document has them.
    machine
        Devices in order, of which *system* is the envelope; None where all are equal.
    objective, limit
        What the lower bound is of, and the most that the other one of bottleneck and latency may be; None: anything.
    frontier
        Points as the document has them.
    speed_up
        Over the whole graph on the fastest device that holds it; None where none does, or the document does not say it.
    modelled
        Whether figures of devices model the costs of ops.
    """

    name: str
    stages: Sequence[Mapping[str, Any]]
    system: Device
    machine: Machine | None = None
    objective: str = BOTTLENECK_OBJECTIVE
    limit: int | None = None
    frontier: Sequence[Mapping[str, Any]] = ()
    speed_up: float | None = None
    modelled: bool = True

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> StatedPlan:
        """Return what a document says."""
        from mtpp.machine.device import Device
        from mtpp.machine.machine import Machine

        bound = document["lower_bound"]
        return cls(
            k=document["k"],
            time_unit=document["time_unit"],
            ticks_per_unit=document["ticks_per_unit"],
            upper=document["bottleneck"],
            lower=bound["value"],
            method=bound["method"],
            tier=bound["tier"],
            ratio=_float(document["ratio"]),
            optimal=document["optimal"],
            name=document["model"]["name"],
            stages=document["stages"],
            system=Device.from_document(document["system"]),
            machine=Machine.from_document(document["machine"]) if "machine" in document else None,
            objective=document.get("objective", BOTTLENECK_OBJECTIVE),
            limit=document.get("max_bottleneck", document.get("max_latency")),
            speed_up=_float(document.get("speed_up")),
            frontier=document.get("frontier", ()),
            modelled=are_modelled(document["model"]),
        )

    @property
    def bottleneck(self) -> int:
        """The stated bottleneck."""
        assert self.upper is not None
        return self.upper

    @property
    def devices(self) -> list[Device]:
        """Device of each stage; with replicas the one with the least memory."""
        if self.machine is None:
            return [self.system] * len(self.stages)
        return devices_of_stages(self.stages, self.machine.devices)

    @property
    def latency(self) -> int:
        """Sum of the stages' costs, of one on several devices as the slowest takes for it."""
        return sum(max(each_cost(row)) for row in self.stages)

    @property
    def replicated(self) -> bool:
        """Whether stages may stand on several devices."""
        return any("devices" in row for row in self.stages)

    @property
    def on_devices(self) -> bool:
        """Whether the stages name their devices."""
        return any("device" in row or "devices" in row for row in self.stages)

    @property
    def seats(self) -> str:
        """Number of stages, or of devices where they have names, in words."""
        return counted(self.k, "device" if self.on_devices else "stage")

    @property
    def devices_differ(self) -> bool:
        """Whether the devices of the machine are not all equal, so that no time is that of one stage alone."""
        return self.machine is not None and len(self.machine.classes) > 1

    @property
    def of_latency(self) -> bool:
        """Whether the latency is the objective."""
        return self.objective == LATENCY_OBJECTIVE

    @property
    def slowest(self) -> int | None:
        """The most expensive stage, the first of several; None where no stage is listed."""
        costs = [row["cost"] for row in self.stages]
        return self.stages[costs.index(max(costs))]["index"] if costs else None

    @property
    def empty_count(self) -> int:
        """Number of stages without ops."""
        return sum(not row["ops"] for row in self.stages)


@dataclass(frozen=True)
class StatedBound:
    """A bound that was tried, in ticks; None: it proved nothing. *solved*: more time would not raise it."""

    value: int | None
    solved: bool


@dataclass(frozen=True)
class StatedRow(Stated):
    """Figures of a row of a well-formed table.

    Attributes
    ----------
    found_by
        Algorithm that found the partition, if there is one.
    bounds
        Those that were tried, by name, in that order.
    seconds
        In total; None where the row does not say.
    goal, replicas
        Objective with the limit on the other figure, and whether stages may stand on several devices.
    machine
        Devices in order, as the document has them, of which *system* is the envelope; None where all are equal.
    modelled
        Whether figures of devices model the costs of ops.
    """

    model: str
    path: str
    sha256: str
    ops: int
    tensors: int
    dims: Mapping[str, int]
    system: Device
    found_by: str | None
    bounds: Mapping[str, StatedBound]
    seconds: float | None
    goal: Goal = field(default=Goal())
    replicas: bool = False
    machine: Mapping[str, Any] | None = None
    modelled: bool = True

    @property
    def objective(self) -> str:
        """``bottleneck`` or ``latency``."""
        return self.goal.objective

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> StatedRow:
        """Return what a row says."""
        from mtpp.machine.device import Device

        return cls(
            **{key: row[key] for key in ("k", "time_unit", "ticks_per_unit", "model", "path", "sha256", "ops")},
            tensors=row["tensors"],
            dims=row["dims"],
            system=Device.from_document(row["system"]),
            upper=row.get("upper"),
            lower=row["lower"],
            method=row["lower_method"],
            tier=row["tier"],
            ratio=_float(row.get("ratio")),
            optimal=row.get("optimal", False),
            found_by=row.get("upper_algorithm"),
            bounds={name: StatedBound(value, name in row["solved"]) for name, value in row["bounds"].items()},
            seconds=_float(row["seconds"].get("total")),
            goal=Goal.from_document(row),
            replicas=row.get("replicas", False),
            machine=row.get("machine"),
            modelled=are_modelled(row),
        )


def _float(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:  # a document may claim anything
        return inf
