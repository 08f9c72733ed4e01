"""Planners of stages in a line, which make least the time that the slowest stage takes for a micro-batch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from mtpp.api.options.kinds import Choice, Flag, Whole
from mtpp.api.options.option import Options, option
from mtpp.names import CONVENTIONS, EQUI, KNAPSACKS, PIPEDREAM_2BW, PIPER
from mtpp.ranges import MOST_MICRO_BATCHES

if TYPE_CHECKING:
    from mtpp.api.training.plan_results import TrainingPlanResult  # noqa: F401  # in a base class
    from mtpp.training.micro_batches import MicroBatches

Result = TypeVar("Result")

SAMPLES = option(None, Whole(), "Samples that the layers' times are of.", "b")
DATA_PARALLEL = option(True, Flag(), "Only d = 1.")
RECOMPUTE = option(True, Flag(), "No configurations that compute activations twice.")


class TrainingPlanner(Options, Generic[Result]):
    """Planner with its options, and the class of its results."""

    name: ClassVar[str]


class LinePlanner(TrainingPlanner["TrainingPlanResult"]):
    """Stages in a line."""

    max_micro_batches: int | None = option(
        None, Whole(1, MOST_MICRO_BATCHES), "Degrees of data parallelism add up to at most N.", "N"
    )
    batch_size: int | None = option(None, Whole(), "Largest safe batch, which gives N = ⌊B / (g · b)⌋.", "B")
    micro_batch_size: int | None = SAMPLES
    gradient_accumulation: int | None = option(None, Whole(), "Passes to an update [default: 1].", "g")
    exact_micro_batches: bool = option(False, Flag(), "Degrees of data parallelism add up to exactly N.")
    convention: str = option(
        CONVENTIONS[0], Choice(CONVENTIONS),
        "Piper's paper, or its published program: gradients cost less, every d divides N.",
        more="See :data:`mtpp.names.CONVENTIONS`.",
    )  # fmt: skip
    data_parallel: bool = DATA_PARALLEL
    tensor_parallel: bool = option(True, Flag(), "Only t = 1.")
    recompute: bool = RECOMPUTE

    def __post_init__(self) -> None:
        _ = self.micro_batches  # refused at the door

    @cached_property
    def micro_batches(self) -> MicroBatches | None:
        """N, and where it comes from; None where nothing says it."""
        from mtpp.training.micro_batches import micro_batches_of

        return micro_batches_of(
            self.max_micro_batches,
            batch_size=self.batch_size,
            micro_batch_size=self.micro_batch_size,
            gradient_accumulation=self.gradient_accumulation,
        )


class Piper(LinePlanner):
    """Stages of any kind in a line: the dynamic programme over downsets of Tarnawski et al. (2021).

    Without limits and with the exact knapsack its plans are optimal among pipelines of stages in a line.
    """

    name: ClassVar[str] = PIPER

    knapsack: str = option(
        KNAPSACKS[0], Choice(KNAPSACKS),
        "Choose configurations of layers as well as possible, or by the paper's bang per buck.",
    )  # fmt: skip


class Equi(LinePlanner):
    """Equal stages, so many layers, d and t in each: a baseline of Piper's paper."""

    name: ClassVar[str] = EQUI


class PipeDream2BW(LinePlanner):
    """Equal stages without tensor parallelism, as PipeDream-2BW plans (Narayanan et al. 2021): another baseline."""

    name: ClassVar[str] = PIPEDREAM_2BW
