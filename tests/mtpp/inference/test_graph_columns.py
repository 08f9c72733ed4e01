"""Columns: what is checked all at once is exactly what is checked row by row."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mtpp.errors import InputError
from mtpp.inference.graph_columns import OpColumns, TensorColumns, check_rows, checked_links

# Mostly right, so that the later checks are reached as well.
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
OTHER_NAMES = st.sampled_from(["", "a", "f"])
COSTS = st.sampled_from([0, 1, Fraction(1, 3), 2**70])
BAD_COSTS = st.sampled_from([-1, Fraction(-1, 3), True, 0.5, "1"])
SIZES = st.sampled_from([0, 1, 2**62 - 1])
BAD_SIZES = st.sampled_from([-1, 2**62, 2**70, True, Fraction(1, 2), 1.0])


def _mostly(draw: st.DrawFn, good: st.SearchStrategy[object], bad: st.SearchStrategy[object]) -> object:
    return draw(bad if draw(st.integers(0, 30)) == 0 else good)


@st.composite
def columns(draw: st.DrawFn) -> tuple[OpColumns, TensorColumns]:
    """Draw a graph that may be broken in any way that columns can be, and often in none."""
    ops = [name if draw(st.integers(0, 30)) else draw(OTHER_NAMES) for name in "abcde"]
    m = draw(st.integers(0, 4))
    tensors = [str(t) if draw(st.integers(0, 30)) else "0" for t in range(m)]
    producers = [_mostly(draw, st.sampled_from("ab"), OTHER_NAMES) for _ in range(m)]
    readers = [draw(st.lists(st.sampled_from("cde"), max_size=3, unique=True)) for _ in range(m)]
    for names in readers:
        if draw(st.integers(0, 30)) == 0:
            names.append(draw(NAMES | OTHER_NAMES))
    sizes = [None if draw(st.integers(0, 3)) == 0 else _mostly(draw, SIZES, BAD_SIZES) for _ in range(m)]
    transfers = [None if draw(st.integers(0, 5)) == 0 else _mostly(draw, COSTS, BAD_COSTS) for _ in range(m)]
    return (
        OpColumns(
            ops,
            [_mostly(draw, COSTS, BAD_COSTS) for _ in ops],  # type: ignore[arg-type]
            [""] * len(ops),
            [_mostly(draw, SIZES, BAD_SIZES) for _ in ops],  # type: ignore[arg-type]
        ),
        TensorColumns(tensors, producers, readers, sizes, transfers),  # type: ignore[arg-type]
    )


@settings(max_examples=500)
@given(columns(), st.booleans())
def test_faults_are_the_same_all_at_once(drawn: tuple[OpColumns, TensorColumns], abstract: bool) -> None:
    """A graph is refused for the fault that a look at every row finds first, and never without one."""
    ops, tensors = drawn
    faults = [_fault_of(check, ops, tensors, abstract) for check in (check_rows, checked_links)]
    assert faults[0] == faults[1]
    if faults[0] is None:
        links = checked_links(ops, tensors, abstract=abstract)
        assert [ops.name[u] for u in links.producer] == tensors.producer
        readers = [[ops.name[v] for v in links.consumers[i:j]] for i, j in pairwise(links.offsets.tolist())]
        assert readers == tensors.consumers


def _fault_of(check: Callable[..., object], ops: OpColumns, tensors: TensorColumns, abstract: bool) -> str | None:
    try:
        check(ops, tensors, abstract=abstract)
    except InputError as fault:
        return str(fault)
    return None
