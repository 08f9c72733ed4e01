"""Pfeife's planning problem: a model in a line, devices, micro-batches, and the schedules that are allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mtpp.array_types import Int32Array, Int64Array
from mtpp.errors import InputError
from mtpp.machine.machine import Machine, OnMachine
from mtpp.names import ANY, BUFFERS, LOOP_BATCHES, ORDERS, SEARCHES, TRANSPORTS
from mtpp.training.model import LinePlace
from mtpp.training.pfeife.costs import LARGEST_SUM, SplitTimes
from mtpp.training.pfeife.line import LARGEST_BYTES, ModelLine
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.schedule import PassKind, PassSchedule
from mtpp.training.stage_graph import MOST_PASSES
from mtpp.units import Exact, ceil_ratio
from mtpp.wording import counted

LOOPS = (1, 2, 3)
"""Numbers of loops that are tried where none are asked for."""

BACKWARD_RATIO = 2
STATE = 4
"""Parameters, their gradients, and the two moments of Adam (Jhoo et al. 2025, table 4)."""


@dataclass(frozen=True)
class SplitRules:
    """Schedules and splits that are allowed.

    Attributes
    ----------
    loops
        Numbers of stages of a device to try.
    loop_batches
        Micro-batches of a loop: those that divide B and are at least min(D, B); or any from there on.
    prefetch
        Of each device; None: whatever is best.
    schedule
        Passes that are given, with what they are called; None: those of the looped family.
    transport
        Whether tensors go from neighbour to neighbour or straight to the stages that read them.
    order
        Whether ops stay in the file's order.
    search
        Annealing, or the beam search of Jhoo et al. (2025), algorithm 1.
    buffers
        Micro-batches whose received tensors a stage has room for, one of :data:`mtpp.names.BUFFERS`. PyTorch's
        pipelining makes the buffers of all of them before the first pass (``torch/distributed/pipelining/stage.py``).
    """

    loops: Sequence[int] = LOOPS
    loop_batches: str = LOOP_BATCHES[0]
    prefetch: Sequence[int] | None = None
    schedule: tuple[str, PassSchedule] | None = None
    transport: str = TRANSPORTS[0]
    order: str = ORDERS[0]
    search: str = SEARCHES[0]
    buffers: str = BUFFERS[0]


@dataclass(frozen=True, eq=False)
class SplitProblem(OnMachine):
    """A model to be cut and scheduled. Make one with :meth:`build`.

    Attributes
    ----------
    machine
        D devices; memories, or None for no limit, and speeds may differ. Graphs that give their transfers do not need
        the bandwidth of links.
    micro_batches
        B.
    backward_ratio, state
        What *line* was made with: backward pass / forward pass, and bytes of training for each byte of parameters.
    """

    line: ModelLine
    machine: Machine
    micro_batches: int
    backward_ratio: Exact
    state: Exact
    rules: SplitRules = field(default_factory=SplitRules)

    @classmethod
    def build(
        cls,
        line: ModelLine,
        *,
        machine: Machine,
        micro_batches: int,
        backward_ratio: Exact = BACKWARD_RATIO,
        state: Exact = STATE,
        rules: SplitRules | None = None,
    ) -> SplitProblem:
        """Check that there is something to plan, and that all of it stays within 64 bits.

        Raises
        ------
        InputError
            If there are more stages than ops, numbers are out of range, memory is limited and the model does not say
            all sizes, or a schedule has other devices or micro-batches; it names the parameter.
        """
        machine.require_one_level()
        rules = rules or SplitRules()
        if micro_batches < 1:
            raise InputError("must be at least 1", parameter="micro_batches")
        problem = cls(line, machine, micro_batches, backward_ratio, state, rules)
        memory_bytes = problem.memory_bytes
        if memory_bytes is not None and max(memory_bytes) >= LARGEST_BYTES:
            raise InputError("must be below 2^60 bytes", parameter="memory", remedy="leave it out for no limit")
        if memory_bytes is not None and not line.sizes_known:
            maker = next(line.names[one.producer] for one in line.costs.tensors if one.size_bytes is None)
            raise InputError(
                f"the graph does not give the bytes of all tensors, such as that of op {str(maker)!r}",
                parameter="memory",
                remedy="add bytes to its tensors, or leave the limit out",
            )
        problem._check_rules()
        problem._check_sizes()
        return problem

    @cached_property
    def memory_bytes(self) -> Sequence[int] | None:
        """Memory of each device; None: no limit."""
        sizes = [device.memory_bytes for device in self.machine.devices]
        limits = [size for size in sizes if size is not None]
        return limits if len(limits) == len(sizes) else None

    @cached_property
    def speeds(self) -> Sequence[Exact]:
        """Speed of each device, as a multiple of that which the model's times are of."""
        return tuple(device.speed for device in self.machine.devices)

    def _check_rules(self) -> None:
        rules, n = self.rules, self.line.costs.ops
        if rules.schedule is not None:
            name, schedule = rules.schedule
            for parameter, noun, due, found in (
                ("devices", "device", self.devices, schedule.devices),
                ("micro_batches", "micro-batch", self.micro_batches, schedule.micro_batches),
            ):
                if due != found:
                    problem = f"{name} has {counted(found, noun)}, not {due:,}"
                    raise InputError(problem, parameter="schedule", remedy=f"set ‹{parameter}› {found}")
            if schedule.stages > n:
                raise InputError(
                    f"{schedule.stages:,} stages need as many ops, and the model has {n:,}",
                    parameter="schedule",
                    remedy="use fewer devices or loops",
                )
            return
        if not rules.loops or min(rules.loops) < 1:
            raise InputError("must be at least 1", parameter="loops")
        if not self.loops:
            stages = self.devices * min(rules.loops)
            problem = f"{stages:,} stages need as many ops, and the model has {n:,}"
            raise InputError(
                problem,
                parameter="devices",
                remedy="use fewer devices" if 1 in rules.loops else "use fewer devices or loops",
            )
        if 2 * self.devices * max(self.loops) * self.micro_batches > MOST_PASSES:
            raise InputError(
                f"these are more than {MOST_PASSES:,} passes",
                parameter="micro_batches",
                remedy="use fewer micro-batches or loops",
            )
        if rules.prefetch is not None:
            for loops, loop_batch in self.cells:
                LoopedSchedule(self.devices, self.micro_batches, loops, loop_batch, rules.prefetch).check()

    def _check_sizes(self) -> None:
        costs = self.line.costs
        stages = self.rules.schedule[1].stages if self.rules.schedule else self.devices * max(self.loops)
        slowest = min(self.speeds)
        total = sum(costs.forward.tolist()) + sum(costs.backward.tolist())
        ticks = ceil_ratio(total * slowest.denominator, slowest.numerator) + 2 * costs.ops
        moved = sum(one.ticks for one in costs.tensors)
        sent = stages**2 if self.rules.transport == "direct" else 2 * stages
        if self.micro_batches * (ticks + 2 * stages * moved + sent * costs.latency) >= LARGEST_SUM:
            raise InputError(
                "the costs are too large: an iteration may reach 2^61 ticks",
                remedy="check the costs, the time unit and the bandwidth",
            )
        held = sum(costs.fixed_bytes.tolist()) + self.micro_batches * (
            sum(costs.kept_bytes.tolist()) + 2 * stages * sum(one.size_bytes or 0 for one in costs.tensors)
        )
        if held >= LARGEST_BYTES:
            raise InputError("the sizes are too large: they may reach 2^60 bytes", remedy="check the sizes")

    @cached_property
    def times(self) -> SplitTimes:
        """Sums along the line from which the times of splits follow."""
        return SplitTimes.of(self.line.costs, self.speeds)

    @cached_property
    def straight_tensors(self) -> tuple[Int32Array, Int32Array, Int32Array, Int64Array, Int64Array]:
        """Tensors that go straight to their readers, as kernels take them.

        Positions of producers, where the ascending positions of readers begin, these positions (int32), ticks and bytes
        (int64).
        """
        tensors = [one for one in self.line.costs.tensors if one.consumers]
        starts = np.cumsum([0, *(len(one.consumers) for one in tensors)])
        readers = [v for one in tensors for v in sorted(one.consumers)]
        return (
            np.array([one.producer for one in tensors], dtype=np.int32),
            starts.astype(np.int32),
            np.array(readers, dtype=np.int32),
            np.array([one.ticks for one in tensors], dtype=np.int64),
            np.array([one.size_bytes or 0 for one in tensors], dtype=np.int64),
        )

    @cached_property
    def loops(self) -> Sequence[int]:
        """Those of the rules for which there are ops enough, ascending."""
        return [one for one in sorted(set(self.rules.loops)) if one * self.devices <= self.line.costs.ops]

    @cached_property
    def cells(self) -> Sequence[tuple[int, int]]:
        """Loops and loop batches to plan for, where no schedule is given."""
        return [(loops, batch) for loops in self.loops for batch in self._batches(loops)]

    def _batches(self, loops: int) -> Iterator[int]:
        total = self.micro_batches
        if loops == 1:
            yield total
            return
        for batch in range(min(self.devices, total), total + 1):
            if self.rules.loop_batches == ANY or total % batch == 0:
                yield batch

    def reordered(self, order: Sequence[LinePlace]) -> SplitProblem:
        """Return the same with its ops in another topological order, given by their places in this one."""
        return replace(self, line=self.line.reordered(order))

    def device_bytes(self, schedule: PassSchedule, split: Sequence[int] | Int64Array) -> Sequence[int]:
        """Return the bytes that each device needs under a split.

        Fixed bytes of its ops, and for each micro-batch in flight in one of its stages what that keeps, and buffers of
        what it receives: tensors from before, gradients from behind; or these buffers for all micro-batches.
        """
        costs, devices = self.line.costs, self.devices
        fixed = np.concatenate([[0], np.cumsum(costs.fixed_bytes)])
        kept = np.concatenate([[0], np.cumsum(costs.kept_bytes)])
        flying, need = [], [0] * devices
        for s in range(schedule.stages):
            begin, end = int(split[s]), int(split[s + 1])
            received = self._received_bytes(begin, end, split)
            flying.append(int(kept[end] - kept[begin]))
            need[s % devices] += int(fixed[end] - fixed[begin])
            if self.rules.buffers == BUFFERS[0]:
                flying[s] += received
            else:
                need[s % devices] += self.micro_batches * received
        for d, row in enumerate(schedule.rows):
            held = most = 0
            for one in row:
                if one.kind != PassKind.INPUT:
                    held += flying[one.stage] if one.kind == PassKind.FORWARD else -flying[one.stage]
                most = max(most, held)
            need[d] += most
        return need

    def _received_bytes(self, begin: int, end: int, split: Sequence[int] | Int64Array) -> int:
        """Return the bytes that a stage of a split receives of one micro-batch, there and back."""
        costs = self.line.costs
        if self.rules.transport == "direct":
            return costs.straight_bytes(begin, end, split)
        return int(costs.crossing_bytes[begin] + costs.crossing_bytes[end])
