"""Result of a walk over the body of control flow: sums over its ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mtpp.formats.modelled.op_record import Totals
from mtpp.formats.onnx.scope import Known


@dataclass(slots=True)
class BodyRecord(Totals):
    """One run of a body.

    Attributes
    ----------
    captured
        Activations it reads from the graphs around it, with their nesting depth.
    outputs
        What is known of its outputs.
    find
        Returns what is known of a tensor inside, or around it, by name.
    """

    captured: dict[str, int] = field(default_factory=dict)
    outputs: list[Known] = field(default_factory=list)
    random: bool = False
    find: Callable[[str], Known | None] = field(default=lambda name: None)
