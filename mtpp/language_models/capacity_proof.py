"""Proof of the largest context, or of the most sequences, that devices hold of a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mtpp.names import CONTEXT_OBJECTIVE


@dataclass(frozen=True)
class CapacityProof:
    """Capacity, and the memory of layers that it follows from.

    Attributes
    ----------
    objective
        One of :data:`~mtpp.names.CAPACITY_OBJECTIVES`.
    next_infeasible
        The value after the capacity, at which no stages fit; None where stages fit at any value.
    context, sequences
        Tokens of a sequence and sequences held, that of the objective at the capacity.
    batch
        Sequences in a step at most; None: those held, shared out among as many stages as there may be.
    positions
        Tokens that the configuration has positions for; None where it does not say.
    none_empty
        Whether all devices that may be used have to be.
    layers
        Columns of the memory of layers, for each degree of tensor parallelism and phase.
    """

    objective: str
    next_infeasible: int | None
    context: int
    sequences: int
    batch: int | None
    layers: Sequence[Mapping[str, Any]]
    positions: int | None = None
    none_empty: bool = False

    @property
    def value(self) -> int:
        """Tokens or sequences; where any number fits, the one at which stages were looked at."""
        return self.context if self.objective == CONTEXT_OBJECTIVE else self.sequences

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of a plan's ``capacity``."""
        return {
            "objective": self.objective,
            "value": self.value,
            "next_infeasible": self.next_infeasible,
            "context": self.context,
            "sequences": self.sequences,
            "batch": self.batch,
            **({} if self.positions is None else {"positions": self.positions}),
            **({"none_empty": True} if self.none_empty else {}),
            "layers": [dict(row) for row in self.layers],
        }
