"""Best times per sample for many numbers of devices and sums of degrees, in one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtpp.api.inputs.reading_in_time import reading_given
from mtpp.api.observer import Observer, listener
from mtpp.api.options.machine import Devices
from mtpp.api.options.planners import Equi, LinePlanner, PipeDream2BW, Piper, planner_of, refuse_keywords
from mtpp.api.options.planning import Planning
from mtpp.api.options.reading import Formats
from mtpp.api.output import SavedResult
from mtpp.api.parameters import shortened, whole
from mtpp.api.training.running import limited, run_planner
from mtpp.api.training.task import Picoseconds, SuppliedModel, model_parameter, read_training_task
from mtpp.errors import Infeasible, InputError, Interrupted
from mtpp.host.deadline import Deadline
from mtpp.host.stop_reason import StopReason
from mtpp.ranges import MOST_DEVICES
from mtpp.units import PICOSECONDS

if TYPE_CHECKING:
    import os

    from mtpp.formats.results.training_plan import TrainingTask
    from mtpp.formats.results.training_sweep import Swept
    from mtpp.training.plan import SweepCell
    from mtpp.training.problem import PlanningProblem
    from mtpp.views.terminal import Medium

_ALL_UP_TO = 64
_STEPS_TO_DOUBLE = 8
_MOST_CELLS = 100_000


def sweep_training(
    model: SuppliedModel | os.PathLike[str],
    *,
    devices: int | Iterable[int],
    sums: Iterable[int] | None = None,
    planner: LinePlanner | None = None,
    memory: str | int | None = None,
    bandwidth: str | int | None = None,
    time_unit: str | None = None,
    time_limit_s: float | None = None,
    jobs: int | None = None,
    observer: Observer | None = None,
    **of_planner: object,
) -> Sweep:
    """Find the best time per sample for every number of devices and sum of degrees of data parallelism.

    Parameters
    ----------
    devices
        Numbers of devices, or the largest one: then those below are chosen, all up to 64.
    sums
        Sums of degrees, each at most N; by default N, and a half and a quarter of what the devices can reach.
    planner
        :class:`mtpp.Piper` with its options; None: with its defaults.
    model, memory, bandwidth, time_unit, time_limit_s, jobs, observer
        As in :func:`mtpp.plan_training`; after the time limit the cells so far are returned.

    Returns
    -------
    A table, each cell with its time and a lower bound that no plan beats; without limits every cell is settled.

    Raises
    ------
    InputError
        If the model is broken, or a parameter is missing or cannot be.
    TypeError
        If a keyword is unknown, or one of a planner.
    Infeasible
        If there is no plan for any cell, or none was found in the time.
    Interrupted
        If Ctrl-C ended the search before there was a plan.

    Examples
    --------
    >>> import mtpp
    >>> from mtpp.datasets.transformer_training import transformer_training
    >>> model = transformer_training(2, hidden=64, heads=4)
    >>> planner = mtpp.Piper(max_micro_batches=4)
    >>> sweep = sweep_training(model, planner=planner, devices=[1, 2, 4], memory="2GiB", bandwidth="25GB/s")
    >>> sweep.devices, sweep.sums
    ((1, 2, 4), (1, 2, 4))
    >>> sweep.time_per_sample_s(4, 4) <= sweep.time_per_sample_s(1, 4)
    True
    """
    refuse_keywords("sweep_training", of_planner, planner, Piper, Equi, PipeDream2BW)
    planning = Planning(time_limit_s=time_limit_s, jobs=jobs)
    deadline = Deadline(planning.time_limit_s)
    numbers, asked = _devices(devices), planner_of(planner, Piper, Equi, PipeDream2BW)
    system = Devices(devices=numbers[-1], memory=memory, bandwidth=bandwidth)
    chosen_sums = None if sums is None else _numbers(sums, "sums")
    unit, threads, heard = Formats(time_unit=time_unit).time_unit, planning.jobs, listener(observer)
    given = model_parameter(model)
    with reading_given(given, "model", deadline):
        task = read_training_task(given, asked, system, unit, heard)
    swept = sweep_task(task, *sweep_axes(task.flat, numbers, chosen_sums, "devices"), deadline, threads, heard)
    if swept.problem is not None:
        if swept.stopped == StopReason.INTERRUPTED:
            raise Interrupted
        raise Infeasible(swept.problem, source=task.source.display)
    return Sweep(swept)


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(SavedResult):
    """Best times by number of devices and sum of degrees; shown as the table that ``mtpp plan --sweep`` prints."""

    swept: Swept

    @property
    def devices(self) -> Sequence[int]:
        """Numbers of devices, ascending."""
        return tuple(self.swept.devices)

    @property
    def sums(self) -> Sequence[int]:
        """Sums of degrees, ascending."""
        return tuple(self.swept.sums)

    @property
    def stopped(self) -> StopReason:
        """Reason that the search ended: ``finished``, ``time-limit``, ``memory-limit`` or ``interrupted``."""
        return self.swept.stopped

    def cell(self, devices: int, degrees_sum: int) -> SweepCell | None:
        """Return the best time and its bound, exact in picoseconds; None where the search did not come to it.

        Raises
        ------
        InputError
            If the table has no such cell.
        """
        for value, known, name in ((devices, self.devices, "devices"), (degrees_sum, self.sums, "degrees_sum")):
            if value not in known:
                raise InputError(f"the table has no {shortened(value)}", parameter=name)
        return self.swept.cells.get((devices, degrees_sum))

    def time_per_sample_s(self, devices: int, degrees_sum: int) -> float | None:
        """Return the best time in seconds; None where there is no plan, or none is known."""
        cell = self.cell(devices, degrees_sum)
        return None if cell is None or cell.time is None else float(cell.time / PICOSECONDS["s"])

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per cell, as the document and a data frame have them."""
        return self.swept.rows()

    def _said(self) -> dict[str, Any]:
        return self.swept.document()

    def _shown(self, medium: str | Medium) -> str:
        from mtpp.views.training.training_sweep import sweep_text

        return sweep_text(self.swept, medium)


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


