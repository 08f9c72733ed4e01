"""Assumptions of several models in one table."""

from __future__ import annotations

from mtpp.inference.model_file import assumptions_of_models


def test_each_is_told_once_with_the_models_that_it_is_about() -> None:
    """Without names where it is about all, whatever number of rows each has."""
    same = ("edges without a size take their cost",)
    assert assumptions_of_models([("a", same), ("b", same), ("a", same)]) == list(same)
    assert assumptions_of_models([("a", ("x",)), ("b", ())]) == ["a: x"]
    assert assumptions_of_models([("a", ("x",)), ("b", ("x",)), ("c", ("x",)), ("d", ())]) == ["a, b and 1 more: x"]
    assert assumptions_of_models([]) == []


def test_a_long_list_is_cut() -> None:
    """A table is about its figures; the document has all."""
    told = assumptions_of_models((f"m{i}", (f"x{i}",)) for i in range(20))
    assert len(told) == 9
    assert told[-1] == "… 12 more"
