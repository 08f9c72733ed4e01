"""Precedence of passes: dependencies beside those of the stages, and cycles told in few words."""

from __future__ import annotations

import pytest

from mtpp.errors import Deadlock, InputError
from mtpp.training.pfeife.named import named_schedule
from mtpp.training.pfeife.precedence import needed, precedence_order
from mtpp.training.pfeife.schedule import PassSchedule, read_pass


def schedule_of(*rows: str, dependencies: tuple[str, ...] = ()) -> PassSchedule:
    """Return a schedule from passes between spaces; dependencies are pairs of them."""
    pairs = [tuple(map(read_pass, pair.split())) for pair in dependencies]
    return PassSchedule.build([list(map(read_pass, row.split())) for row in rows], pairs)  # type: ignore[arg-type]


def test_passes_wait_for_neighbours_and_halves() -> None:
    """Forward for the stage before, backward for the one behind, its half I if it has halves; W for I."""
    schedule = schedule_of("0F0 0B0", "1F0 1I0 1W0")
    waits = {one.name: [other.name for other in needed(one, schedule)] for one in schedule.passes}
    assert waits == {"0F0": [], "1F0": ["0F0"], "1I0": ["1F0"], "1W0": ["1I0"], "0B0": ["0F0", "1I0"]}


def test_dependencies_are_kept() -> None:
    """A dependency comes before the pass that waits for it; without it the order is another one."""
    rows = ("0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1")
    names = [one.name for one in precedence_order(schedule_of(*rows))]
    assert names.index("0F1") < names.index("1F0")
    names = [one.name for one in precedence_order(schedule_of(*rows, dependencies=("1F0 0F1",)))]
    assert names.index("1F0") < names.index("0F1")


@pytest.mark.parametrize(
    ("rows", "dependencies", "cycle"),
    [
        (("0B0 0F0",), (), "0B0 waits for 0F0, which waits for 0B0"),
        (("0F0 0W0 0I0",), (), "0W0 waits for 0I0, which waits for 0W0"),
        (("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"), (), "waits for 1B0, which waits for 1F1, which waits for 0F1"),
        (("0F0 0B0", "1F0 1B0"), ("1F0 0F0",), "0F0 waits for 1F0, which waits for 0F0"),
    ],
)
def test_cycles_are_told(rows: tuple[str, ...], dependencies: tuple[str, ...], cycle: str) -> None:
    """The message names the passes that wait for each other, the first one again at the end."""
    with pytest.raises(Deadlock) as caught:
        precedence_order(schedule_of(*rows, dependencies=dependencies))
    assert cycle in str(caught.value)


def test_long_cycles_are_cut() -> None:
    """The middle of a long cycle is a number."""
    rows = [[one.name for one in row] for row in named_schedule("gpipe", 12, 1, 1).rows]
    schedule = schedule_of(*map(" ".join, rows), dependencies=("0B0 11F0",))
    with pytest.raises(Deadlock, match=r"which waits for … \d+ more …, which waits for"):
        precedence_order(schedule)


@pytest.mark.parametrize("text", ["", "0X0", "F0", "0F", "00F0", "0F01", "-1F0", "0f0", "0F0 ", "٣F0", "12345678F0"])
def test_words_that_are_no_passes(text: str) -> None:
    """The message shows the word."""
    with pytest.raises(InputError, match=r"is no pass; write 2F0 for the forward pass of stage 2"):
        read_pass(text)
    assert read_pass("1234567W7654321").name == "1234567W7654321"
