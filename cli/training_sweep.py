"""``mtpp plan --sweep``: which numbers of devices and which sums of degrees, and the run that answers for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mtpp.cli.options.shared import stack
from mtpp.cli.options.training import MOST_DEVICES
from mtpp.errors import InputError

if TYPE_CHECKING:
    from mtpp.cli.terminal.console import Console
    from mtpp.cli.training_planning import TrainingTask
    from mtpp.solvers.planners.piper.sweep import SweepCell
    from mtpp.training.problem import PlanningProblem

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT = "default"
"""Value of ``--sweep`` without a list."""

_ALL_UP_TO = 64
_STEPS_TO_DOUBLE = 8
_MOST_CELLS = 100_000


@dataclass(frozen=True)
class Swept:
    """A task with the best times for numbers of devices and sums of degrees.

    Attributes
    ----------
    cells
        By (devices, sum of degrees); those that were not reached are missing.
    stopped
        One of ``solvers.search.STOPS``.
    elapsed_s
        Seconds of planning.
    """

    task: TrainingTask
    devices: Sequence[int]
    sums: Sequence[int]
    cells: Mapping[tuple[int, int], SweepCell]
    stopped: str
    elapsed_s: float

    @property
    def feasible(self) -> bool:
        """Whether there is a plan at all."""
        return any(cell.time is not None for cell in self.cells.values())

    @property
    def open(self) -> int:
        """How many cells were not reached: nothing is known of them."""
        return len(self.devices) * len(self.sums) - len(self.cells)

    @property
    def problem(self) -> str | None:
        """What is wrong where there is no plan at all."""
        if self.feasible:
            return None
        if self.open:
            return "no plan was found before the search ended"
        return "no plan fits on any of these numbers of devices"


def default_devices(most: int) -> list[int]:
    """Return all numbers up to 64, then eight for every doubling, powers of two among them, and *most* itself."""
    numbers = list(range(1, min(most, _ALL_UP_TO) + 1))
    base = _ALL_UP_TO
    while base < most:
        numbers += range(base + base // _STEPS_TO_DOUBLE, min(2 * base, most) + 1, base // _STEPS_TO_DOUBLE)
        base *= 2
    return numbers if numbers[-1] == most else [*numbers, most]


def default_sums(devices: int, micro_batches: int) -> list[int]:
    """Return N, and a half and a quarter of the largest sum that so many devices can reach."""
    reach = min(devices, micro_batches)
    return sorted({number for number in (reach // 4, reach // 2, micro_batches) if number})


def sweep_options() -> Callable[[F], F]:
    """Add ``--sweep`` and ``--sums``, whose values are ascending numbers, or :data:`DEFAULT`."""
    return stack(
        click.option(
            "--sweep", is_flag=False, flag_value=DEFAULT, callback=_numbers, metavar="[LIST]",
            help="In place of a plan: best times for numbers of devices up to K, or for those listed, as 8,16,32-64.",
        ),
        click.option(
            "--sums", callback=_numbers, metavar="LIST", help="Of --sweep: sums of degrees [default: N and below]."
        ),
    )  # fmt: skip


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> list[int] | str | None:
    """Read a list such as ``8,16,32-64`` of whole numbers above zero."""
    if text is None or (text == DEFAULT and param.name == "sweep"):
        return text
    numbers: set[int] = set()
    for part in text.split(","):
        ends = part.strip().split("-")
        if len(ends) > 2 or not all(end.isascii() and end.isdecimal() for end in ends):
            after = ", after MODEL" if param.name == "sweep" else ""
            raise click.BadParameter(f"{part.strip()!r} is neither a whole number nor a range; write 8,16,32-64{after}")
        if max(map(len, ends)) > len(str(MOST_DEVICES)) or int(ends[-1]) > MOST_DEVICES:
            raise click.BadParameter(f"{part.strip()} is above {MOST_DEVICES:,}")
        low, high = int(ends[0]), int(ends[-1])
        if not 1 <= low <= high:
            raise click.BadParameter(f"{part.strip()} does not go up from at least 1")
        numbers.update(range(low, high + 1))
    return sorted(numbers)


def _axes(problem: PlanningProblem, options: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Return the numbers of devices and the sums of degrees that are asked for."""
    devices = options["sweep"] if options["sweep"] != DEFAULT else default_devices(problem.devices)
    sums = options["sums"] or default_sums(devices[-1], problem.micro_batches)
    for numbers, option, most, what in (
        (devices, "--sweep", problem.devices, "devices"),
        (sums, "--sums", problem.micro_batches, "micro-batches"),
    ):
        if numbers[-1] > most:
            raise click.UsageError(f"{option}: {numbers[-1]:,} is more than the {most:,} {what}")
    if len(devices) * len(sums) > _MOST_CELLS:
        raise click.UsageError(f"--sweep: {len(devices):,} × {len(sums):,} cells are more than {_MOST_CELLS:,}")
    return devices, sums


def sweep_task(task: TrainingTask, options: Mapping[str, Any], console: Console) -> Swept:
    """Find the best times for all numbers of devices and sums of degrees asked for."""
    from mtpp.cli.training_planning import Picoseconds, await_kernels, planning_limits
    from mtpp.host.interruption import Interruption

    problem = task.flat
    if problem is not task.problem:
        raise InputError("goes with one level of devices", source="--sweep", remedy="leave --topology out")
    if not task.planner.sweeps:
        raise InputError(f"the planner {task.planner.name} has none", source="--sweep", remedy="use --planner piper")
    devices, sums = _axes(problem, options)
    from mtpp.solvers.planners.piper.sweep import sweep

    await_kernels(task, console)
    with Interruption() as interruption, console.search(Picoseconds()) as live:
        limits = planning_limits(options, live, interruption)
        start = time.monotonic()
        cells = sweep(problem, devices, sums, limits)
        elapsed_s = time.monotonic() - start
        settled = sum(cell.time is None or cell.time == cell.lower for cell in cells.values())
        stopped = (None if settled == len(devices) * len(sums) else limits.stop) or "finished"
        return Swept(task, devices, sums, cells, stopped, elapsed_s)
