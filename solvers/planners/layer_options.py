"""Options of single layers: degrees of tensor parallelism, with the choices that there are for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtpp.training.problem import Choice, PlanningProblem


@dataclass(frozen=True, eq=False)
class LayerOption:
    """A layer run as *choice* on each of *t* devices."""

    t: int
    choice: Choice

    @property
    def compute(self) -> int:
        """X.p, in ticks."""
        return self.choice.compute_ticks

    @property
    def device_compute(self) -> int:
        """T · X.p: ticks that all its devices compute together."""
        return self.t * self.choice.compute_ticks

    @property
    def least_memory(self) -> int:
        """X.a + X.b: with one micro-batch in flight, and there is one at least in every stage."""
        return self.choice.memory_a + self.choice.memory_b


def layer_options(problem: PlanningProblem, layer: int, memory_bytes: int | None = None) -> list[LayerOption]:
    """Return all ways to run a layer; with *memory_bytes* those that can be in a stage of a plan."""
    options = [
        LayerOption(t, choice)
        for t, by_layer in zip(problem.degrees, problem.choices, strict=True)
        for choice in by_layer[layer]
    ]
    return options if memory_bytes is None else [option for option in options if option.least_memory <= memory_bytes]


def least_by_layer(problem: PlanningProblem, value: Callable[[LayerOption], int]) -> list[int]:
    """Return for each layer the least that *value* comes to over all ways to run it."""
    return [min(value(option) for option in layer_options(problem, v)) for v in range(len(problem.model.layers))]


def most_degrees(problem: PlanningProblem) -> int:
    """Return what the degrees of data parallelism of all stages can sum up to at most."""
    most = min(problem.micro_batches, problem.devices)
    return most if problem.schemes.data_parallel else min(most, len(problem.model.layers))
