"""Values that cannot be changed are the same values in all else."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from mtpp.inference.frozen import frozen

VALUE = {"a": [1, {"b": [2]}], "c": "text"}


def test_equal_in_json_and_in_pickles() -> None:
    """They compare, print, copy and pickle as what they were made of."""
    value = frozen(VALUE)
    assert value == VALUE
    assert json.dumps(value) == json.dumps(VALUE)
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == VALUE


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(a=1),
        lambda value: value.pop("a"),
        lambda value: value.__setitem__("a", 1),
        lambda value: value.__delitem__("a"),
        lambda value: value.setdefault("d", 1),
        lambda value: value["a"].append(1),
        lambda value: value["a"].sort(),
        lambda value: value["a"][1].clear(),
        lambda value: value["a"][1]["b"].__setitem__(0, 1),
    ],
)
def test_no_change_at_any_depth(change: Callable[[Any], Any]) -> None:
    """Copies and pickles of them included."""
    for value in (frozen(VALUE), pickle.loads(pickle.dumps(frozen(VALUE)))):
        with pytest.raises(TypeError, match="cannot be changed"):
            change(value)
        assert value == VALUE
