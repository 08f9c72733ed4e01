"""Least costs of layers, each quantity at its least over their configurations: what no stage takes less than."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtpp.solvers.planners.graphpipe.branches import layer_kinds
from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.training.graph_problem import GraphProblem


@dataclass(frozen=True)
class LayerCosts:
    """Ticks of both passes of a micro-batch, of the forward pass, and bytes kept for it, each at its least."""

    both: int
    forward: int
    memory_bytes: int


class LeastCosts:
    """Least costs of the layers of a problem.

    Attributes
    ----------
    kinds
        By layer: layers of one kind have equal configurations.
    options
        Sizes and replicas that stages of one plan may choose from: one list by size of micro-batches where all stages
        have the same, one of all otherwise.
    fixed, parameters
        Bytes of each layer whatever is in flight, and of its parameters.
    """

    def __init__(self, problem: GraphProblem) -> None:
        self._problem = problem
        self.model, self.transfers, self.sequential = problem.model, problem.costs, problem.rules.sequential
        each = [[StageSize(size, d) for d in problem.degrees(size)] for size in problem.sizes]
        self.options: Sequence[Sequence[StageSize]] = [options for options in each if options]
        if problem.rules.per_stage:
            self.options = [[one for options in each for one in options]]
        self.kinds = layer_kinds(problem)
        self.fixed = [min(one.memory_b for one in choices) for choices in problem.choices]
        self.parameters = [min(one.parameter_bytes for one in choices) for choices in problem.choices]
        self._passes: dict[tuple[int, int], LayerCosts] = {}
        self._moved: dict[tuple[int, int, int], int] = {}

    def passes(self, layer: int, option: StageSize) -> LayerCosts:
        """Return what a layer costs at least in a stage."""
        key = self.kinds[layer], option.samples
        if key not in self._passes:
            choices = self._problem.choices[layer]
            known = [
                self._problem.costs.passes(one, option.samples)
                for one in choices
                if not one.micro_batches or option.samples in one.micro_batches
            ]
            self._passes[key] = LayerCosts(
                min(one.forward_ticks + one.backward_ticks for one in known),
                min(one.forward_ticks for one in known),
                min(one.memory_bytes for one in known),
            )
        return self._passes[key]

    def load(self, layer: int, option: StageSize) -> int:
        """Return the ticks of an iteration that a layer takes at least in a stage."""
        return self.batches(option) * self.passes(layer, option).both

    def batches(self, option: StageSize) -> int:
        """Return the micro-batches of an iteration."""
        return self._problem.mini_batch // option.micro_batch

    def synchronisation(self, layer: int, option: StageSize) -> int:
        """Return ticks that a layer adds at least to the synchronisation of a stage.

        Notes
        -----
        Rounded down, so that the sum over layers is no more than the ticks of the sum, which are rounded up.
        """
        d = option.data_parallel
        return 2 * (d - 1) * self.parameters[layer] * 10**12 // (d * self._problem.costs.bandwidth_bytes_per_s)

    def memory(self, layer: int, option: StageSize, read: bool) -> int:
        """Return the bytes that a layer takes at least, in a stage that is read by another or any stage.

        Notes
        -----
        No stage has fewer micro-batches in flight than the least k of kFkB, and one that another reads from has two,
        unless the iteration has one only.
        """
        least = min(self._problem.rules.intervals)
        if read:
            least = max(least, min(2, self.batches(option)))
        return self.fixed[layer] + least * self.passes(layer, option).memory_bytes

    def transfer(self, size: int, micro_batch: int, width: int) -> int:
        """Return the ticks of moving a tensor of so many bytes, given samples of a micro-batch and links."""
        key = size, micro_batch, width
        if key not in self._moved:
            self._moved[key] = self._problem.costs.transfer([size], micro_batch, width)
        return self._moved[key]

    def work(self, options: Sequence[StageSize]) -> list[int]:
        """Return the device-ticks that each layer takes at least in an iteration of stages with such options."""
        return self._by_kind(lambda layer: min(one.data_parallel * self.load(layer, one) for one in options))

    def device_bytes(self, options: Sequence[StageSize]) -> list[int]:
        """Return the bytes that each layer takes at least of all devices together."""
        return self._by_kind(lambda layer: min(one.data_parallel * self.memory(layer, one, False) for one in options))

    def layer_bytes(self) -> int:
        """Return the bytes that some layer takes at least on a device, with one micro-batch in flight."""
        samples = {option.samples for options in self.options for option in options}
        needs = (
            min(
                one.memory_b + self._problem.costs.passes(one, count).memory_bytes
                for one in choices
                for count in samples
                if not one.micro_batches or count in one.micro_batches
            )
            for choices in self._problem.choices
        )
        return max(needs)

    def whole_bytes(self, options: Sequence[StageSize]) -> int:
        """Return the bytes that a single stage of all layers takes at least on a device."""
        return min(sum(self.memory(layer, one, False) for layer in range(len(self.kinds))) for one in options)

    def _by_kind(self, cost: Callable[[int], int]) -> list[int]:
        known = {kind: cost(self.kinds.index(kind)) for kind in set(self.kinds)}
        return [known[kind] for kind in self.kinds]
