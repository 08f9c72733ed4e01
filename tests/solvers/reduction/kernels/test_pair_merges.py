"""The kernel for pairs against the rules as they are stated, op by op."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from graph_strategies import NO_MEMORY, merging_graph

from mtpp.inference.instance import Instance
from mtpp.machine.machine import Machine
from mtpp.solvers.reduction.reduced_instance import PAIR_RULES
from mtpp.solvers.reduction.reduction import find_moves

ALL = np.ones(len(PAIR_RULES), dtype=np.uint8)


class Plain:
    """An instance as sets of pins."""

    def __init__(self, instance: Instance) -> None:
        offsets = instance.pin_offsets.tolist()
        self.tensors = [
            (int(cost), instance.pins[begin:end].tolist())
            for cost, begin, end in zip(instance.transfer, offsets[:-1], offsets[1:], strict=True)
        ]
        self.work = instance.work.tolist()
        self.readers = {v: {r for _, (u, *rest) in self.tensors if u == v for r in rest} for v in range(len(self.work))}
        self.producers = {v: {u for _, (u, *rest) in self.tensors if v in rest} for v in range(len(self.work))}

    def cut(self, ops: Iterable[int]) -> int:
        """Return the transfers of the tensors that the set of ops cuts."""
        inside = set(ops)
        return sum(cost for cost, pins in self.tensors if inside & set(pins) and not set(pins) <= inside)

    def reached(self, v: int, neighbours: dict[int, set[int]]) -> set[int]:
        """Return all ops on the way from one."""
        found: set[int] = set()
        ahead = [v]
        while ahead:
            new = neighbours[ahead.pop()] - found
            found |= new
            ahead += new
        return found

    def moves(self) -> set[tuple[int, str, int]]:
        """Return every op that may move, by which rule, and where to."""
        found = set()
        for only, several, neighbours in (
            ("pull-down", "first-reader", self.readers),
            ("pull-up", "last-producer", self.producers),
        ):
            for op, around in neighbours.items():
                for leader in around:
                    others = around - {leader}
                    pays = self.work[op] + self.cut([op, leader]) <= self.cut([leader])
                    if pays and others <= self.reached(leader, neighbours):
                        found.add((op, several if others else only, leader))
        return found


@pytest.mark.parametrize("seed", range(24))
def test_moves_are_those_of_the_rules(seed: int) -> None:
    """What the kernel finds is allowed, and it leaves an op alone only if it is nobody's follower or may not move."""
    instance = Instance.build(merging_graph(seed, 14), Machine.uniform(2, NO_MEMORY))
    target, rule = find_moves(instance, ALL, 1000)
    found = {(op, PAIR_RULES[rule[op]], int(target[op])) for op in range(14) if rule[op] >= 0}
    due = Plain(instance).moves()
    assert found <= due
    for op, _, leader in due:
        end = leader
        while target[end] != end:
            end = int(target[end])
        assert rule[op] >= 0 or end == op


def test_each_rule_can_be_left_out() -> None:
    """Only the rules that are allowed are used."""
    used = set()
    for seed in range(20):
        instance = Instance.build(merging_graph(seed, 14), Machine.uniform(2, NO_MEMORY))
        for number in range(len(PAIR_RULES)):
            allowed = np.zeros(len(PAIR_RULES), dtype=np.uint8)
            allowed[number] = 1
            _, rule = find_moves(instance, allowed, 1000)
            assert set(rule.tolist()) <= {-1, number}
            used |= set(rule.tolist())
    assert used == {-1, 0, 1, 2, 3}


def test_a_search_that_takes_too_long_is_given_up() -> None:
    """Fewer steps find fewer first readers and last producers, and never anything that is not allowed."""
    counts = []
    for steps in (0, 3, 1000):
        several = 0
        for seed in range(30):
            instance = Instance.build(merging_graph(seed, 14), Machine.uniform(2, NO_MEMORY))
            target, rule = find_moves(instance, ALL, steps)
            found = {(op, PAIR_RULES[rule[op]], int(target[op])) for op in range(14) if rule[op] >= 0}
            assert found <= Plain(instance).moves()
            several += int(np.count_nonzero(rule >= 2))
        counts.append(several)
    assert counts[0] == 0
    assert counts[1] < counts[2]
