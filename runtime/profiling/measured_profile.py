"""A measured model: its graph with measured and with modelled costs, and the figures behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtpp.inference.graph import CostGraph
    from mtpp.runtime.profiling.profiled_graph import MeasuredOps


@dataclass(frozen=True)
class MeasuredProfile:
    """A model measured.

    Attributes
    ----------
    graph
        With measured costs and sizes as executed.
    modelled
        The same graph with costs of the roofline.
    ops
        The figures behind the costs.
    random_weight_bytes, random_inputs
        What was made up to run it.
    """

    graph: CostGraph
    modelled: CostGraph
    ops: MeasuredOps
    random_weight_bytes: int
    random_inputs: tuple[str, ...]
