"""Ways to run a set of layers as one stage: replicas, micro-batches, orders and configurations, with their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtpp.training.graph_problem import GraphProblem
from mtpp.training.model import Configuration
from mtpp.training.stage_costs import PassCosts, ScheduledStage

_MOST_COMPARED = 10_000_000
"""Pairs of mixes of configurations, for all sets of layers together: some seconds."""


class Mix(NamedTuple):
    """Configurations of some layers together: ticks of both passes, bytes for each micro-batch in flight, and fixed.

    *chosen* are the configurations; *shared* are those of layers that hand tensors to several devices, which transfers
    to and from other stages depend on.
    """

    forward: int
    backward: int
    kept: int
    fixed: int
    parameters: int
    chosen: tuple[int, ...]
    shared: tuple[int, ...] = ()

    def no_worse(self, other: Mix) -> bool:
        """Tell whether this one costs no more than another in any respect, and moves as much to other stages."""
        return (
            self.forward <= other.forward
            and self.backward <= other.backward
            and self.kept <= other.kept
            and self.fixed <= other.fixed
            and self.parameters <= other.parameters
            and self.shared == other.shared
        )


def closest_way(ways: Sequence[tuple[int, PassCosts]], chosen: int) -> tuple[int, PassCosts]:
    """Return the way to run a layer that was chosen, or else the fastest one of those that there are."""
    return min(ways, key=lambda way: (way[0] != chosen, way[1].forward_ticks + way[1].backward_ticks))


@dataclass(frozen=True)
class StageOption:
    """A way to run a set of layers.

    Attributes
    ----------
    layers
        Positions in the model, in a topological order.
    micro_batch, data_parallel, interval
        Samples b of a micro-batch on all its devices together, d, and k of its kFkB order.
    mix
        Configurations of the layers, for b / d samples.
    synchronisation
        Ticks of synchronising gradients after the last pass.
    most_in_flight
        Micro-batches that fit into a device's memory, at least 1.
    """

    layers: tuple[int, ...]
    micro_batch: int
    data_parallel: int
    interval: int
    mix: Mix
    synchronisation: int
    most_in_flight: int

    def scheduled(self, problem: GraphProblem, in_flight: int) -> ScheduledStage:
        """Return the stage with so many micro-batches in flight."""
        chosen: dict[int, Configuration] = {
            layer: problem.choices[layer][c] for layer, c in zip(self.layers, self.mix.chosen, strict=True)
        }
        return ScheduledStage(chosen, self.data_parallel, self.micro_batch, in_flight, self.interval)


class StageOptions:
    """Options of sets of layers, made when they are first asked for.

    Parameters
    ----------
    ended
        Whether to make no more.
    """

    def __init__(self, problem: GraphProblem, ended: Callable[[], bool] = lambda: False) -> None:
        self._problem = problem
        self._ended = ended
        self._compared = 0
        self._known: dict[tuple[tuple[int, ...], int], list[StageOption]] = {}
        self._mixes: dict[tuple[tuple[int, ...], int], list[Mix]] = {}

    def of(self, layers: tuple[int, ...], size: int) -> Sequence[StageOption] | None:
        """Return all options with micro-batches of so many samples that keep one of them in memory at least.

        None if there are too many mixes of configurations to look at.
        """
        key = layers, size
        if key not in self._known:
            made = self._made(layers, size)
            if made is None:
                return None
            self._known[key] = made
        return self._known[key]

    def closest(self, layers: tuple[int, ...], chosen: tuple[int, ...], samples: int) -> tuple[int, ...] | None:
        """Return configurations that have costs of so many samples on a device: those chosen, or the fastest instead.

        None if some layer has costs of as many in none of its configurations.
        """
        known = self._problem.ways.of_choices(samples)
        if all(c in known[layer] for layer, c in zip(layers, chosen, strict=True)):
            return chosen
        ways = self._problem.ways.of(samples)
        if not all(ways[layer] for layer in layers):
            return None
        return tuple(closest_way(ways[layer], c)[0] for layer, c in zip(layers, chosen, strict=True))

    def chosen(
        self, layers: tuple[int, ...], size: int, d: int, chosen: tuple[int, ...], interval: int = 1
    ) -> StageOption | None:
        """Return layers in given configurations as a kFkB stage.

        None if one of them has no costs of the stage's samples on a device, or memory does not hold k micro-batches.
        """
        choices, known = self._problem.choices, self._problem.ways.of_choices(size // d)
        costs = [one for layer, c in zip(layers, chosen, strict=True) if (one := known[layer].get(c)) is not None]
        if len(costs) < len(layers):
            return None
        ones = [choices[layer][c] for layer, c in zip(layers, chosen, strict=True)]
        mix = Mix(
            sum(one.forward_ticks for one in costs),
            sum(one.backward_ticks for one in costs),
            sum(one.memory_bytes for one in costs),
            sum(one.memory_b for one in ones),
            sum(one.gradient_bytes for one in ones),
            chosen,
        )
        most = self._most_in_flight(mix, size)
        if most < interval:
            return None
        return StageOption(layers, size, d, interval, mix, self._synchronisation(mix, d), most)

    def _most_in_flight(self, mix: Mix, size: int) -> int:
        """Return how many micro-batches of some layers memory holds, at most those of an iteration."""
        count, spare = self._problem.mini_batch // size, self._problem.memory_bytes - mix.fixed
        if spare < 0:
            return 0
        return count if mix.kept == 0 else min(count, spare // mix.kept)

    def _made(self, layers: tuple[int, ...], size: int) -> list[StageOption] | None:
        made = []
        for d in self._problem.degrees(size):
            mixes = self.mixes(layers, size // d)
            if mixes is None:
                return None
            for mix in mixes:
                most = self._most_in_flight(mix, size)
                if most < 1:
                    continue
                synchronisation = self._synchronisation(mix, d)
                made += [
                    StageOption(layers, size, d, interval, mix, synchronisation, most)
                    for interval in self._problem.rules.intervals
                    if interval <= most
                ]
        return made

    def _synchronisation(self, mix: Mix, d: int) -> int:
        return self._problem.costs.ring(mix.parameters, d)

    def mixes(self, layers: tuple[int, ...], samples: int) -> Sequence[Mix] | None:
        """Return the mixes of configurations of some layers that none is better than in every respect.

        None if there are too many to look at.

        Notes
        -----
        Fronts of layers are added one by one; their sizes may grow exponentially with layers that have a choice.
        """
        key = layers, samples
        if key not in self._mixes:
            front, ways = [Mix(0, 0, 0, 0, 0, (), ())], self._problem.ways.of(samples)
            for layer in layers:
                shares = self._problem.ways.shares[layer]
                larger = self._front(
                    Mix(
                        mix.forward + costs.forward_ticks,
                        mix.backward + costs.backward_ticks,
                        mix.kept + costs.memory_bytes,
                        mix.fixed + one.memory_b,
                        mix.parameters + one.gradient_bytes,
                        (*mix.chosen, c),
                        (*mix.shared, c) if shares else mix.shared,
                    )
                    for mix in front
                    for c, costs in ways[layer]
                    for one in [self._problem.choices[layer][c]]
                )
                if larger is None:
                    return None
                front = larger
            self._mixes[key] = front
        return self._mixes[key]

    def _front(self, mixes: Iterable[Mix]) -> list[Mix] | None:
        """Return those that no other is no worse than; None if that takes too long."""
        found: list[Mix] = []
        for mix in sorted(mixes):
            self._compared += len(found)
            if self._compared > _MOST_COMPARED or self._ended():
                return None
            if not any(other.no_worse(mix) for other in found):
                found.append(mix)
        return found