def _devices(value: Any) -> list[int]:
    if isinstance(value, Iterable):
        return _numbers(value, "devices")
    return default_devices(whole(value, "devices", most=MOST_DEVICES))


def _numbers(values: Any, parameter: str) -> list[int]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{shortened(values)} is no list of whole numbers", parameter=parameter)
    numbers = sorted({whole(value, parameter, most=MOST_DEVICES) for value in values})
    if not numbers:
        raise InputError("is empty", parameter=parameter, remedy="give at least one number")
    return numbers


def refuse_unswept(task: TrainingTask) -> None:
    """Raise InputError where there is no sweep: over several levels of devices, and with most planners."""
    from mtpp.solvers.planners.registry import PLANNERS

    if task.flat is not task.problem:
        raise InputError("goes with one level of devices", parameter="sweep", remedy="leave ‹topology› out")
    if not PLANNERS[task.planner].sweeps:
        raise InputError(f"the planner {task.planner} has none", parameter="sweep", remedy="use ‹planner› piper")


def sweep_axes(
    problem: PlanningProblem, devices: Sequence[int] | None, sums: Sequence[int] | None, parameter: str = "sweep"
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ascending numbers of devices and sums of degrees that are asked for, None by default.

    Parameters
    ----------
    parameter
        Name of the parameter that gave the numbers of devices.
    """
    devices = devices or default_devices(problem.devices)
    sums = sums or default_sums(devices[-1], problem.micro_batches)
    for numbers, name, most, things in (
        (devices, parameter, problem.devices, "devices"),
        (sums, "sums", problem.micro_batches, "micro-batches"),
    ):
        if numbers[-1] > most:
            raise InputError(f"{numbers[-1]:,} is more than the {most:,} {things}", parameter=name)
    if len(devices) * len(sums) > _MOST_CELLS:
        cells = f"{len(devices):,} × {len(sums):,} cells are more than {_MOST_CELLS:,}"
        raise InputError(cells, parameter=parameter)
    return devices, sums


def sweep_task(
    task: TrainingTask,
    devices: Sequence[int],
    sums: Sequence[int],
    deadline: Deadline,
    jobs: int | None,
    observer: Observer,
) -> Swept:
    """Find the best times for all numbers of devices and sums of degrees, of :func:`sweep_axes`."""
    from mtpp.formats.results.training_sweep import Swept
    from mtpp.inference.frozen import frozen
    from mtpp.solvers.compilation import search_clock
    from mtpp.solvers.limits import PlanLimits
    from mtpp.solvers.planners.piper.sweep import sweep

    refuse_unswept(task)
    with limited(PlanLimits, deadline, jobs, observer, Picoseconds(), knapsack=task.knapsack) as limits:
        start = search_clock()
        found = run_planner(lambda: sweep(task.flat, devices, sums, limits), limits)
        cells: Mapping[tuple[int, int], SweepCell] = {} if isinstance(found, StopReason) else found
        elapsed_s = search_clock() - start
        settled = sum(cell.time is None or cell.time == cell.lower for cell in cells.values())
        stopped = (None if settled == len(devices) * len(sums) else limits.stop) or StopReason.FINISHED
        return Swept(task, tuple(devices), tuple(sums), frozen(cells), stopped, elapsed_s)
