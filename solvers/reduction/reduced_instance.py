"""An instance after merges that keep its optimum: the way there, the way back, and the record for proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtpp.inference.contraction import Contraction, lift_through
from mtpp.inference.graph import Int32Array
from mtpp.inference.instance import Instance
from mtpp.inference.partition import Partition

PAIR_RULES = ("pull-down", "pull-up", "first-reader", "last-producer")
"""In the order in which the kernel numbers them."""

REGION_RULES = ("region-down", "region-up")

ALL_RULES = PAIR_RULES + REGION_RULES


class Reduction(NamedTuple):
    """One round of merges.

    Attributes
    ----------
    contraction
        The smaller instance and the way back.
    leader
        The op of each group that stays where it is while the others move to it, int32, shape (groups,).
    target
        The op that each op of the larger instance moves to, itself if it stays, int32, shape (n,).
    rule
        Number in :data:`ALL_RULES` of the rule that says so, −1 for those that stay, int32, shape (n,).
    """

    contraction: Contraction
    leader: Int32Array
    target: Int32Array
    rule: Int32Array

    def carry(self, partition: Partition) -> Partition:
        """Return a partition of the smaller instance that is none worse than *partition* of the larger one."""
        return partition.over(self.contraction.instance, partition.assignment[self.leader])

    def moves(self) -> list[tuple[str, list[int], int]]:
        """Return rule, ops that move and leader of each merge, in an order that keeps what the rules promise.

        Notes
        -----
        Leaders that move themselves move first. O(n).
        """
        target = self.target.tolist()
        rule = self.rule.tolist()
        done = [to == op for op, to in enumerate(target)]
        found: list[tuple[str, list[int], int]] = []
        regions: dict[int, list[int]] = {}
        for op in range(len(target)):
            way = []
            while not done[op]:
                done[op] = True
                way.append(op)
                op = target[op]
            for mover in reversed(way):
                name, leader = ALL_RULES[rule[mover]], target[mover]
                if name in PAIR_RULES:
                    found.append((name, [mover], leader))
                elif leader in regions:
                    regions[leader].append(mover)
                else:
                    regions[leader] = [mover]
                    found.append((name, regions[leader], leader))
        return found


@dataclass(frozen=True, eq=False)
class ReducedInstance:
    """An instance and the rounds of merges that lead to a smaller one with the same optimum.

    Attributes
    ----------
    original
        The instance before all merges.
    rounds
        Each on the instance that the one before leads to, the first on :attr:`original`; empty if nothing was merged.
    """

    original: Instance
    rounds: tuple[Reduction, ...] = ()

    @property
    def instance(self) -> Instance:
        """The instance after all merges: :attr:`original` itself if there are none."""
        return self.rounds[-1].contraction.instance if self.rounds else self.original

    def carry(self, partition: Partition) -> Partition:
        """Return a partition of :attr:`instance` that is none worse than *partition* of :attr:`original`."""
        for merges in self.rounds:
            partition = merges.carry(partition)
        return partition

    def lift(self, partition: Partition) -> Partition:
        """Return a partition of :attr:`instance` as one of :attr:`original`; its stage costs are the same."""
        return lift_through([merges.contraction for merges in self.rounds], partition)

    def record(self, representative: Sequence[int] | None = None) -> list[list[str | int]]:
        """Write the merges of all rounds as data: for each the rule, the ops that move, and last the op they move to.

        Parameters
        ----------
        representative
            Names of the ops of :attr:`original` in the record; by default the first of the graph's ops that each of
            them stands for, by number in file order.

        Returns
        -------
        In an order in which each rule's condition holds on the graph as merged so far. An op stands for whatever it
        was merged with before.
        """
        record: list[list[str | int]] = []
        if not self.rounds:
            return record
        name = list(self.original.first_members.tolist() if representative is None else representative)
        for merges in self.rounds:
            record.extend([rule, *(name[op] for op in movers), name[leader]] for rule, movers, leader in merges.moves())
            name = [name[leader] for leader in merges.leader.tolist()]
        return record
