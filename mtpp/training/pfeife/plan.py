"""A plan of Pfeife: split points, a schedule, what an iteration takes, and what is proven of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, approximation_ratio, refuse_above
from mtpp.training.pfeife.line import FASTEST
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.problem import SplitProblem
from mtpp.training.pfeife.schedule import PassSchedule

PLANNER = "pfeife"

LOADS, PATHS, FAMILY, SCHEDULE = "loads", "paths", "family", "schedule"
"""Methods of bounds: from all work and the longest path of ops; from mixtures of paths; a bound on one schedule that
is that on all of them; a bound on all schedules where there is but one."""


@dataclass(frozen=True)
class Baseline:
    """Even split under a schedule that everybody knows, to compare a plan with.

    Attributes
    ----------
    name
        Such as ``1f1b`` or ``interleaved-2``, which has two loops; ``even`` has the plan's own schedule.
    split
        Whose stages take equal parts of the time, as near as whole ops allow.
    iteration
        In ticks.
    fits
        Whether every device has the memory for it.
    """

    name: str
    split: Sequence[int]
    iteration: int
    fits: bool


@dataclass(frozen=True, eq=False)
class SplitPlan:
    """Stages along a line, on devices in turn, and the order of their passes.

    Attributes
    ----------
    schedule, looped, schedule_name
        The passes; their parameters where they are of the looped family; what the user called them, if that.
    split
        0 = p_0 < … < p_S = n.
    iteration
        In ticks.
    lower
        Of the iteration of all splits under this schedule.
    family
        Of the iteration of all splits under all schedules that were asked for.

    Raises
    ------
    InconsistentBound
        If a bound is above what the plan takes, which no correct program can produce.
    """

    problem: SplitProblem
    schedule: PassSchedule
    looped: LoopedSchedule | None
    schedule_name: str | None
    split: Sequence[int]
    iteration: int
    lower: LowerBound
    family: LowerBound
    baselines: Sequence[Baseline]
    stopped: StopReason

    def __post_init__(self) -> None:
        for bound in (self.lower, self.family):
            refuse_above(bound.value, bound.method, f"the plan's {self.iteration}", self.iteration)

    @property
    def optimal(self) -> bool:
        """Whether nothing that was asked for is faster, proven; in any order of ops, as any configurations that fit."""
        closed = self.family.value == self.iteration
        return closed and (self.holds_for_any_order or self.problem.rules.order == "file") and self.runs_fastest

    @property
    def holds_for_any_order(self) -> bool:
        """Whether the bound on all schedules does not depend on the order of ops."""
        methods = (self.family.method, self.lower.method)
        return LOADS in (methods[:1] if self.family.method != SCHEDULE else methods[1:])

    @property
    def runs_fastest(self) -> bool:
        """Whether layers run as the fastest of their configurations that fit, and not as leaner ones."""
        return self.problem.line.choice == FASTEST

    @property
    def ratio(self) -> float | None:
        """Iteration / lower bound of the schedule; None where only the bound is 0."""
        return approximation_ratio(self.iteration, self.lower.value)

    @property
    def family_ratio(self) -> float | None:
        """Iteration / lower bound of all schedules asked for; None where only the bound is 0."""
        return approximation_ratio(self.iteration, self.family.value)

    @property
    def stages(self) -> int:
        """S."""
        return len(self.split) - 1

    @cached_property
    def stage_ticks(self) -> Sequence[tuple[int, int, int]]:
        """Forward, backward and hand-over ticks of each stage; the last one hands nothing over."""
        forward, backward, handover = self.problem.times.stage_times(self.split)
        return list(zip(forward.tolist(), backward.tolist(), [*handover.tolist(), 0], strict=True))

    @cached_property
    def straight_handovers(self) -> Sequence[tuple[int, int, int]]:
        """Source, target and ticks of what goes straight from stage to stage; empty if all goes to neighbours."""
        direct = self.problem.rules.transport == "direct"
        return self.problem.line.costs.straight_handovers(self.split) if direct else []

    @cached_property
    def peak_bytes(self) -> Sequence[int]:
        """Bytes that each device needs."""
        return self.problem.device_bytes(self.schedule, self.split)

    @cached_property
    def busy_ticks(self) -> Sequence[int]:
        """Ticks of all passes of each device."""
        counts = self.schedule.micro_batches
        busy = [0] * self.problem.devices
        for s, (forward, backward, _) in enumerate(self.stage_ticks):
            busy[s % self.problem.devices] += counts * (forward + backward)
        return busy

    def layers(self, stage: int) -> Sequence[str | int]:
        """Return the ops of a stage in their order."""
        return self.problem.line.names[self.split[stage] : self.split[stage + 1]]


@dataclass(frozen=True, eq=False)
class NoSplitPlan:
    """No plan fits into memory, or none was found.

    Attributes
    ----------
    schedule, looped, split
        A plan whose fullest device needs *least_memory_bytes*; None where none was found.
    memory
        Bytes that the fullest device of no plan is below.
    """

    problem: SplitProblem
    schedule: PassSchedule | None
    looped: LoopedSchedule | None
    split: Sequence[int]
    memory: LowerBound
    stopped: StopReason

    @cached_property
    def peak_bytes(self) -> Sequence[int]:
        """Bytes that each device of that plan needs; empty where there is none."""
        return [] if self.schedule is None else self.problem.device_bytes(self.schedule, self.split)

    @property
    def least_memory_bytes(self) -> int | None:
        """The least memory of a device with which a plan was found; None where none was."""
        return max(self.peak_bytes, default=None)

    @property
    def proven(self) -> bool:
        """Whether there is no plan."""
        limits = self.problem.memory_bytes
        return limits is not None and self.memory.value > max(limits)
