"""Elements of small tensors: certain ones, assumed ones, and those that only a run tells."""

from __future__ import annotations

import numpy as np
import pytest

from mtpp.formats.onnx.estimates.partial_values import PartialValue, Sureness, propagated

UNKNOWN, ASSUMED, CERTAIN = Sureness


def _value(numbers, sureness, dtype=np.int64):
    return PartialValue(np.array(numbers, dtype=dtype), np.array(sureness, dtype=np.int8))


def _certain(*numbers):
    return PartialValue.uniform(np.array(numbers, dtype=np.int64), CERTAIN)


SHAPE = _value([4, 8], [ASSUMED, CERTAIN])
COMPUTED = _value([1, 8], [UNKNOWN, CERTAIN])


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "expected"),
    [
        ("Gather", [SHAPE, _certain(1)], {}, [8]),
        ("Gather", [SHAPE, _certain(0)], {}, [None]),
        ("Concat", [SHAPE, _certain(3)], {"axis": 0}, [None, 8, 3]),
        ("Slice", [SHAPE, _certain(1), _certain(2)], {}, [8]),
        ("Unsqueeze", [SHAPE, _certain(0)], {}, [None, 8]),
        ("Cast", [SHAPE], {"to": 1}, [None, 8.0]),
        ("Mul", [SHAPE, _certain(2, 2)], {}, [None, 16]),
        ("Equal", [SHAPE, _certain(4, 8)], {}, [None, True]),
        ("Where", [_certain(0, 1), SHAPE, _certain(5, 6)], {}, [5, 8]),
        ("Where", [_certain(1, 0), SHAPE, _certain(5, 6)], {}, [None, 6]),
        ("Where", [SHAPE, _certain(5, 6), _certain(7, 8)], {}, [None, 6]),
        ("ReduceProd", [SHAPE], {}, [None]),
        ("Concat", [COMPUTED, _certain(3)], {"axis": 0}, [None, 8, 3]),
    ],
)
def test_an_element_is_no_surer_than_those_it_is_computed_from(kind, inputs, attributes, expected):
    """Moved elements keep what is known of them; combined ones are as sure as the least sure."""
    results = propagated(kind, inputs, attributes, 1)
    assert results is not None
    assert results[0].known(CERTAIN) == expected


def test_estimates_are_numbers_of_their_own():
    """What is assumed is computed with like what is certain, and stays assumed."""
    results = propagated("ReduceProd", [SHAPE], {}, 1)
    assert results is not None
    assert results[0].known(ASSUMED) == [32]
    assert results[0].least is ASSUMED


def test_nothing_follows_from_what_is_unknown():
    """A product of an unknown element is unknown, as is what an unknown index picks."""
    assert propagated("ReduceProd", [COMPUTED], {}, 1) is None
    assert propagated("Gather", [SHAPE, _value([0], [UNKNOWN])], {}, 1) is None
