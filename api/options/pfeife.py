"""Planner of split points with a schedule of passes, which makes least the time of an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mtpp.api.options.graphpipe import LATENCY
from mtpp.api.options.kinds import Choice, Counts, Number, Sizes, Text, Whole, Wholes
from mtpp.api.options.line_planners import TrainingPlanner
from mtpp.api.options.option import option
from mtpp.api.options.path_kinds import InputPath
from mtpp.errors import InputError
from mtpp.names import BUFFERS, FORMATS_READ, LOOP_BATCHES, ORDERS, PFEIFE, SCHEDULES, SEARCHES, TRANSPORTS
from mtpp.ranges import MOST_LOOPS, MOST_SPLIT_MICRO_BATCHES
from mtpp.wording import one_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from fractions import Fraction

    from mtpp.api.training.plan_results import SplitPlanResult  # noqa: F401  # in a base class
    from mtpp.formats.modelled.size_terms import SizeTerms
    from mtpp.training.pfeife.schedule import PassSchedule


class Pfeife(TrainingPlanner["SplitPlanResult"]):
    """Split points of any graph with a schedule of prefetched passes, by the time of an iteration (Jhoo et al. 2025).

    The model may be any graph that :func:`mtpp.read` takes, such as an ONNX model, or what it returned.
    """

    name: ClassVar[str] = PFEIFE

    latency: str | int | None = LATENCY
    micro_batches: int | None = option(None, Whole(1, MOST_SPLIT_MICRO_BATCHES), "Micro-batches of an iteration.", "B")
    loops: Iterable[int] | None = option(
        None, Wholes(MOST_LOOPS), "Numbers of stages of a device to try [default: 1,2,3].", "LIST"
    )
    loop_batch: str = option(
        LOOP_BATCHES[0], Choice(LOOP_BATCHES), "Micro-batches of a loop, divisors of B or any number, from K on.",
        more="So many go through a stage before its device turns to its next one.",
    )  # fmt: skip
    prefetch: Iterable[int] | None = option(
        None, Counts(10**6), "Forward passes that each device prefetches, as 2,1,0 [default: the best].", "LIST",
        more="They run before its first backward pass, beyond those that it needs.",
    )  # fmt: skip
    schedule: str | os.PathLike[str] | PassSchedule | None = option(
        None, InputPath("the schedule", names=lambda: SCHEDULES, other="PassSchedule"),
        "gpipe, 1f1b, interleaved, bfs, zero-bubble, or passes in JSON or CSV.", "NAME|FILE",
        more="Or the passes themselves: the schedule to keep to.",
    )  # fmt: skip
    backward_ratio: float | str | Fraction | None = option(
        None, Number(), "Backward / forward pass where the model does not say [default: 2].", "X"
    )
    state: float | str | Fraction | None = option(
        None, Number(), "Bytes held for each byte of trained parameters [default: 4].", "X"
    )
    speed: float | str | Fraction | Iterable[float | str | Fraction] | None = option(
        None, Number(several=True), "Of all devices or of each, as 1,1,0.5 [default: 1].", "LIST",
        more="Multiples of the speed that the model's times are of.",
    )  # fmt: skip
    transport: str = option(
        TRANSPORTS[0], Choice(TRANSPORTS),
        "Tensors go through all stages in between, or straight to their readers.",
    )  # fmt: skip
    order: str = option(ORDERS[0], Choice(ORDERS), "Cut the ops in the file's order, or search for a better one.")
    search: str = option(SEARCHES[0], Choice(SEARCHES), "Annealing, or the paper's beam search.")
    buffers: str = option(
        BUFFERS[0], Choice(BUFFERS),
        "Room for received tensors of micro-batches in flight, or of all, as PyTorch's engine has.",
    )  # fmt: skip
    dims: SizeTerms | str | None = option(
        None, Sizes("Propose the sizes that are left open, and say which."),
        "Set a size that an ONNX model or a PyTorch program leaves open; '*=1': all others.",
    )  # fmt: skip
    from_format: str | None = option(
        None, Text(FORMATS_READ), f"Read the model, a graph, as {one_of(FORMATS_READ)}.", "FORMAT"
    )
    costs: str | os.PathLike[str] | None = option(
        None, InputPath("the file of costs"),
        "Measured times of the ops (mtpp profile), backward passes too if it has them.", "FILE",
        more="Those that it does not have follow from *backward_ratio*.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, said in (("prefetch", "what is prefetched"), ("loop_batch", "how micro-batches go through loops")):
            if self.schedule is not None and getattr(self, name) != getattr(type(self), name):
                raise InputError(f"the schedule says {said}", parameter=name, remedy="leave one of them out")
