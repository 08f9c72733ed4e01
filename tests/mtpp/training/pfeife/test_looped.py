"""Looped schedules: their shape on random numbers, those of the reference, and numbers that make none."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mtpp.errors import Deadlock, InputError
from mtpp.training.pfeife.looped import LoopedSchedule, least_warm_up
from mtpp.training.pfeife.precedence import needed, precedence_order
from mtpp.training.pfeife.schedule import Pass, PassKind, PassSchedule, read_pass


@st.composite
def looped_schedules(draw: st.DrawFn) -> LoopedSchedule:
    """Draw the numbers of a schedule whose devices do not warm up longer than those before them."""
    devices, micro_batches = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    loops, loop_batch = draw(st.integers(1, 3)), draw(st.integers(1, 10))
    prefetch = [draw(st.integers(0, 6)) for _ in range(devices)]
    looped = LoopedSchedule(devices, micro_batches, loops, loop_batch, prefetch)
    if looped.grows:
        for d in range(1, devices):
            prefetch[d] = min(prefetch[d], prefetch[d - 1] + 1)
    return LoopedSchedule(devices, micro_batches, loops, loop_batch, prefetch)


@given(looped_schedules())
def test_every_looped_schedule_has_its_shape(looped: LoopedSchedule) -> None:
    """All passes once, on their devices; a warm-up, then one backward and one forward pass in turn."""
    looped.check()
    schedule = looped.schedule
    assert PassSchedule.build(schedule.rows).passes == schedule.passes
    assert len(schedule.passes) == 2 * looped.stages * looped.micro_batches
    for d, row in enumerate(schedule.rows):
        kinds = [one.kind for one in row]
        first, most = looped.warm_up[d], looped.loops * looped.micro_batches
        rest = most - first
        turns = [PassKind.BACKWARD, PassKind.FORWARD] * rest
        assert kinds == [PassKind.FORWARD] * first + turns + [PassKind.BACKWARD] * first
        assert schedule.in_flight[d] == first
        forward = [one for one in row if one.kind == PassKind.FORWARD]
        backward = [one for one in row if one.kind == PassKind.BACKWARD]
        mirrored = [(looped.stages - looped.devices + 2 * d - one.stage, one.micro_batch) for one in backward]
        assert mirrored == [(one.stage, one.micro_batch) for one in forward]
        for s in range(d, looped.stages, looped.devices):
            numbers = [one.micro_batch for one in forward if one.stage == s]
            assert numbers == list(range(looped.micro_batches))


@given(looped_schedules())
@example(LoopedSchedule(devices=4, micro_batches=2, loops=3, loop_batch=1, prefetch=[0, 0, 0, 0]))
def test_schedules_run_or_tell_a_cycle(looped: LoopedSchedule) -> None:
    """An order keeps the rows and what passes wait for.

    There always is one with one loop, and where nothing is prefetched and a loop's micro-batches keep all devices busy.
    """
    schedule = looped.schedule
    try:
        place = {one: i for i, one in enumerate(precedence_order(schedule))}
    except Deadlock:
        assert looped.loops > 1
        assert max(looped.prefetch) > 0 or looped.loop_batch < min(looped.devices, looped.micro_batches)
        return
    assert place.keys() == schedule.passes
    assert all(place[one] < place[after] for row in schedule.rows for one, after in pairwise(row))
    assert all(place[other] < place[one] for one in place for other in needed(one, schedule))


@given(looped_schedules(), st.integers(0, 4), st.integers(1, 3))
def test_longer_warm_ups_on_later_devices_never_run(looped: LoopedSchedule, at: int, more: int) -> None:
    """Growing warm-ups are refused, and rightly so: such schedules wait for themselves."""
    if looped.devices == 1:
        return
    d = 1 + at % (looped.devices - 1)
    prefetch = list(looped.prefetch)
    least = least_warm_up(looped.devices, looped.micro_batches, looped.loops, looped.loop_batch)
    prefetch[d] = looped.warm_up[d - 1] - least[d] + more
    grown = LoopedSchedule(looped.devices, looped.micro_batches, looped.loops, looped.loop_batch, prefetch)
    if not grown.grows:  # the device before it runs all forward passes first
        assert looped.warm_up[d - 1] == looped.loops * looped.micro_batches
        return
    with pytest.raises(InputError, match="these numbers may not grow"):
        grown.check()
    with pytest.raises(Deadlock):
        precedence_order(grown.schedule)


def test_figure_3_warms_up_as_drawn() -> None:
    """The paper's Figure 3: 4 devices, 8 micro-batches, loops of 4, prefetch 2, 2, 1, 0."""
    looped = LoopedSchedule(4, 8, 2, 4, (2, 2, 1, 0))
    assert looped.warm_up == (10, 9, 7, 5)
    first = looped.schedule.rows[0]
    assert [one.name for one in first[8:12]] == ["0F4", "0F5", "4B0", "0F6"]


