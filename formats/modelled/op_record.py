"""Ops of a model that was read, with their modelled costs: one record per op that is left after folding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Totals:
    """Sums that ops and bodies have in common.

    Attributes
    ----------
    work_ps
        Modelled time.
    parameters
        Bytes by the name of the stored tensor: each once.
    not_modelled
        Count of nodes by kind for which there is no cost rule.
    notes
        One entry per control-flow op: its place relative to this op, and what was assumed.
    """

    work_ps: int = 0
    flops: int = 0
    macs: int = 0
    parameters: dict[str, int] = field(default_factory=dict)
    not_modelled: Counter[str] = field(default_factory=Counter)
    notes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class OpRecord(Totals):
    """An op that depends on an input.

    Attributes
    ----------
    index, label
        Position in the file, and the name it has there (may be empty or not unique).
    inputs
        Activations it reads, each once, with the nesting depth of the graph that defines them.
    outputs
        What it makes, with the bytes; None where nobody reads it and it has no static size.
    """

    index: int = 0
    label: str = ""
    kind: str = ""
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: list[tuple[str, int | None]] = field(default_factory=list)

    @property
    def place(self) -> str:
        """A name to find it by."""
        return self.label or f"{self.kind}_{self.index}"


@dataclass(slots=True)
class GraphRecord:
    """All ops of a graph, in topological order.

    Attributes
    ----------
    folded
        Number of nodes that depend on no input.
    random
        Whether any node draws random numbers.
    """

    ops: list[OpRecord] = field(default_factory=list)
    folded: int = 0
    random: bool = False
