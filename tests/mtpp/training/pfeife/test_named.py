"""Named schedules: those of the reference, those of PyTorch's classes, and names and numbers that make none."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from torch_schedules import torch_order, torch_order_of_one_loop

from mtpp.errors import InputError
from mtpp.names import SCHEDULES
from mtpp.training.pfeife.looped import LoopedSchedule
from mtpp.training.pfeife.named import looped_of_name, named_schedule
from mtpp.training.pfeife.precedence import needed, precedence_order
from mtpp.training.pfeife.schedule import PassKind, PassSchedule


def rows(schedule: PassSchedule) -> list[list[str]]:
    """Return the passes of each device as they are written."""
    return [[one.name for one in row] for row in schedule.rows]


def iteration(schedule: PassSchedule) -> int:
    """Return the end of the last pass if forward passes take 1, backward passes 2, and hand-overs nothing."""
    before = {after: one for row in schedule.rows for one, after in pairwise(row)}
    end: dict[Any, int] = {}
    for one in precedence_order(schedule):
        awaited = [*needed(one, schedule), *([before[one]] if one in before else [])]
        end[one] = max((end[other] for other in awaited), default=0) + 1 + (one.kind == PassKind.BACKWARD)
    return max(end.values())


@pytest.fixture(scope="module")
def known(shared_reference: Path) -> dict[str, Any]:
    """Return the answers known for schedules."""
    document: dict[str, Any] = json.loads((shared_reference / "pfeife.json").read_text())
    return document


def test_schedules_of_the_reference_are_met(known: dict[str, Any]) -> None:
    """Passes, kept micro-batches and iterations, as the paper's appendix B.2 prints them and as they should be."""
    for name, answer in known["named"].items():
        numbers = (answer[key] for key in ("micro_batches", "loops", "loop_batch", "prefetch"))
        looped = LoopedSchedule(4, *numbers)
        looped.check()
        if name in SCHEDULES:
            found = looped_of_name(name, 4, answer["micro_batches"], answer["loops"])
            assert found is not None
            assert found.prefetch == tuple(answer["prefetch"])
            assert (found.loop_batch, found.warm_up) == (answer["loop_batch"], looped.warm_up)
            named = named_schedule(name, 4, answer["micro_batches"], answer["loops"])
            assert (named.name, named.rows) == (name, looped.schedule.rows)
        assert rows(looped.schedule) == answer["order"]
        assert looped.schedule.in_flight == answer["in_flight"]
        assert iteration(looped.schedule) == answer["iteration_with_forward_1_backward_2"]
    assert len(known["named"]) == 7


def test_the_paper_prints_too_small_a_loop_batch_for_breadth_first(known: dict[str, Any]) -> None:
    """Breadth-first needs all micro-batches in a loop: with 4 of 8 an iteration takes 213 units, not 105."""
    answers = known["named"]
    printed, meant = (answers[name] for name in ("bfs-as-printed", "bfs"))
    assert (printed["loop_batch"], meant["loop_batch"]) == (4, 8)
    as_printed = LoopedSchedule(4, 8, 4, 4, (4, 5, 6, 7)).schedule
    assert (iteration(as_printed), iteration(named_schedule("bfs", 4, 8, 4))) == (213, 105)
    forward = [[one.kind for one in row] for row in as_printed.rows]
    assert all(kinds != sorted(kinds) for kinds in forward)


def test_terapipe_as_printed_is_none() -> None:
    """TeraPipe runs all forward passes first; as printed, backward passes begin before the last 8 forward passes."""
    printed = LoopedSchedule(4, 8, 2, 4, (0, 1, 2, 3))
    assert printed.warm_up == (8, 8, 8, 8)
    assert rows(printed.schedule)[0][8:12] == ["4B0", "0F4", "4B1", "0F5"]
    assert iteration(printed.schedule) > iteration(named_schedule("bfs", 4, 8, 2))


