"""Reachability in a graph of merged ops, and ops that cannot share a stage because of it.

Stages never fall along an edge, so a stage with two ops has all ops on the paths between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from mtpp.checker.merged import MergedGraph

_BLOCK = 4096
"""Ops whose reach is followed at once."""


class Paths:
    """The edges of a graph between groups of ops.

    Attributes
    ----------
    before, after
        Groups that each one reads from, and that read from it.
    """

    def __init__(self, graph: MergedGraph) -> None:
        self.before: list[set[int]] = [set() for _ in graph.work]
        self.after: list[set[int]] = [set() for _ in graph.work]
        for _, producer, consumers in graph.tensors:
            self.after[producer].update(consumers)
            for reader in consumers:
                self.before[reader].add(producer)

    def leading_to(self, group: int) -> set[int]:
        """Return the groups from which a group can be reached, itself included."""
        return _reached(group, self.before)

    def reached_from(self, group: int) -> set[int]:
        """Return the groups that can be reached from a group, itself included."""
        return _reached(group, self.after)

    @cached_property
    def order(self) -> list[int] | None:
        """The groups in a topological order; None if there is a cycle."""
        missing = [len(groups) for groups in self.before]
        order = [group for group, count in enumerate(missing) if count == 0]
        for group in order:
            for other in self.after[group]:
                missing[other] -= 1
                if missing[other] == 0:
                    order.append(other)
        return order if len(order) == len(missing) else None

    @cached_property
    def leading(self) -> list[int]:
        """The groups that lead to each group, itself included, as bits of an integer: O(n·(n + edges)/64) steps."""
        return _closure(self.before, self.order)

    @cached_property
    def following(self) -> list[int]:
        """The groups that each group leads to, itself included, likewise."""
        return _closure(self.after, self.order and self.order[::-1])

    def parted(self, group: int, others: Sequence[int], weight: Sequence[int], most: int) -> set[int] | int:
        """Return those of some groups that never share a stage with a group.

        They are joined to it by a path, and what lies on all paths between the two, both included, has more weight
        than a stage may have.

        Returns
        -------
        All of *others*, or the first one found that may share a stage with the group.

        Notes
        -----
        What leads to a group that is parted by what comes after it is parted too, so only the groups nearest to
        *group* are looked at.
        """
        parted: set[int] = set()
        for near, far in ((self.before, self.after), (self.after, self.before)):
            around = _reached(group, near)
            place = {other: i for i, other in enumerate(_by_distance(group, near, far, around))}
            known: set[int] = set()
            for other in sorted((other for other in others if other in place), key=place.__getitem__):
                if other in known or other == group:
                    continue
                between = _reached(other, far, around)
                if sum(weight[inner] for inner in between) > most:
                    known |= _reached(other, near, blocked=known)
            parted |= known
        return next((other for other in others if other not in parted), parted.intersection(others))

    def sums(self, weight: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the weight of all that leads to each group, and of all that it leads to, itself included each time.

        Notes
        -----
        The graph has no cycle. Sets of up to 4096 groups are integers whose bits are counted once for each binary digit
        of the weights: O(n·(n + edges)/64) steps of one machine word, and O(n) memory.
        """
        assert self.order is not None
        return _sums(weight, self.order, self.before), _sums(weight, self.order[::-1], self.after)


def _reached(
    start: int, neighbours: Sequence[set[int]], within: set[int] | None = None, blocked: set[int] | None = None
) -> set[int]:
    reached = {start}
    stack = [start]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in reached and (within is None or other in within) and (not blocked or other not in blocked):
                reached.add(other)
                stack.append(other)
    return reached


def _closure(neighbours: Sequence[set[int]], order: Sequence[int] | None) -> list[int]:
    """Return what each group is joined to by paths through neighbours, which come first in *order* if there is one."""
    reach = [1 << group for group in range(len(neighbours))]
    changed = True
    while changed:
        changed = False
        for group in range(len(reach)) if order is None else order:
            found = reach[group]
            for other in neighbours[group]:
                found |= reach[other]
            changed |= order is None and found != reach[group]
            reach[group] = found
    return reach


def _by_distance(group: int, near: Sequence[set[int]], far: Sequence[set[int]], around: set[int]) -> list[int]:
    """Return the groups around one so that each comes after all that lie between it and that one."""
    missing = {other: len(far[other] & around) for other in around}
    order = [group]
    for other in order:
        for following in near[other]:
            missing[following] -= 1
            if missing[following] == 0:
                order.append(following)
    return order


def _sums(weight: Sequence[int], order: Sequence[int], before: Sequence[set[int]]) -> list[int]:
    totals = [0] * len(weight)
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        digits = [0] * max(weight[group].bit_length() for group in block)
        reach = [0] * len(weight)
        for bit, group in enumerate(block):
            reach[group] = 1 << bit
            for digit in range(weight[group].bit_length()):
                digits[digit] |= (weight[group] >> digit & 1) << bit
        for group in order[begin:]:
            for other in before[group]:
                reach[group] |= reach[other]
            totals[group] += sum((reach[group] & mask).bit_count() << digit for digit, mask in enumerate(digits))
    return totals
