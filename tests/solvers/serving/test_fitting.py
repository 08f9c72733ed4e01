"""Stages that all fit, against all ways of cutting and of placing; the largest number at which some fit."""

from __future__ import annotations

from itertools import accumulate, combinations, permutations
from random import Random

import numpy as np
import pytest
from refusals import refusal

from mtpp.language_models.capacity import largest
from mtpp.solvers.serving.capacity import cuts_between, largest_fit, reach_of
from mtpp.solvers.serving.fitting import FittingStage, Places, fitting_stages


def random_reach(random: Random, ops: int, classes: int) -> list[list[int]]:
    """Return for each class a furthest stop that is no less than that of earlier starts, or the start itself."""
    rows = []
    for _ in range(classes):
        stops = accumulate((random.choice([start, random.randint(start, ops)]) for start in range(ops)), max)
        rows.append([*(max(start, stop) for start, stop in enumerate(stops)), ops])
    return rows


def any_fit(reach: list[list[int]], places: Places) -> bool:
    """Look at all cuts, and at all devices in all orders."""
    ops, count = len(reach[0]) - 1, len(places.class_of)
    choose = permutations if places.free else combinations
    for used in range(1, min(ops, places.most_used, count) + 1):
        for inner in combinations(range(1, ops), used - 1):
            bounds = [0, *inner, ops]
            for devices in choose(range(count), used):
                if all(reach[places.class_of[d]][a] >= b for d, a, b in zip(devices, bounds, bounds[1:], strict=False)):
                    return True
    return False


@pytest.mark.parametrize("free", [False, True])
def test_stages_are_found_where_there_are_any(free: bool) -> None:
    """And they cover all ops in order, on different devices, each within its reach."""
    random, found = Random(3), 0
    for _ in range(400):
        ops, classes = random.randint(1, 7), random.randint(1, 3)
        reach = random_reach(random, ops, classes)
        places = Places(
            [random.randrange(classes) for _ in range(random.randint(1, 4))], free, random.choice([1, 2, 3, 4])
        )
        stages = fitting_stages(reach, places)
        assert (stages is not None) == any_fit(reach, places)
        if stages is None:
            continue
        found += 1
        assert [stage.start for stage in stages] == [0, *(stage.stop for stage in stages[:-1])]
        assert stages[-1].stop == ops
        assert all(stage.start < stage.stop <= reach[places.class_of[stage.device]][stage.start] for stage in stages)
        devices = [stage.device for stage in stages]
        assert len(set(devices)) == len(devices) <= places.most_used
        assert free or devices == sorted(devices)
    assert 50 < found < 350


def test_devices_that_differ_in_too_many_ways_are_refused() -> None:
    """Before the search."""
    places = Places(range(19), free=True, most_used=19)
    error = refusal(largest_fit, lambda number: [[1, 1]] * 19, places, 10)
    assert error.problem == "devices in free order differ too much: 524,288 ways to choose some of them"


def test_stages_end_where_they_may() -> None:
    """At the furthest place that fits and cuts no group; of several ways of holding a stage the best counts."""
    needs = np.array([[0, 3, 5, 9], [0, 0, 4, 6], [0, 0, 0, 5]])
    apart, group = cuts_between([], 3), cuts_between([[2, 1]], 3)
    assert group.tolist() == [True, True, False, True]
    assert reach_of([(needs, 5)], apart) == [2, 2, 3, 3]
    assert reach_of([(needs, 5)], group) == [1, 1, 3, 3]
    assert reach_of([(needs, 5), (needs, 6)], group) == [1, 3, 3, 3]
    assert reach_of([(needs, None)], group) == [3, 3, 3, 3]
    assert reach_of([(needs, 2)], apart) == [0, 1, 2, 3]


def test_the_largest_number_is_found_with_stages_that_show_it() -> None:
    """No stages fit at the next one; where nothing grows the number is one from which on all stages fit."""
    places = Places([0, 0], free=False, most_used=2)

    def reach_at(number: int) -> list[list[int]]:
        return [[min(4, start + 100 // number) for start in range(5)]]

    found = largest_fit(reach_at, places, 1000)
    assert found is not None
    assert (found.value, found.next_infeasible) == (50, 51)
    assert found.stages == [FittingStage(0, 0, 2), FittingStage(1, 2, 4)]
    assert largest_fit(lambda number: [[0, 1, 4, 4, 4]], places, 1000) is None
    anything = largest_fit(lambda number: [[2, 2, 4, 4, 4]], places, 1000)
    assert anything is not None
    assert (anything.value, anything.next_infeasible) == (1000, None)


def test_any_number_may_be_the_largest() -> None:
    """None, all, and each in between, with few looks at any."""
    for settled in (1, 2, 3, 10, 33):
        for most in range(settled):
            asked: list[int] = []
            assert largest(lambda number: asked.append(number) or number <= most, settled) == most  # noqa: B023
            assert len(asked) <= 2 * settled.bit_length() + 2
        assert largest(lambda number: True, settled) is None
