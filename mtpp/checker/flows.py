"""Flows through the tensors of a graph: proofs of how much a stage cuts at least.

A flow says of a tensor t and an op u that touches it how many ticks x_t(u) go from u into t; out of it, if negative. It
is feasible if each tensor lets out what goes in, Σ_u x_t(u) = 0, and takes in no more than its capacity c_t, Σ_u max(0,
x_t(u)) ≤ c_t.

For the stages that hold an op v, an op u may also give any amount right to an op y that it *draws*, one that every
stage with u and v holds: y reads from u and leads to v, or u reads from y and v leads to y, for a stage has all that
lies on paths between its ops.

**What it proves.** Let a(u) be what op u gets less what it gives, and S a stage that holds v. A tensor that S does not
cut (all that touch it are in S, or none are) takes nothing out of S on balance, one that it cuts at most its capacity;
what is drawn never leaves S. So Σ_{u ∈ S} −a(u) ≤ c(S), the capacities of all that S cuts together, and

    c(S) ≥ −a(v) − Σ_{u ∈ S, u ≠ v} a(u).                                                    (1)

That no op gets more than it may is for those who use it to check.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mtpp.checker.merged import MergedGraph
from mtpp.checker.paths import Paths
from mtpp.document_shape import Path, refuse, signed_rows, whole

Flow = list[list[int]]
"""Rows of a tensor, then by turns an op and the amount that goes from it into the tensor."""

Drawn = list[list[int]]
"""Rows of an op, an op that it draws, and the amount that it gives it."""


def check_flow(value: Any, path: Path) -> None:
    """Take a list of rows ``[tensor, op, amount, op, amount, …]``."""
    signed_rows(value, path)
    for i, row in enumerate(value):
        if len(row) % 2 == 0:
            refuse("a row needs a tensor, then an op and an amount each", (*path, i))
        if row[0] < 0 or any(op < 0 for op in row[1::2]):
            for j in (0, *range(1, len(row), 2)):
                whole()(row[j], (*path, i, j))


def check_drawn(value: Any, path: Path) -> None:
    """Take a list of rows ``[op, op, amount]``, amounts above 0."""
    signed_rows(value, path)
    for i, row in enumerate(value):
        if len(row) != 3:
            refuse("a row needs an op, the op that it gives to, and an amount", (*path, i))
        for j in range(2):
            whole()(row[j], (*path, i, j))
        if row[2] < 1:
            refuse(f"{row[2]} is not above 0", (*path, i, 2))


class FlowChecker:
    """Checks flows through one graph.

    Attributes
    ----------
    paths
        Of the graph.

    Notes
    -----
    O(pins) once. O(rows) for a flow, and O(n + pins) if anything is drawn.
    """

    def __init__(self, graph: MergedGraph) -> None:
        self.paths = Paths(graph)
        self._group_of = graph.group_of
        self._transfer = [transfer for transfer, _, _ in graph.tensors]
        self._touching = [{producer, *consumers} for _, producer, consumers in graph.tensors]

    def group(self, op: int) -> int | None:
        """Return the group of an op of the file, None if there is no such op."""
        return self._group_of[op] if op < len(self._group_of) else None

    def absorbed(self, here: int, flow: Flow, drawn: Drawn, scale: int = 1, divisor: int = 1) -> dict[int, int] | str:
        """Return what each group that a flow for the stages of group *here* mentions gets, or what is wrong with it.

        Parameters
        ----------
        flow, drawn
            As :func:`check_flow` and :func:`check_drawn` take them; ops by any number in the file, tensors by their
            place in the graph.
        scale, divisor
            A tensor's capacity is its transfer times *scale* / *divisor*, rounded down.
        """
        absorbed: defaultdict[int, int] = defaultdict(int)
        seen: set[int] = set()
        for tensor, *moves in flow:
            if tensor >= len(self._transfer):
                return f"there is no tensor {tensor} between ops"
            if tensor in seen:
                return f"tensor {tensor} has two rows"
            seen.add(tensor)
            entering = balance = 0
            for op, amount in zip(moves[::2], moves[1::2], strict=True):
                group = self.group(op)
                if group is None:
                    return f"there is no op {op}"
                if group not in self._touching[tensor]:
                    return f"op {op} does not touch tensor {tensor}"
                absorbed[group] -= amount
                balance += amount
                entering += max(0, amount)
            if balance != 0:
                return f"what goes into tensor {tensor} and out of it differs by {balance}"
            capacity = scale * self._transfer[tensor] // divisor
            if entering > capacity:
                return f"{entering} goes into tensor {tensor}, whose capacity is {capacity}"
        fault = self._draw(absorbed, here, drawn) if drawn else None
        return absorbed if fault is None else fault

    def _draw(self, absorbed: defaultdict[int, int], here: int, drawn: Drawn) -> str | None:
        before, after = self.paths.leading_to(here), self.paths.reached_from(here)
        for op, other, amount in drawn:
            giver, taker = self.group(op), self.group(other)
            if giver is None or taker is None:
                return f"there is no op {op if giver is None else other}"
            onward = taker in before and taker in self.paths.after[giver]
            backward = taker in after and taker in self.paths.before[giver]
            if not onward and not backward:
                return f"op {op} does not draw op {other}"
            absorbed[giver] -= amount
            absorbed[taker] += amount
        return None
