"""Least costs of layers, each quantity at its least over their configurations: what no stage takes less than."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtpp.solvers.planners.graphpipe.stage_size import StageSize
from mtpp.training.graph_problem import GraphProblem

NEVER = 2**62
"""Ticks and bytes of a layer in a stage whose samples it has no costs of: more than any plan has."""


@dataclass(frozen=True)
class LayerCosts:
    """Ticks of both passes of a micro-batch, of the forward pass, and bytes kept for it, each at its least.

    All are :data:`NEVER` where a layer cannot be in such a stage.
    """

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
        have the same, one of all otherwise; without lists by which some layer cannot be run at all.
    every
        All sizes and replicas, as the verifier counts them for bounds that look at layers one by one.
    fixed, parameters
        Bytes of each layer whatever is in flight, and of its parameters.
    """

    def __init__(self, problem: GraphProblem) -> None:
        self._problem = problem
        self.model, self.transfers, self.sequential = problem.model, problem.costs, problem.rules.sequential
        each = [[StageSize(size, d) for d in problem.degrees(size)] for size in problem.sizes]
        self.every = [one for options in each for one in options]
        if problem.rules.per_stage:
            each = [self.every]
        self.kinds, self._examples = problem.ways.kinds, problem.ways.examples
        self.fixed = self._by_kind(lambda layer: min(one.memory_b for one in problem.choices[layer]))
        self.parameters = self._by_kind(lambda layer: min(one.gradient_bytes for one in problem.choices[layer]))
        self._passes: dict[tuple[int, int], LayerCosts] = {}
        self._moved: dict[tuple[int, int, int], int] = {}
        self.options: Sequence[Sequence[StageSize]] = [options for options in each if self._complete(options)]

    def _complete(self, options: Sequence[StageSize]) -> bool:
        """Tell whether every layer can be run by some of these options."""
        return all(any(self.passes(layer, one).both < NEVER for one in options) for layer in self._examples)

    def passes(self, layer: int, option: StageSize) -> LayerCosts:
        """Return what a layer costs at least in a stage."""
        key = self.kinds[layer], option.samples
        if key not in self._passes:
            known = [costs for _, costs in self._problem.layer_ways(layer, option.samples)]
            self._passes[key] = LayerCosts(
                min((one.both_ticks for one in known), default=NEVER),
                min((one.forward_ticks for one in known), default=NEVER),
                min((one.memory_bytes for one in known), default=NEVER),
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
        return 2 * (d - 1) * self.parameters[layer] * 10**12 // (d * self._problem.costs.link.bandwidth_bytes_per_s)

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
        problem = self._problem
        samples = {option.samples for option in self.every}
        return max(
            min(
                problem.choices[layer][c].memory_b + costs.memory_bytes
                for count in samples
                for c, costs in problem.layer_ways(layer, count)
            )
            for layer in self._examples
        )

    def whole_bytes(self, options: Sequence[StageSize]) -> int:
        """Return the bytes that a stage of all layers takes at least on a device; NEVER or more: none can have them."""
        return min(sum(self.memory(layer, one, False) for layer in range(len(self.kinds))) for one in options)

    def _by_kind(self, cost: Callable[[int], int]) -> list[int]:
        known = [cost(layer) for layer in self._examples]
        return [known[kind] for kind in self.kinds]
