"""Gradients that training computes in each op of a graph, from the parameters that it says are trained.

Part of the independent verifier (:mod:`mtpp.checker.plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from mtpp.checker.graph import TickGraph
from mtpp.errors import InputError


class Gradients(NamedTuple):
    """Bytes of an op's parameters that are trained, and the part of its backward pass that runs."""

    parameters: int
    part: Fraction

    @property
    def runs(self) -> bool:
        """True if it has a backward pass."""
        return self.part > 0 or self.parameters > 0


def gradients_of(graph: TickGraph, ops: Sequence[dict[str, Any]]) -> list[Gradients]:
    """Return what is trained in each op, and which gradients follow from it where the graph does not state them."""
    before: list[list[int]] = [[] for _ in ops]
    for _, u, v in graph.edges():
        before[v].append(u)
    found = [Gradients(0, Fraction(0))] * len(ops)
    for v in graph.order:
        op, size = ops[v], graph.param_bytes[v]
        parameters = op.get("trainable_bytes", size)
        flows = any(found[u].runs for u in before[v])
        part = Fraction(flows)
        if size > 0:
            part = Fraction(flows + (parameters > 0), 2)
        if "backward_share" in op:
            part = Fraction(*op["backward_share"].as_integer_ratio())
        if parameters > size or part > 1:
            raise InputError("more than all of it is trained", source="model", where=f"/ops/{v}")
        found[v] = Gradients(parameters, part)
    return found