@pytest.mark.parametrize(("name", "loops"), [("interleaved", 1), ("interleaved", 3), ("zero-bubble", 2)])
def test_all_names_run_on_any_numbers(name: str, loops: int) -> None:
    """No named schedule waits for itself, on more or fewer micro-batches than devices."""
    for devices, micro_batches in product(range(1, 6), range(1, 11)):
        for one, count in ((name, loops), ("gpipe", 1), ("1f1b", 1), ("bfs", loops)):
            if one == name and micro_batches % max(1, micro_batches // devices):
                continue
            schedule = named_schedule(one, devices, micro_batches, count)
            built = PassSchedule.build(schedule.rows)
            assert (built.devices, built.micro_batches) == (devices, micro_batches)
            assert (schedule.micro_batches, schedule.stages) == (micro_batches, count * devices)
            assert set(precedence_order(schedule)) == schedule.passes
            assert schedule.halves == (one == "zero-bubble")


def test_halves_of_weights_come_later_on_later_devices() -> None:
    """Device d runs the half W so many turns after the half I as it has devices before it."""
    schedule = named_schedule("zero-bubble", 2, 2, 1)
    assert rows(schedule) == [
        ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"],
        ["1F0", "1I0", "1F1", "1I1", "1W0", "1W1"],
    ]
    assert schedule.in_flight == [2, 2]
    assert looped_of_name("zero-bubble", 2, 2, 1) is None


NUMBERS = [(devices, b, n) for devices in range(1, 6) for b in range(1, 13) for n in range(1, 4)]


@pytest.mark.parametrize(
    ("name", "class_name"),
    [("interleaved", "ScheduleInterleaved1F1B"), ("zero-bubble", "ScheduleInterleavedZeroBubble")],
)
def test_schedules_equal_those_of_torch(name: str, class_name: str) -> None:
    """Pass by pass; what PyTorch refuses is refused, with a number that it takes."""
    refused = 0
    for devices, micro_batches, loops in NUMBERS:
        if micro_batches % max(1, micro_batches // devices):
            refused += 1
            with pytest.raises(ValueError, match="multiple of the number of rounds"):
                torch_order(class_name, devices, micro_batches, loops)
            with pytest.raises(InputError) as caught:
                named_schedule(name, devices, micro_batches, loops)
            assert caught.value.parameter == "micro_batches"
            assert caught.value.remedy == f"use a multiple of the {devices} devices"
            micro_batches = -(-micro_batches // devices) * devices
        found = rows(named_schedule(name, devices, micro_batches, loops))
        assert found == torch_order(class_name, devices, micro_batches, loops), (devices, micro_batches, loops)
    assert refused


@pytest.mark.parametrize(("name", "class_name"), [("gpipe", "ScheduleGPipe"), ("1f1b", "Schedule1F1B")])
def test_schedules_of_one_loop_equal_those_of_torch(name: str, class_name: str) -> None:
    """Pass by pass, where PyTorch can write them down: its 1F1B counts the last device's micro-batches from 1."""
    for devices, micro_batches, _ in NUMBERS:
        if micro_batches >= devices:
            compared = devices - (name == "1f1b")
            found = rows(named_schedule(name, devices, micro_batches, 1))[:compared]
            assert found == torch_order_of_one_loop(class_name, devices, micro_batches)[:compared]


@pytest.mark.parametrize(
    ("arguments", "parameter", "said"),
    [
        (("pipe", 2, 2, 1), "schedule", "unknown schedule 'pipe'; did you mean 'gpipe'?"),
        (("\x1b[2J", 2, 2, 1), "schedule", r"unknown schedule '\x1b[2J'"),
        (("bfs", 0, 2, 1), "devices", "at least 1"),
        (("bfs", 2, 0, 1), "micro_batches", "at least 1"),
        (("bfs", 2, 2, -1), "loops", "at least 1"),
        (("gpipe", 2, 2, 2), "loops", "the schedule gpipe has one loop, not 2; use 1, or the schedule bfs"),
        (("1f1b", 2, 2, 3), "loops", "the schedule 1f1b has one loop, not 3; use 1, or the schedule interleaved"),
        (("interleaved", 4, 9, 2), "micro_batches", "cannot run 9 micro-batches in 2 equal rounds; use a multiple of"),
        (("zero-bubble", 3, 7, 1), "micro_batches", "cannot run 7 micro-batches in 2 equal rounds"),
        (("bfs", 10**6, 10**6, 10**6), "micro_batches", "make more than 4,000,000 passes; use fewer"),
        (("zero-bubble", 1000, 1500, 1), "micro_batches", "make more than 4,000,000 passes"),
    ],
)
def test_names_and_numbers_that_make_none(arguments: tuple[str, int, int, int], parameter: str, said: str) -> None:
    """The message names the parameter, and what would do."""
    for function in (named_schedule, looped_of_name):
        with pytest.raises(InputError) as caught:
            function(*arguments)
        assert caught.value.parameter == parameter
        assert said in str(caught.value)
