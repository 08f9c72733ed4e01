"""Bounds of schedules and of families: never above what any split takes, by going through all of them."""

from __future__ import annotations

import random

import pytest
from looped_oracles import every_split, family_rows, random_line, replayed
from seeds import sampled

from mtpp.machine.machine import Machine
from mtpp.solvers.limits import Limits
from mtpp.solvers.planners.pfeife.families import ScheduleCell
from mtpp.solvers.planners.pfeife.path_bound import path_bound
from mtpp.solvers.planners.pfeife.path_network import PathNetwork, family_network, schedule_network
from mtpp.solvers.planners.pfeife.search import SplitSearch
from mtpp.training.pfeife.problem import SplitProblem, SplitRules

_FOLD = 25
_SCHEDULES = 6


def random_problem(pick: random.Random) -> SplitProblem:
    """Return a problem of up to 8 ops, 4 devices and 4 micro-batches."""
    devices = pick.choice([1, 2, 2, 3, 3, 4])
    ops = pick.randint(devices, min(8, devices + 4))
    loops = [loop for loop in (1, 2, 3) if loop * devices <= ops]
    speeds = [pick.choice([1, 1, 2]) for _ in range(devices)] if pick.random() < 0.2 else None
    return SplitProblem.build(
        random_line(pick, ops),
        machine=Machine.of_devices(devices, bandwidth_bytes_per_s=1, speeds=speeds),
        micro_batches=pick.choice([1, 2, 3, 4]),
        rules=SplitRules(loops=loops, loop_batches=pick.choice(["divisors", "any"])),
    )


def bound_of(problem: SplitProblem, network: PathNetwork) -> int:
    """Return the bound that a game on a network comes to."""
    return path_bound(network, problem.times, SplitSearch(problem, Limits()).game(network)).value


def check_bounds(seed: int) -> tuple[int, int]:
    """Compare bounds of a random problem with all splits; return how many were compared, and how many were met."""
    pick = random.Random(seed)
    problem = random_problem(pick)
    devices, total, n = problem.devices, problem.micro_batches, problem.line.costs.ops
    compared = met = 0
    for loops, batch in problem.cells:
        cell = ScheduleCell(problem, loops, batch)
        of_family = bound_of(problem, family_network(devices, total, loops, batch))
        every = list(cell.every())
        for warm_up in pick.sample(every, min(_SCHEDULES, len(every))):
            rows = family_rows(devices, total, loops, batch, warm_up)
            taken = []
            for split in every_split(n, loops * devices):
                forward, backward, handover = problem.times.stage_times(split)
                taken.append(replayed(rows, forward.tolist(), backward.tolist(), handover.tolist()))
            scheduled = cell.scheduled(warm_up)
            assert (scheduled is None) == (taken[0] is None)
            if scheduled is None:
                continue
            best = min(one for one in taken if one is not None)
            found = scheduled.best_of_all(2**62)
            assert found is not None
            assert found.ticks == best
            own = bound_of(problem, schedule_network(scheduled.arrays))
            assert own <= best
            assert of_family <= best
            compared += 2
            met += own == best
    return compared, met


FOLDS = [(range(fold * _FOLD, (fold + 1) * _FOLD), 100) for fold in range(4)]
MORE = [
    pytest.param(range(begin, begin + 150), 625, marks=pytest.mark.slow)
    for begin in sampled(range(1_000, 1_600, 150), 2)
]


@pytest.mark.parametrize(("seeds", "least"), [*FOLDS, *MORE])
def test_no_bound_is_above_the_best_split(seeds: range, least: int) -> None:
    """Bounds of schedules and families hold for every split; many of the former are met."""
    counts = [check_bounds(seed) for seed in seeds]
    compared, met = (sum(column) for column in zip(*counts, strict=True))
    assert compared > least
    assert met > 10
