"""Comparisons of training runs: what counts as equal, as close, and as another result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mtpp.runtime.training.comparison import Compared, first_compared, losses_compared
from mtpp.runtime.training.results import BUFFER, GRADIENT, FirstStep, Key

WEIGHT: Key = (GRADIENT, "layer.weight")
COUNT: Key = (BUFFER, "norm.count")


class Held:
    """Tensors of the unsplit model, and of one process."""

    def __init__(self, own: Mapping[Key, Any], other: Mapping[Key, Any]) -> None:
        self.own, self.other = own, other

    def pairs(self, keys: Sequence[Key]) -> list[tuple[Key, Any, Any]]:
        """Return both."""
        return [(key, self.own.get(key), self.other[key]) for key in keys]


def gradient(own: Any, other: Any, *, copied: bool = False) -> Compared:
    """Compare one gradient that differs."""
    names = frozenset((WEIGHT[1],)) if copied else frozenset()
    first = FirstStep({WEIGHT: "b"}, names)
    return first_compared(FirstStep({WEIGHT: "a"}), [first], Held({WEIGHT: own}, {WEIGHT: other}))[GRADIENT]


def test_the_order_of_additions_is_no_difference() -> None:
    """Up to 1e-6 of the largest value, and no more."""
    ones = np.ones(4, np.float32)
    assert gradient(ones, ones * np.float32(1 + 5e-7)).holds
    assert not gradient(ones, ones * np.float32(1 + 5e-6)).holds


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_types_of_few_digits_round_more_where_copies_are_added_up(kind: Any) -> None:
    """One step of the type explains itself with tied weights only."""
    ones = np.ones(4, kind)
    next_one = ones * kind(1 + float(ml_dtypes.finfo(kind).eps))
    assert gradient(ones, next_one, copied=True).holds
    assert not gradient(ones, next_one).holds
    assert not gradient(ones, ones * kind(1.5), copied=True).holds


def test_what_was_nothing_is_another_value() -> None:
    """However small, where the unsplit model has zeros, nothing, or another shape."""
    tiny = np.full(4, 1e-20, np.float32)
    for own, other in ((tiny * 0, tiny), (None, tiny), (tiny, None), (tiny, tiny[:2]), (tiny, tiny * np.nan)):
        assert not gradient(own, other).holds


def test_what_no_process_has_differs() -> None:
    """A gradient or a written buffer that got lost is told; under another name of it it is there."""
    expected = FirstStep({WEIGHT: "a", COUNT: "c"}, changed=[[WEIGHT], [COUNT]])
    found = first_compared(expected, [FirstStep({WEIGHT: "a"})], Held({}, {}))
    assert found[GRADIENT] == Compared(1, 1, 0.0, None)
    assert found[BUFFER] == Compared(1, 0, math.inf, COUNT[1], holds=False)
    tied = FirstStep({WEIGHT: "a"}, changed=[[(GRADIENT, "tied.weight"), WEIGHT]])
    assert first_compared(tied, [FirstStep({WEIGHT: "a"})], Held({}, {}))[GRADIENT].holds


def test_losses_of_later_steps_may_differ_as_gradients_do() -> None:
    """Those of the first step may not: all weights are the same."""
    close, same = Compared(2, 1, 1e-3, "tied.weight"), Compared(2, 2, 0.0, None)
    losses, later, first = [[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.001]], [[1.001, 2.0], [1.0, 2.0]]
    assert losses_compared(losses, losses, same) == Compared(4, 4, 0.0, None)
    assert losses_compared(losses, later, close).holds
    assert not losses_compared(losses, [losses[0], [1.0, 2.01]], close).holds
    many, drifted = [[1.0]] * 400, [[1.0]] * 399 + [[1 + 5e-6]]
    assert losses_compared(many, drifted, Compared(2, 1, 5e-8, "tied.weight")).holds
    assert not losses_compared(many, drifted, same).holds
    assert not losses_compared(losses, later, same).holds
    differs = losses_compared(losses, first, close)
    assert (differs.holds, differs.exact, differs.worst) == (False, 3, "step 0, micro-batch 0")
