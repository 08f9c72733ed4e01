"""Ops of a model that was read, with their modelled costs: one record per op that is left after folding."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mtpp.formats.modelled.parameter import Parameter


@dataclass(slots=True)
class Totals:
    """Sums that ops and bodies have in common.

    Attributes
    ----------
    work_ps
        Modelled time.
    parameters
        Bytes of the stored tensors that it reads, or computes what it reads from, by name: each once.
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
class OpTraining:
    """Gradients that training computes in an op.

    Attributes
    ----------
    inputs
        Tensors of other ops whose gradients it computes.
    weights
        Bytes of parameters that it reads, trained or not, by the name of the stored tensor: as stored.
    trained
        Those that are trained.
    """

    inputs: set[str] = field(default_factory=set)
    weights: dict[str, int] = field(default_factory=dict)
    trained: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> Fraction:
        """Part of a whole backward pass: of an op with parameters, half of it is the gradient of these.

        That counts where most bytes of them are trained: the gradient of a bias alone costs next to nothing.
        """
        if not self.weights:
            return Fraction(bool(self.inputs))
        most = 2 * sum(self.trained.values()) >= sum(self.weights.values()) and bool(self.trained)
        return Fraction(bool(self.inputs) + most, 2)


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
    states
        What it reads of something that is stored and written, by the name of the stored tensor.
    training
        Gradients that training computes in it; None where the file does not say what is trained.
    """

    index: int = 0
    label: str = ""
    kind: str = ""
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: list[tuple[str, int | None]] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    training: OpTraining | None = None

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
    read
        Constants that ops read, as they are computed with.
    """

    ops: list[OpRecord] = field(default_factory=list)
    folded: int = 0
    random: bool = False
    read: set[Parameter] = field(default_factory=set)
