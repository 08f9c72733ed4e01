"""Constants as the tensors that a file holds for them."""

from __future__ import annotations

from mtpp.formats.modelled.assembly import ops_of, shared_weights
from mtpp.formats.modelled.op_record import OpRecord
from mtpp.formats.modelled.parameter import Parameter
from mtpp.inference.weights import Weight


def test_a_constant_is_made_of_what_is_stored() -> None:
    """Each tensor once, on whichever ways it comes; what is made of nothing counts as it is made."""
    packed, scale, filled = Parameter("packed", 32), Parameter("scale", 4), Parameter("filled", 100, None)
    wide = Parameter("wide", 128, [packed, scale])
    both = Parameter("both", 128, [wide, Parameter("twice", 128, [wide, scale, filled])])
    assert packed.stored == {"packed": 32}
    assert wide.stored == {"packed": 32, "scale": 4}
    assert both.stored == {"packed": 32, "scale": 4, "filled": 100}
    assert Parameter("true", 0, ()).stored == {}


def test_a_long_chain_of_constants_is_gone_through_once() -> None:
    """Without recursion, and without the same tensors over and over."""
    chain = [Parameter("w", 8)]
    for i in range(100_000):
        chain.append(Parameter(f"c{i}", 16, [chain[-1], chain[-1]]))
    assert chain[-1].stored == {"w": 8}
    assert all(one.stored == {"w": 8} for one in chain[1:])


def test_what_several_ops_read_is_a_weight() -> None:
    """In the order of first readers; an op keeps what no other reads, and nothing is said of what has no bytes."""
    records = [
        OpRecord(parameters={"a": 5, "tied": 70, "empty": 0}),
        OpRecord(parameters={"s": 4, "b": 6, "c": 1, "empty": 0}),
        OpRecord(parameters={"tied": 70, "s": 4}),
    ]
    names = ["first", "second", "third"]
    weights = shared_weights(records, names)
    assert weights == [Weight("tied", 70, ["first", "third"]), Weight("s", 4, ["second", "third"])]
    assert [op.param_bytes for op in ops_of(records, names, weights)] == [5, 7, 0]
