"""Ops of a graph of which only some parameters are trained: gradients that their backward passes compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mtpp.inference.graph import CostGraph
from mtpp.units import Exact, ceil_ratio

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class TrainedOps:
    """Training of each op of a graph, in file order.

    Attributes
    ----------
    trainable_bytes
        Of the parameters that are trained.
    share
        Part of the backward pass that has to run, from 0 to 1.
    """

    trainable_bytes: Sequence[int]
    share: Sequence[Exact]

    @classmethod
    def of(cls, graph: CostGraph) -> TrainedOps | None:
        """Return what a graph states, and what follows for the rest of it; None where it states nothing.

        An op without ``trainable_bytes`` trains all of its parameters. One without ``backward_share`` computes the
        gradient of its parameters if any is trained, and of what it reads if anything is trained before it: a half each
        if it has parameters, else all of its backward pass is the latter.
        """
        stated, shares = getattr(graph, "trainable_bytes", ()), getattr(graph, "backward_share", ())
        if not stated and not shares:
            return None
        sizes = graph.param_bytes.tolist()
        trainable = [
            size if own is None else own for size, own in zip(sizes, stated or [None] * len(sizes), strict=True)
        ]
        share: list[Exact] = [0] * graph.op_count
        trained_before = [False] * graph.op_count
        readers: list[list[int]] = [[] for _ in sizes]
        for u, v in zip(*(ends.tolist() for ends in graph.edges), strict=True):
            readers[u].append(v)
        for v in graph.order.tolist():
            own = shares[v] if shares else None
            if own is not None:
                share[v] = own
            elif sizes[v]:
                share[v] = _HALF * trained_before[v] + _HALF * (trainable[v] > 0)
            else:
                share[v] = int(trained_before[v])
            if share[v] or trainable[v]:
                for reader in readers[v]:
                    trained_before[reader] = True
        return cls(trainable, share)

    def has_backward(self, op: int) -> bool:
        """Tell whether an op has a backward pass at all, if one that takes no time."""
        return bool(self.share[op] or self.trainable_bytes[op])


def backward_ticks(work: int, ratio: Exact, share: Exact = 1) -> int:
    """Return the ticks of a backward pass, rounded up once: forward ticks × ratio × the part of it that runs."""
    whole = Fraction(ratio) * share * work
    return ceil_ratio(whole.numerator, whole.denominator)


def fixed_bytes(parameters: int, trained: int, state: Exact) -> int:
    """Return bytes held of parameters: *state* times those that are trained, the others as they are."""
    return ceil_ratio(trained * state.numerator, state.denominator) + parameters - trained
