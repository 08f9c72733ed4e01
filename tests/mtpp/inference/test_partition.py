"""Partition: acyclicity, and the numbering of blocks with arbitrary labels."""

from __future__ import annotations

import pytest

from mtpp.errors import InvalidPartition
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition
from mtpp.machine.device import Device
from mtpp.machine.link import Link
from mtpp.machine.machine import Machine

# a → b → d and a → c → d
DIAMOND = CostGraph.build(
    name="diamond",
    time_unit="1",
    ops=[Op(name, 1) for name in "abcd"],
    tensors=[
        Tensor("t", "a", ("b", "c"), transfer=1),
        Tensor("u", "b", ("d",), transfer=1),
        Tensor("v", "c", ("d",), transfer=1),
    ],
)


def _instance(k: int) -> Instance:
    return Instance.build(DIAMOND, Machine.uniform(k, Device("s", 1, 1, Link(1))))


def test_labels_in_pipeline_order_stay() -> None:
    """Stages that are numbered already, with gaps for empty ones, are not renumbered."""
    assert Partition.from_labels(_instance(5), [0, 2, 2, 4]).assignment.tolist() == [0, 2, 2, 4]
    assert Partition.from_labels(_instance(5), [0, 2, 2, 4]).empty_stages == [1, 3]


def test_labels_in_another_order_are_renumbered() -> None:
    """Blocks with arbitrary labels get numbers along the data flow, the least label first where there is a choice."""
    assert Partition.from_labels(_instance(4), [9, 7, 5, 3]).assignment.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("k", "labels", "problem"),
    [
        (2, [0, 1, 0, 0], "quotient graph is cyclic"),
        (2, [0, 1, 2, 2], "3 blocks were given, but k is 2"),
        (4, [3, 3, 3], "3 stages were given for 4 ops"),
    ],
)
def test_refuses_what_is_no_partition(k: int, labels: list[int], problem: str) -> None:
    """Cyclic quotients, too many blocks and missing ops are named."""
    make = Partition.from_labels if len(labels) == 4 else Partition.from_stages
    with pytest.raises(InvalidPartition, match=problem):
        make(_instance(k), labels)


@pytest.mark.parametrize(
    ("stages", "problem"),
    [([0, 0, 0, 9], "op 'd' is in stage 9"), ([1, 0, 1, 1], "op 'b' .stage 0. needs 'a', which runs later .stage 1.")],
)
def test_refuses_stages_that_do_not_follow_the_data(stages: list[int], problem: str) -> None:
    """An edge to an earlier stage and a stage out of range are named with their ops."""
    with pytest.raises(InvalidPartition, match=problem):
        Partition.from_stages(_instance(3), stages)
