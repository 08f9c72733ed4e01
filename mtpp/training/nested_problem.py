"""The planning problem for several levels of devices: :mod:`mtpp.training.problem` and the levels around.

The cost of a plan is that of appendix E of Tarnawski et al. (2021). Level 1 is single-level Piper on K₁ devices joined
by B₁. At a level ℓ ≥ 2 a *superstage* S is run by d devices of level ℓ that share the micro-batches, and is split
further inside each of them. Such a device only communicates::

    (1/d) · [4 · (d-1)/d · Σ_{v in S} w_v + 2 · Σ_{(u,v) crosses S} c(u,v)] / B_ℓ

and what happens inside takes 1/d of what it would take alone: all of a stage's or superstage's time is divided by the
product of the degrees of the superstages around it. An edge is paid at every level of which it crosses a boundary. A
plan takes as long as its slowest stage or superstage.

Memory: let s be the sum of the degrees of a superstage and of those behind it in the same split, each the product with
the degrees inside. The split inside starts from s' = ⌈s / d⌉ micro-batches in flight at its first part, the next part
has s' less the first's degrees, and so on; a stage of level 1 with degree d keeps ⌈s' / d⌉ of them. Over all stages,
the products of their degrees sum up to at most N, or to exactly N. Of each level, a split uses at most K_ℓ devices.

The paper has w_v on nodes here, but on configurations at level 1. Between devices of an outer level every parameter
of a layer goes once, however it is spread or copied inside: a configuration for t devices with w bytes on each holds
all of them in t · w bytes, so w_v is the least t · w over all of the layer's configurations.

The convention of Piper's program is for one level: it has no rule for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from mtpp.errors import InputError
from mtpp.machine.machine import Machine, OnMachine
from mtpp.training.model import Layer, TrainingModel
from mtpp.training.problem import LARGEST_TOTAL, PlanningProblem, Schemes


@dataclass(frozen=True)
class OuterLevel:
    """A level that only communicates, in ticks.

    Attributes
    ----------
    devices
        K_ℓ.
    edge_ticks
        2 · c(u, v) / B_ℓ for each edge, rounded up.
    weight_ticks
        4 · w_v / B_ℓ for each layer, rounded up.
    """

    devices: int
    edge_ticks: Sequence[int]
    weight_ticks: Sequence[int]

    def superstage_time(self, edges: int, weights: int, data_parallel: int) -> Fraction:
        """Return what each of a superstage's devices communicates per sample, in ticks; exact.

        Parameters
        ----------
        edges
            Σ edge_ticks of the edges that cross it.
        weights
            Σ weight_ticks of its layers.
        """
        d = data_parallel
        return Fraction(edges, d) + Fraction((d - 1) * weights, d * d)


@dataclass(frozen=True, eq=False)
class NestedProblem(OnMachine):
    """Model × devices × batch. Make one with :meth:`build`.

    Attributes
    ----------
    level_one
        What a device of level 2 is asked for alone: K₁ devices, B₁, and the configurations with t ≤ K₁.
    outer
        Levels 2 to L.
    """

    machine: Machine
    level_one: PlanningProblem
    outer: Sequence[OuterLevel]

    @classmethod
    def build(
        cls,
        model: TrainingModel,
        machine: Machine,
        *,
        micro_batches: int,
        exact_micro_batches: bool = False,
        convention: str = "paper",
        schemes: Schemes | None = None,
    ) -> NestedProblem:
        """Turn the costs of *model* into ticks at every level, each rounded up once.

        Raises
        ------
        InputError
            As :class:`PlanningProblem`, or if there are several levels and *convention* is not ``paper``.
        """
        if convention != "paper" and len(machine.levels) > 1:
            raise InputError(
                f"the convention {convention!r} has no rule for several levels of devices",
                parameter="convention",
                remedy="use paper, or a topology of one level",
            )
        innermost = machine.levels[0]
        level_one = PlanningProblem(
            model,
            machine=replace(machine, levels=(innermost,)),
            micro_batches=micro_batches,
            exact_micro_batches=exact_micro_batches,
            convention=convention,
            schemes=schemes or Schemes(),
        )
        outer = []
        for level in machine.levels[1:]:
            outer.append(
                OuterLevel(
                    level.devices,
                    [level.link.streaming_ps(2 * edge.communication_bytes) for edge in model.edges],
                    [level.link.streaming_ps(4 * layer_parameter_bytes(layer)) for layer in model.layers],
                )
            )
        problem = cls(machine, level_one, outer)
        problem._check()
        return problem

    def _check(self) -> None:
        memory = sum(
            max(
                one.memory_a * (1 + self.most_in_flight) + one.memory_b
                for by_layer in self.level_one.choices
                for one in by_layer[i]
            )
            for i in range(len(self.model.layers))
        )
        ticks = max(
            (sum(level.edge_ticks) + sum(level.weight_ticks)) * level.devices for level in self.outer or [_NONE]
        )
        if memory >= LARGEST_TOTAL or ticks >= LARGEST_TOTAL:
            raise InputError(
                "the costs are too large: all layers together, over all devices, reach 2^62",
                remedy="check the costs, the time unit and the bandwidths",
            )

    @property
    def model(self) -> TrainingModel:
        """The layers to be placed."""
        return self.level_one.model

    @property
    def most_in_flight(self) -> int:
        """What the sum of degrees can come to: at most N, and no more than there are devices."""
        return min(self.level_one.micro_batches, self.devices)

    @cached_property
    def data_degrees(self) -> Sequence[Sequence[int]]:
        """Degrees of data parallelism that may be used, by level, the innermost first."""
        most = self.most_in_flight if self.level_one.schemes.data_parallel else 1
        rest = [range(1, min(level.devices, most) + 1) for level in self.outer]
        return [self.level_one.data_degrees, *rest]


_NONE = OuterLevel(1, (), ())


def layer_parameter_bytes(layer: Layer) -> int:
    """Return w_v: the fewest bytes that the devices of one of the layer's configurations hold together."""
    return min(t * one.gradient_bytes for t, choices in layer.configurations.items() for one in choices)
