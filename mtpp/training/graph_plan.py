"""A plan of GraphPipe: stages that form a graph, with their micro-batches, what they take, and what is proven of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mtpp.host.stop_reason import StopReason
from mtpp.inference.certificate import LowerBound, approximation_ratio, refuse_above
from mtpp.training.graph_problem import GraphProblem
from mtpp.training.stage_costs import ScheduledStage
from mtpp.training.stage_graph import StageGraph

FORMAT = "mtpp-training-plan"
VERSION = 2
PLANNER = "graphpipe"


@dataclass(frozen=True, eq=False)
class GraphPlan:
    """Stages in a topological order, which is that of the line where they form one.

    Attributes
    ----------
    iteration
        Simulated, in ticks.
    lower
        Of the iteration of all plans.

    Raises
    ------
    InconsistentBound
        If *lower* is above what the plan takes, which no correct program can produce.
    """

    problem: GraphProblem
    stages: Sequence[ScheduledStage]
    iteration: int
    lower: LowerBound
    stopped: StopReason

    def __post_init__(self) -> None:
        refuse_above(self.lower.value, self.lower.method, f"the plan's {self.iteration}", self.iteration)

    @property
    def optimal(self) -> bool:
        """Whether plan and bound meet."""
        return self.lower.value == self.iteration

    @property
    def ratio(self) -> float | None:
        """Iteration / lower bound; None where only the bound is 0."""
        return approximation_ratio(self.iteration, self.lower.value)

    @property
    def devices_used(self) -> int:
        """Σ d."""
        return sum(stage.data_parallel for stage in self.stages)

    @cached_property
    def graph(self) -> StageGraph:
        """Stages with their orders of passes, and the transfers between them."""
        names = [self.problem.costs.stage_name(stage) for stage in self.stages]
        return self.problem.costs.stage_graph(self.stages, names, line=self.problem.rules.sequential)

    @cached_property
    def memory_bytes(self) -> Sequence[int]:
        """Bytes that each device of each stage needs."""
        return [self.problem.costs.memory_bytes(stage) for stage in self.stages]

    @cached_property
    def time_per_sample(self) -> Fraction:
        """The longest that any stage or transfer takes for a sample, in ticks: what Jeon et al. (2025) minimise."""
        batch, graph = self.problem.mini_batch, self.graph
        times = [
            Fraction(one.forward_ticks + one.backward_ticks, one.micro_batch)
            + Fraction(one.synchronisation_ticks, batch)
            for one in graph.stages
        ]
        for one in graph.transfers:
            times.append(Fraction(one.forward_ticks, graph.stages[one.source].micro_batch))
            times.append(Fraction(one.backward_ticks, graph.stages[one.target].micro_batch))
        return max(times)


@dataclass(frozen=True, eq=False)
class NoGraphPlan:
    """No plan came out.

    Attributes
    ----------
    fits
        A plan with more memory, and its fullest device's bytes are *least_memory_bytes*; empty where none was found.
    memory
        Bytes that no plan's fullest device is below.
    """

    problem: GraphProblem
    fits: Sequence[ScheduledStage]
    memory: LowerBound
    stopped: StopReason

    @property
    def proven(self) -> bool:
        """Whether there is none."""
        return self.memory.value > self.problem.memory_bytes

    @property
    def hopeless(self) -> bool:
        """True if there is none whatever memory devices have: no stages that can be run make up the model."""
        return self.memory.value > self.problem.most_bytes

    @property
    def least_memory_bytes(self) -> int | None:
        """The least memory of a device with which a plan was found; None where none was."""
        return max((self.problem.costs.memory_bytes(stage) for stage in self.fits), default=None)

    @property
    def exact(self) -> bool:
        """Whether that is proven to be the least."""
        return self.least_memory_bytes == self.memory.value
