"""Looped 1F1B schedules with prefetched forward passes (Jhoo et al. 2025, section 3.4 and appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from mtpp.errors import InputError
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule
from mtpp.training.stage_graph import MOST_PASSES


@dataclass(frozen=True)
class LoopedSchedule:
    """A schedule of the family: loops, micro-batches of a loop, and prefetched forward passes.

    Attributes
    ----------
    devices, micro_batches
        D and B.
    loops
        N_l: stages of a device.
    loop_batch
        B_l: micro-batches that go through a stage before the device turns to its next one.
    prefetch
        Forward passes that each device runs before its first backward pass, beyond those that it needs.
    """

    devices: int
    micro_batches: int
    loops: int
    loop_batch: int
    prefetch: Sequence[int]

    @property
    def stages(self) -> int:
        """N_l · D."""
        return self.loops * self.devices

    @cached_property
    def warm_up(self) -> Sequence[int]:
        """Forward passes of each device before its first backward pass."""
        least = least_warm_up(self.devices, self.micro_batches, self.loops, self.loop_batch)
        most = self.loops * self.micro_batches
        return tuple(min(least[d] + self.prefetch[d], most) for d in range(self.devices))

    @property
    def grows(self) -> bool:
        """True if a device warms up longer than the one before it, which then waits for itself."""
        return any(later > earlier for earlier, later in pairwise(self.warm_up))

    def check(self) -> None:
        """Raise InputError if the numbers make no schedule that runs; it names the parameter."""
        check_sizes(self.devices, self.micro_batches, self.loops)
        if self.loop_batch < 1:
            raise InputError("must be at least 1", parameter="loop_batch")
        if len(self.prefetch) != self.devices:
            given, due = len(self.prefetch), self.devices
            problem = f"{given} number{'' if given == 1 else 's'} for {due} device{'' if due == 1 else 's'}"
            raise InputError(problem, parameter="prefetch", remedy="give one for each device")
        if min(self.prefetch) < 0:
            raise InputError("must be at least 0", parameter="prefetch")
        if self.grows:
            text = ", ".join(map(str, self.warm_up))
            raise InputError(
                f"with {self.loops} {'loop' if self.loops == 1 else 'loops'}, devices run {text} forward passes before "
                "their first backward pass; these numbers may not grow",
                parameter="prefetch",
                remedy="prefetch at most one more than the device before does",
            )

    @cached_property
    def schedule(self) -> PassSchedule:
        """Passes of each device: a warm-up of forward passes, then one backward and one forward pass in turn."""
        rows = []
        for d in range(self.devices):
            forward = self._passes(d, PassKind.FORWARD)
            backward = self._passes(d, PassKind.BACKWARD)
            first = self.warm_up[d]
            row = forward[:first]
            for one, following in zip(backward, [*forward[first:], *[None] * first], strict=True):
                row.append(one)
                if following is not None:
                    row.append(following)
            rows.append(row)
        return PassSchedule(self.micro_batches, tuple(map(tuple, rows)))

    def _passes(self, device: int, kind: PassKind) -> list[Pass]:
        """Return the passes of one kind of a device in their order: batch by batch, loop by loop."""
        stages = [device + loop * self.devices for loop in range(self.loops)]
        if kind == PassKind.BACKWARD:
            stages.reverse()
        total, batch = self.micro_batches, self.loop_batch
        return [
            Pass(stage, kind, m)
            for start in range(0, total, batch)
            for stage in stages
            for m in range(start, min(start + batch, total))
        ]


def check_sizes(devices: int, micro_batches: int, loops: int, passes: int = 2) -> None:
    """Check the numbers that every looped schedule has; an error names the parameter.

    Parameters
    ----------
    passes
        Of a stage with a micro-batch: 3 where backward passes come in halves.
    """
    for name, value in (("devices", devices), ("micro_batches", micro_batches), ("loops", loops)):
        if value < 1:
            raise InputError("must be at least 1", parameter=name)
    if passes * devices * loops * micro_batches > MOST_PASSES:
        problem = f"{micro_batches:,} micro-batches on {devices * loops:,} stages make more than {MOST_PASSES:,} passes"
        raise InputError(problem, parameter="micro_batches", remedy="use fewer")


def least_warm_up(devices: int, micro_batches: int, loops: int, loop_batch: int) -> Sequence[int]:
    """Return how many forward passes each device runs before its first backward pass without any prefetch.

    Notes
    -----
    (N_l − 1) · min(B_l, B) + D − d on device d, counted from 0, at most N_l · B.
    """
    most = loops * micro_batches
    extra = (loops - 1) * min(loop_batch, micro_batches)
    return tuple(min(extra + devices - d, most) for d in range(devices))
