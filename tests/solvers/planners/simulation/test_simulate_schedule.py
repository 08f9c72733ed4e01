"""Simulated schedules of devices: the reference, figures 2 and 4 of the paper, and critical paths without gaps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mtpp.checker.training.pfeife.schedule import StageTimes, replay, stated_rows
from mtpp.errors import Deadlock, InputError
from mtpp.names import SCHEDULES
from mtpp.solvers.planners.simulation.simulate import simulate_schedule
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.schedule import PassSchedule, read_pass
from mtpp.training.pfeife.schedule_run import ScheduleRun
from mtpp.training.pfeife.timed_schedule import Handover, TimedSchedule, neighbour_handovers


def simulated(
    schedule: PassSchedule, forward: Sequence[int], backward: Sequence[int], handovers: Sequence[Handover]
) -> ScheduleRun:
    """Simulate stages of given times."""
    times: dict[str, Any] = {"forward_ticks": forward, "backward_ticks": backward, "handovers": handovers}
    return simulate_schedule(TimedSchedule("a schedule", "1", 1, schedule, **times))


def passes(rows: Sequence[Sequence[str]]) -> PassSchedule:
    """Return the schedule of rows of names."""
    return PassSchedule.build([[read_pass(one) for one in row] for row in rows], [])


def test_figure_2(shared_reference: Path) -> None:
    """Both forward passes first: every start, 122 in all, and the path that the figure marks."""
    case = json.loads((shared_reference / "pfeife.json").read_text())["figure2"]
    rows = passes(case["order"])
    run = simulated(rows, case["forward"], case["backward"], neighbour_handovers([case["transfer"]]))
    assert run.starts == case["start"]
    assert run.iteration == case["iteration"]
    assert [part.name for part in run.critical_path if part.target is None] == case["critical_path"]
    other = LoopedSchedule(2, 2, 1, 2, (0, 0)).schedule
    run = simulated(other, case["forward"], case["backward"], neighbour_handovers([case["transfer"]]))
    assert run.iteration == case["iteration_with_1f1b"]


def test_replays_of_the_reference(shared_reference: Path) -> None:
    """Iterations of all schedules of the reference that run."""
    cases = json.loads((shared_reference / "pfeife.json").read_text())["replays"]
    ran = [case for case in cases if case["iteration"] is not None]
    for case in ran:
        sizes = (case["devices"], case["micro_batches"], case["loops"], case["loop_batch"], case["prefetch"])
        schedule = LoopedSchedule(*sizes).schedule
        run = simulated(schedule, case["forward"], case["backward"], neighbour_handovers(case["transfer"]))
        assert run.iteration == case["iteration"]
        assert [one.peak_in_flight for one in run.devices] == case["in_flight"]
    assert len(ran) > 30


def random_case(seed: int) -> tuple[PassSchedule, list[int], list[int], dict[tuple[int, int], int], bool]:
    """Return a schedule with times of its stages and of what they hand over, and whether only to neighbours."""
    rng = Random(seed)
    devices, loops = rng.randint(1, 4), rng.randint(1, 3)
    name = rng.choice(SCHEDULES)
    schedule = named_schedule(name, devices, devices * rng.randint(1, 3), loops if name not in ("gpipe", "1f1b") else 1)
    stages = schedule.stages
    forward, backward = ([rng.randint(0, 9) for _ in range(stages)] for _ in range(2))
    neighbours = rng.random() < 0.5
    pairs = [(s, t) for s in range(stages) for t in range(s + 1, stages) if rng.random() < 0.5]
    if neighbours:
        pairs = [(s, s + 1) for s in range(stages - 1)]
    return schedule, forward, backward, {pair: rng.randint(0, 5) for pair in pairs}, neighbours


@pytest.mark.parametrize("seed", range(24))
def test_starts_and_critical_paths(seed: int) -> None:
    """Iterations equal what the verifier replays; a critical path has no gap from the start to the end."""
    schedule, forward, backward, ticks, neighbours = random_case(seed)
    run = simulated(schedule, forward, backward, [Handover(s, t, one) for (s, t), one in ticks.items()])
    rows = stated_rows({"order": [[one.name for one in row] for row in schedule.rows], "dependencies": []})
    between = [ticks.get((s, s + 1), 0) for s in range(schedule.stages - 1)]
    assert run.iteration == replay(rows, StageTimes(forward, backward, between), None if neighbours else ticks)
    at = 0
    for part in run.critical_path:
        assert part.start == at
        at = part.end
    assert at == run.iteration
    phases = run.phases
    assert phases.warm_up + phases.steady + phases.cool_down == run.iteration
    for d, one in enumerate(run.devices):
        bars = run.timeline.rows[d].bars
        assert one.busy + one.bubble == run.iteration
        assert sum(bar.end - bar.start for bar in bars) == one.busy
        assert all(bar.end <= following.start for bar, following in pairwise(bars))


def test_passes_that_wait_for_each_other_are_named() -> None:
    """Each waits for the next one, the first again at the end."""
    rows = passes([["0F0", "0B1", "0F1", "0B0"], ["1F0", "1B0", "1F1", "1B1"]])
    with pytest.raises(Deadlock) as caught:
        simulated(rows, [1, 1], [1, 1], neighbour_handovers([0]))
    assert "passes wait for each other: " in str(caught.value)
    assert {"0B1", "0F1"} <= set(str(caught.value).replace(",", "").replace(";", "").split())


def test_times_that_overflow_are_refused() -> None:
    """Before anything is added up."""
    rows = LoopedSchedule(2, 2, 1, 2, (0, 0)).schedule
    with pytest.raises(InputError, match="2\\^61 ticks"):
        simulated(rows, [2**60, 1], [1, 1], neighbour_handovers([0]))
    with pytest.raises(InputError, match="2 stages, and 1 have times"):
        simulated(rows, [1], [1, 1], neighbour_handovers([0]))
