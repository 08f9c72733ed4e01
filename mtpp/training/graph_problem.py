"""The planning problem of GraphPipe: a model, K devices and a mini-batch, with the rules that plans keep to.

Stages run on d devices each, form any acyclic graph, and pass micro-batches of b samples on; every cost is in integer
ticks (1 tick = 1 ps) or bytes. The measure is the time of one iteration, synchronisation included (Jeon et al. 2025,
section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mtpp.errors import InputError
from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts

IN_FLIGHT = ("any", "least")
"""Micro-batches in flight: as many as shorten the iteration, or as few as cost no throughput with equal passes."""

MOST_INTERVALS = 64


@dataclass(frozen=True)
class GraphRules:
    """Plans that are allowed.

    Attributes
    ----------
    micro_batch_sizes
        Samples of micro-batches to try; None: those that the model has costs of, or powers of two where it has none.
    per_stage
        Whether stages may differ in them.
    intervals
        Numbers k of kFkB orders.
    in_flight
        One of :data:`IN_FLIGHT`.
    sequential
        Whether stages form one line, each waiting for the one before.
    data_parallel, recompute
        Whether stages may have replicas, and layers configurations that compute activations twice.
    """

    micro_batch_sizes: Sequence[int] | None = None
    per_stage: bool = False
    intervals: Sequence[int] = (1,)
    in_flight: str = IN_FLIGHT[0]
    sequential: bool = False
    data_parallel: bool = True
    recompute: bool = True


@dataclass(frozen=True, eq=False)
class GraphProblem:
    """Model × devices × mini-batch. Make one with :meth:`build`.

    Attributes
    ----------
    costs
        Of stages and transfers; it holds the model, the mini-batch B and the bandwidth.
    devices, memory_bytes
        K, and what each device has.
    sizes
        Samples b of micro-batches that stages may have, ascending; each divides B.
    choices
        By layer: its configurations on one device that may be used.
    listed
        Samples on one device that all layers have costs of, ascending; None: any number.
    """

    costs: PipelineCosts
    devices: int
    memory_bytes: int
    rules: GraphRules
    sizes: Sequence[int]
    choices: Sequence[Sequence[Configuration]]
    listed: Sequence[int] | None

    @classmethod
    def build(
        cls,
        model: TrainingModel,
        *,
        devices: int,
        memory_bytes: int,
        bandwidth_bytes_per_s: int,
        mini_batch: int,
        latency_ticks: int = 0,
        micro_batch_size: int | None = None,
        rules: GraphRules | None = None,
    ) -> GraphProblem:
        """Check that sizes and rules leave something to plan.

        Parameters
        ----------
        micro_batch_size
            Samples that the model's times are of, where it does not say.

        Raises
        ------
        InputError
            If a number is not positive, a layer has no configuration on one device that may be used, layers have no
            size in common, a size that was asked for does not divide the mini-batch, or nobody says what times are of.
        """
        rules = rules or GraphRules()
        for value, name in (
            (devices, "devices"),
            (memory_bytes, "memory"),
            (bandwidth_bytes_per_s, "bandwidth"),
            (mini_batch, "batch_size"),
        ):
            if value < 1:
                raise InputError(f"must be above zero, not {value}", parameter=name)
        if latency_ticks < 0:
            raise InputError("must be at least zero", source="the latency")
        if not rules.intervals or min(rules.intervals) < 1 or max(rules.intervals) > MOST_INTERVALS:
            raise InputError(f"must be whole numbers from 1 to {MOST_INTERVALS}", source="k of the kFkB orders")
        costs = PipelineCosts(
            model, mini_batch, bandwidth_bytes_per_s, _times_of(model, micro_batch_size), latency_ticks
        )
        choices = [_usable(model, layer, rules) for layer in range(len(model.layers))]
        listed = _common_sizes(model, choices)
        problem = cls(costs, devices, memory_bytes, rules, _sizes(mini_batch, listed, rules), choices, listed)
        problem._check_degrees()
        return problem

    @property
    def model(self) -> TrainingModel:
        """The model to be trained."""
        return self.costs.model

    @property
    def mini_batch(self) -> int:
        """B, in samples."""
        return self.costs.mini_batch

    def degrees(self, size: int) -> Sequence[int]:
        """Return the degrees d of data parallelism for micro-batches of so many samples, ascending."""
        most = min(self.devices, size) if self.rules.data_parallel else 1
        return [d for d in range(1, most + 1) if size % d == 0 and (self.listed is None or size // d in self.listed)]

    def layer_costs(self, layer: int, choice: int, samples: int) -> PassCosts | None:
        """Return what a layer costs for so many samples on a device in one of its choices; None if nobody knows."""
        key = layer, choice, samples
        if key not in self._known_costs:
            one = self.choices[layer][choice]
            listed = not one.micro_batches or samples in one.micro_batches
            self._known_costs[key] = self.costs.passes(one, samples) if listed else None
        return self._known_costs[key]

    @cached_property
    def _known_costs(self) -> dict[tuple[int, int, int], PassCosts | None]:
        return {}

    def runnable(self, layers: Sequence[int], chosen: Sequence[int], samples: int) -> bool:
        """Tell whether layers have costs of so many samples on a device, in the configurations chosen of each."""
        ones = (self.choices[layer][c] for layer, c in zip(layers, chosen, strict=True))
        return all(not one.micro_batches or samples in one.micro_batches for one in ones)

    def _check_degrees(self) -> None:
        if any(self.degrees(size) for size in self.sizes):
            return
        known = ", ".join(map(str, self.listed or ()))
        problem = f"no size of micro-batches can be used: the model has costs of {known} samples on a device"
        raise InputError(problem, parameter="micro_batch_sizes", remedy="give some of them")


def _times_of(model: TrainingModel, given: int | None) -> int:
    """Return the samples that the times of a model are of: as it says, or as the caller does."""
    stated = model.micro_batch_size
    if given is not None and given < 1:
        raise InputError(f"must be above zero, not {given}", parameter="micro_batch_size")
    if stated is None:
        if given is None:
            problem = "the model does not say of how many samples its times are"
            raise InputError(problem, parameter="micro_batch_size", remedy="give them")
        return given
    if given not in (None, stated):
        problem = f"the model's times are of {stated} samples"
        raise InputError(problem, parameter="micro_batch_size", remedy="leave it out; the file says so")
    return stated


def _usable(model: TrainingModel, layer: int, rules: GraphRules) -> list[Configuration]:
    found = [one for one in model.layers[layer].configurations.get(1, ()) if rules.recompute or not one.recomputes]
    if not found:
        problem = f"layer {model.layers[layer].name!r} has no configuration for t = 1 that may be used"
        raise model.fault(problem, model.places.layer(layer, model.places.configurations))
    return found


def _common_sizes(model: TrainingModel, choices: Sequence[Sequence[Configuration]]) -> list[int] | None:
    """Return the samples that some configuration of every layer has costs of; None where any number will do."""
    common: set[int] | None = None
    for layer, here in enumerate(choices):
        if not all(one.micro_batches for one in here):
            continue
        known = {size for one in here for size in one.micro_batches}
        common = known if common is None else common & known
        if not common:
            problem = (
                f"layer {model.layers[layer].name!r} has costs of no size of micro-batches that those before it have"
            )
            where = model.places.layer(layer, model.places.configurations)
            raise model.fault(problem, where, "give all layers costs of one size at least")
    return None if common is None else sorted(common)


def _sizes(mini_batch: int, listed: Sequence[int] | None, rules: GraphRules) -> list[int]:
    asked = rules.micro_batch_sizes
    if asked is not None:
        for size in asked:
            if size < 1 or mini_batch % size:
                problem = f"micro-batches of {size:,} samples do not divide the mini-batch of {mini_batch:,}"
                raise InputError(problem, parameter="micro_batch_sizes")
        return sorted(set(asked))
    tried = [1 << i for i in range(mini_batch.bit_length())] if listed is None else listed
    found = [size for size in tried if mini_batch % size == 0]
    if not found:
        known = ", ".join(map(str, tried))
        problem = f"none of the sizes that the model has costs of, {known}, divides {mini_batch:,} samples"
        raise InputError(problem, parameter="batch_size")
    return found
