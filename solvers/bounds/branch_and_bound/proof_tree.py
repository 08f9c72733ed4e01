"""The cases of a proof by branch and bound, and the multipliers that refute them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mtpp.solvers.bounds.branch_and_bound.blocks import Blocks
from mtpp.solvers.bounds.branch_and_bound.multipliers import Multipliers

_NEARLY = 0.8
"""Of the bytes that a document may have: sizes are estimates."""

_BRANCH_BYTES = 30
"""About what two nodes and the branch to them take in a document."""


@dataclass
class _Node:
    """A case.

    Attributes
    ----------
    steps
        Multipliers that are applied one after the other.
    branch
        Op, boundary (from 0 on), and the numbers of the nodes where the op is outside and inside.
    refuted
        Whether there is no partition in it.
    """

    steps: list[Multipliers] = field(default_factory=list)
    branch: tuple[int, int, int, int] | None = None
    refuted: bool = False


class ProofTree:
    """Nodes by number: the first one stands for all partitions, the two of a branch for the cases of one y.

    Parameters
    ----------
    most_bytes
        Of the document; multipliers of one that is certainly longer are not kept.
    """

    def __init__(self, blocks: Blocks, most_bytes: int) -> None:
        self._too_long = False
        self._blocks = blocks
        self._most_bytes = most_bytes
        self._bytes = 0
        self._nodes = [_Node()]

    @property
    def nearly_too_long(self) -> bool:
        """Whether the document is about as long as it may be, or longer."""
        return self._bytes > _NEARLY * self._most_bytes

    def branch(self, node: int, op: int, b: int) -> tuple[int, int]:
        """Divide a case by an op and a boundary (from 0 on); return the nodes where the op is outside and inside."""
        sides = len(self._nodes), len(self._nodes) + 1
        self._nodes[node].branch = op, b, *sides
        self._nodes += [_Node(), _Node()]
        self._bytes += _BRANCH_BYTES
        return sides

    def keep(self, node: int, multipliers: Multipliers) -> None:
        """Apply multipliers in a case."""
        self._bytes += multipliers.size
        if self._bytes > 2 * self._most_bytes and not self._too_long:  # sizes are estimates
            self._too_long = True
            for one in self._nodes:
                one.steps.clear()
        if not self._too_long:
            self._nodes[node].steps.append(multipliers)

    def refute(self, node: int) -> None:
        """Say that there is no partition in a case."""
        self._nodes[node].refuted = True

    def most_refuted(self, most: int, of_case: Mapping[int, int]) -> int:
        """Return the most that stages may cost so that all cases are refuted, −1 if one is of unknown cost.

        Parameters
        ----------
        most
            For which the cases are refuted that are said to be.
        of_case
            For which open cases are, by node.
        """
        least, reached = most, [0]
        while reached:
            number = reached.pop()
            node = self._nodes[number]
            if node.refuted:
                continue
            if number in of_case or node.branch is None:
                least = min(least, of_case.get(number, -1))
            else:
                reached += node.branch[2:]
        return least

    def document(self, cutoff: int, last: Mapping[int, Multipliers]) -> dict[str, Any] | None:
        """Return the proof that there is no partition below a cutoff, None if it is longer than it may be.

        Parameters
        ----------
        last
            Multipliers that refute open cases, by node.
        """
        if self._too_long:
            return None
        blocks, nodes = self._blocks, []
        for number, node in enumerate(self._nodes):
            steps = list(node.steps)
            if number in last and (not steps or steps[-1] is not last[number]):
                steps.append(last[number])
            branch = None
            if node.branch is not None:
                op, b, *sides = node.branch
                branch = [blocks.names[op], b + 1, *sides]
            nodes.append([[step.document(blocks) for step in steps], branch])
        proof: dict[str, Any] = {
            "cutoff": cutoff,
            "streamed": blocks.weights.streamed,
            "blocks": list(blocks.stages),
            "nodes": nodes,
        }
        if blocks.anchor is not None:
            proof["anchor"] = [blocks.names[blocks.anchor[0]], blocks.anchor[1]]
        if blocks.heavy is not None:
            proof["heavy"] = blocks.heavy
        if blocks.shares is not None:
            proof["weights"] = blocks.shares.document()
        size = len(json.dumps(proof, separators=(",", ":")))
        return proof if size <= self._most_bytes else None