def test_replays_of_the_reference_keep_as_many_micro_batches(shared_reference: Path) -> None:
    """Kept micro-batches of every schedule that the reference replays; those that it cannot are refused."""
    replays = json.loads((shared_reference / "pfeife.json").read_text())["replays"]
    for one in replays:
        keys = ("devices", "micro_batches", "loops", "loop_batch", "prefetch")
        looped = LoopedSchedule(*(one[key] for key in keys))
        if one["iteration"] is None:
            with pytest.raises(InputError, match="these numbers may not grow"):
                looped.check()
            continue
        looped.check()
        assert looped.schedule.in_flight == one["in_flight"]
        assert len(precedence_order(looped.schedule)) == len(looped.schedule.passes)
    assert sum(one["iteration"] is None for one in replays) == 3
    assert len(replays) == 40


def test_deadlocks_of_the_reference_are_found(shared_reference: Path) -> None:
    """The passes named wait for each other: each comes later in its row, or needs the one named after it."""
    for one in json.loads((shared_reference / "pfeife.json").read_text())["deadlocks"]:
        keys = ("devices", "micro_batches", "loops", "loop_batch", "prefetch")
        schedule = LoopedSchedule(*(one[key] for key in keys)).schedule
        with pytest.raises(Deadlock, match="passes wait for each other") as caught:
            precedence_order(schedule)
        assert caught.value.exit_code == 1
        assert "change the order of the passes, or prefetch less" in str(caught.value)
        place = {other: (d, i) for d, row in enumerate(schedule.rows) for i, other in enumerate(row)}
        for part in caught.value.problem.split("…")[::2]:
            named = [read_pass(name) for name in re.findall(r"[0-9]+[FB][0-9]+", part)]
            for at, awaited in pairwise(named):
                (device, index), (other, before) = place[at], place[awaited]
                assert awaited in needed(at, schedule) or (device == other and before < index)


@pytest.mark.parametrize(
    ("numbers", "parameter", "said"),
    [
        ((0, 4, 1, 4, ()), "devices", "at least 1"),
        ((2, 0, 1, 4, (0, 0)), "micro_batches", "at least 1"),
        ((2, 4, 0, 4, (0, 0)), "loops", "at least 1"),
        ((2, 4, 1, 0, (0, 0)), "loop_batch", "at least 1"),
        ((2, 4, 1, 4, (0,)), "prefetch", "1 number for 2 devices; give one for each device"),
        ((2, 4, 1, 4, (0, -1)), "prefetch", "at least 0"),
        ((4, 8, 1, 8, (0, 0, 0, 4)), "prefetch", "devices run 4, 3, 2, 5 forward passes before their first backward"),
        ((2, 2_000_000, 1, 1, (0, 0)), "micro_batches", "2 stages make more than 4,000,000 passes"),
    ],
)
def test_numbers_that_make_none(numbers: tuple[int, int, int, int, tuple[int, ...]], parameter: str, said: str) -> None:
    """The message names the parameter."""
    with pytest.raises(InputError) as caught:
        LoopedSchedule(*numbers).check()
    assert caught.value.parameter == parameter
    assert said in str(caught.value)


def test_kept_micro_batches_of_halves_are_freed_by_the_half_of_weights() -> None:
    """The half I keeps activations, the half W frees them."""
    row = [Pass(0, PassKind(kind), m) for kind, m in ((0, 0), (2, 0), (0, 1), (3, 0), (2, 1), (3, 1))]
    assert PassSchedule.build([row]).in_flight == [2]
