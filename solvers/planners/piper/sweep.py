"""The least time per sample for every number of devices and every sum of degrees, in one run (the paper's figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mtpp.errors import InconsistentBound, InputError
from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import Tier
from mtpp.solvers.limits import PlanLimits
from mtpp.solvers.planners.bounds.work import work_bound
from mtpp.solvers.planners.piper.arrays import choice_arrays
from mtpp.solvers.planners.piper.bisection import next_question
from mtpp.solvers.planners.piper.layer_downsets import every_downset
from mtpp.solvers.planners.piper.planner import MOST_DOWNSETS
from mtpp.solvers.planners.piper.threshold import Decision, PipelineSearch
from mtpp.solvers.threads import Threads
from mtpp.training.plan import LayerStage, SweepCell, TimeBound, TrainingPlan
from mtpp.training.problem import PlanningProblem


@dataclass
class _Open:
    """A cell that is worked at; *empty*: it is proven that there is no plan."""

    time: Fraction | None
    lower: Fraction
    stages: int | None
    done: bool = False
    empty: bool = False
    gains: int = 0


def sweep(
    problem: PlanningProblem, devices: Sequence[int], sums: Sequence[int], limits: PlanLimits
) -> Mapping[tuple[int, int], SweepCell]:
    """Find the least time for every pair of a number of devices and a sum of degrees, both meant as "at most".

    What synchronising gradients costs, and which degrees may be used, comes from the problem's own batch.

    Returns
    -------
    The cells that something is known of. Those that a limit left open have a *time* above their *lower*; a *time* of
    None is proven: there is no plan. A cell that is missing was not reached, and may have one.

    Raises
    ------
    InputError
        If the model has too many downsets, or if degrees have to sum up to exactly N.

    Notes
    -----
    Every decision about a threshold gives the fewest devices for each sum of degrees, which is news for all cells: no
    plan for those with less, a plan for those with more. Cells are settled from the fewest devices on; many are, when
    their turn comes.
    """
    if problem.exact_micro_batches:
        raise InputError(
            "sums of degrees are swept up to a limit", parameter="exact_micro_batches", remedy="leave it out"
        )
    limits.observer.phase("downsets")
    sets = every_downset(problem, MOST_DOWNSETS)
    if sets is None:
        raise InputError(
            f"the model has more than {MOST_DOWNSETS:,} downsets: a sweep would not end", remedy="plan without ‹sweep›"
        )
    bound = work_bound(problem)
    floor = bound.value if bound is not None else Fraction(0)
    cells = {(k, s): _Open(None, floor, None) for k in devices for s in sums}
    with Threads(limits.jobs) as threads:
        search = PipelineSearch(problem, choice_arrays(problem), sets, limits, threads)
        for k, s in sorted(cells):
            if bound is None:
                break
            if not cells[k, s].done:
                limits.observer.phase(f"plans on {k:,} devices" if k > 1 else "plans on 1 device")
            if not _settle(search, cells, k, s):
                break
    for place, cell in cells.items():
        if cell.time is not None and cell.lower > cell.time:
            where = f"{place[0]} devices and degrees of {place[1]}"
            raise InconsistentBound(f"the lower bound {cell.lower} is above the plan's {cell.time} for {where}")
    known = {place: cell for place, cell in cells.items() if bound is None or cell.empty or cell.time is not None}
    return {
        place: SweepCell(cell.time, cell.lower if search.proves else floor, cell.stages)
        for place, cell in known.items()
    }


def _settle(search: PipelineSearch, cells: Mapping[tuple[int, int], _Open], k: int, s: int) -> bool:
    """Ask about thresholds until a cell is settled; return whether that could be finished."""
    cell = cells[k, s]
    while not cell.done:
        asked, strictly, close = next_question(cell.lower, cell.time, cell.gains)
        decision = search.decide(asked, strictly=strictly, devices=k, micro_batches=s)
        if decision is None:
            return False
        if not decision.front and not decision.certain:
            cell.done = True  # a knapsack was given up: the bound stays where it is
            return True
        before = cell.time
        _tell(search, cells, decision, asked, strictly, k, s)
        if decision.front and cell.time == before:
            cell.done = True  # choices that are there cannot be told, as a knapsack was given up
        cell.gains = cell.gains + 1 if decision.front and close else 0
    return True


def _tell(
    search: PipelineSearch,
    cells: Mapping[tuple[int, int], _Open],
    decision: Decision,
    asked: Fraction | None,
    strictly: bool,
    most_devices: int,
    most_degrees: int,
) -> None:
    """Carry over to all cells what a decision within so many devices and degrees says about them."""
    plans: dict[int, tuple[Fraction, int]] = {}
    for (k, s), cell in cells.items():
        if cell.done:
            continue
        fitting = [i for i, (degrees, devices) in enumerate(decision.front) if degrees <= s and devices <= k]
        if fitting:
            if asked is not None and cell.time is not None and cell.time <= asked and not strictly:
                continue
            state = fitting[-1]
            if state not in plans:
                stages = search.stages(state)
                plans[state] = _looked_at_time(search.problem, stages), len(stages)
            time, count = plans[state]
            if cell.time is None or time < cell.time:
                cell.time, cell.stages = time, count
                cell.done = cell.lower >= time
        elif k <= most_devices and s <= most_degrees and decision.certain:
            if asked is None:
                cell.done = cell.empty = True
                continue
            cell.lower = max(cell.lower, asked)
            cell.done = cell.time is not None and cell.lower >= cell.time


def _looked_at_time(problem: PlanningProblem, stages: Sequence[LayerStage]) -> Fraction:
    """Return the time per sample of a plan, with a last look at it: nobody sees more than its time."""
    from mtpp.solvers.last_look.line_plans import look_at_line_plan

    plan = TrainingPlan(problem, "piper", stages, TimeBound(Fraction(0), "work", Tier.EXACT), StopReason.FINISHED)
    look_at_line_plan(problem, plan)
    return plan.time_per_sample
