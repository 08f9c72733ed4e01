"""Planner of stages that form a graph, which makes least the time of an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mtpp.api.options.kinds import Choice, Duration, Flag, Whole, Wholes
from mtpp.api.options.line_planners import DATA_PARALLEL, RECOMPUTE, SAMPLES, TrainingPlanner
from mtpp.api.options.option import option
from mtpp.names import GRAPHPIPE, IN_FLIGHT
from mtpp.ranges import MOST_INTERVALS, MOST_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mtpp.api.training.plan_results import GraphPlanResult  # noqa: F401  # in a base class


LATENCY = option(None, Duration(), "Of each transfer, such as 10us [default: 0].", "TIME", more="Or picoseconds.")


class GraphPipe(TrainingPlanner["GraphPlanResult"]):
    """Stages that form any acyclic graph, by the simulated time of an iteration (Jeon et al. 2025).

    Plans are optimal for models of few layers, and within a proven ratio for all.
    """

    name: ClassVar[str] = GRAPHPIPE

    latency: str | int | None = LATENCY
    micro_batch_sizes: Iterable[int] | None = option(
        None, Wholes(MOST_SAMPLES),
        "Samples of micro-batches to try [default: all that a layer lists, or powers of two].", "LIST",
        more="Those count that divide the mini-batch.",
    )  # fmt: skip
    per_stage_micro_batch: bool = option(False, Flag(), "Stages may differ in their micro-batches.")
    kfkb: Iterable[int] = option(
        (1,), Wholes(MOST_INTERVALS), "Numbers of forward and of backward passes in turn [default: 1].", "LIST"
    )
    in_flight: str = option(
        IN_FLIGHT[0], Choice(IN_FLIGHT),
        "Any number of micro-batches, or the least by GraphPipe's rule, for free transfers.",
        more="The rule is for passes that take equally long.",
    )  # fmt: skip
    sequential: bool = option(False, Flag(), "One line of stages.")
    batch_size: int | None = option(None, Whole(), "Samples of an iteration.", "B")
    micro_batch_size: int | None = SAMPLES
    data_parallel: bool = DATA_PARALLEL
    recompute: bool = RECOMPUTE
