"""The planning problem of GraphPipe: a model, K devices and a mini-batch, with the rules that plans keep to.

Stages run on d devices each, form any acyclic graph, and pass micro-batches of b samples on; every cost is in integer
ticks (1 tick = 1 ps) or bytes. The measure is the time of one iteration, synchronisation included (Jeon et al. 2025,
section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

from mtpp.errors import InputError
from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts
from mtpp.units import PICOSECONDS, ceil_ratio

IN_FLIGHT = ("any", "least")
"""Micro-batches in flight: as many as shorten the iteration, or as few as cost no throughput with equal passes."""

MOST_INTERVALS = 64

MOST_PASSES = 2**20
"""Of all stages together: smaller micro-batches are not tried."""

LARGEST = 2**60
"""Ticks and bytes that all layers and transfers of an iteration could add up to stay below."""


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
        Samples b of micro-batches that stages may have, ascending; each divides B and makes at most
        :data:`MOST_PASSES` passes.
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
            If a number is not positive or too large, costs are, a layer has no configuration on one device that may be
            used, layers have no size in common, a size that was asked for does not divide the mini-batch or makes too
            many passes, or nobody says what times are of.
        """
        rules = rules or GraphRules()
        for value, least, name in (
            (devices, 1, "devices"),
            (memory_bytes, 1, "memory"),
            (bandwidth_bytes_per_s, 1, "bandwidth"),
            (mini_batch, 1, "batch_size"),
            (latency_ticks, 0, "latency"),
        ):
            if not least <= value < LARGEST:
                raise InputError(f"must be at least {least} and below 2^60, not {value}", parameter=name)
        if not rules.intervals or min(rules.intervals) < 1 or max(rules.intervals) > MOST_INTERVALS:
            raise InputError(f"must be whole numbers from 1 to {MOST_INTERVALS}", parameter="kfkb")
        costs = PipelineCosts(
            model, mini_batch, bandwidth_bytes_per_s, _times_of(model, micro_batch_size), latency_ticks
        )
        choices = [_usable(model, layer, rules) for layer in range(len(model.layers))]
        listed = _common_sizes(model, choices)
        stages = min(devices, len(model.layers))
        sizes = _sizes(mini_batch, listed, rules, stages)
        problem = cls(costs, devices, memory_bytes, rules, sizes, choices, listed)
        problem._check_degrees()
        problem._check_range()
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
        if not self.rules.data_parallel:
            found = [1]
        elif self.listed is None:
            low = [d for d in range(1, isqrt(size) + 1) if size % d == 0]
            found = [*low, *(size // d for d in reversed(low) if d * d != size)]
        else:
            found = [size // samples for samples in reversed(self.listed) if size % samples == 0]
        listed = self.listed
        return [d for d in found if d <= self.devices and (listed is None or size // d in listed)]

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

    def _check_range(self) -> None:
        """Check that all that a plan could add up stays below :data:`LARGEST`: kernels count in 64 bits."""
        model, costs = self.model, self.costs
        ticks = held = 0
        for layer, here in enumerate(self.choices):
            known = [
                (self.mini_batch // size, one)
                for size in self.sizes
                for d in self.degrees(size)
                for c in range(len(here))
                if (one := self.layer_costs(layer, c, size // d)) is not None
            ]
            ticks += max((count * (one.forward_ticks + one.backward_ticks) for count, one in known), default=0)
            held += max(one.memory_b for one in here)
            held += max((count * one.memory_bytes for count, one in known), default=0)
        counts = [(self.mini_batch // size, size) for size in self.sizes]
        ones = [one for here in self.choices for one in here]
        shared = [
            size for one in ones for size in (*one.forward_sync_bytes.values(), *one.backward_sync_bytes.values())
        ]
        largest = max(shared, default=0)
        for edge in model.edges:
            most = edge.communication_bytes + largest
            ticks += 2 * max(count * costs.transfer([most], size, 1) for count, size in counts)
        ticks += 2 * len(model.layers) * costs.latency_ticks * max(count for count, _ in counts)
        parameters = sum(max(one.parameter_bytes for one in here) for here in self.choices)
        ticks += ceil_ratio(2 * parameters * PICOSECONDS["s"], costs.bandwidth_bytes_per_s)
        if max(ticks, held) >= LARGEST:
            raise InputError(
                "the costs are too large: all layers and transfers of an iteration together reach 2^60",
                source=model.places.source,
                remedy="check the costs, the time unit, the bandwidth and the mini-batch",
            )


def _times_of(model: TrainingModel, given: int | None) -> int:
    """Return the samples that the times of a model are of: as it says, or as the caller does."""
    stated = model.micro_batch_size
    if given is not None and given < 1:
        raise InputError(f"must be above zero, not {given}", parameter="micro_batch_size")
    if stated is None:
        if given is None:
            problem = "the model does not say of how many samples its times are"
            raise InputError(problem, parameter="micro_batch_size", remedy="give that number")
        return given
    if given not in (None, stated):
        problem = f"the model's times are of {stated:,} sample{'' if stated == 1 else 's'}"
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


def _sizes(mini_batch: int, listed: Sequence[int] | None, rules: GraphRules, stages: int) -> list[int]:
    """Return the samples of micro-batches that plans of so many stages may have."""
    least = min(rules.intervals)
    asked = rules.micro_batch_sizes
    if asked is not None:
        for size in asked:
            if size < 1 or mini_batch % size:
                problem = f"micro-batches of {size:,} samples do not divide the mini-batch of {mini_batch:,}"
                raise InputError(problem, parameter="micro_batch_sizes")
    tried = (
        asked if asked is not None else [1 << i for i in range(mini_batch.bit_length())] if listed is None else listed
    )
    found = [size for size in sorted(set(tried)) if mini_batch % size == 0]
    if not found:
        known = ", ".join(map(str, sorted(tried)))
        problem = f"no size that the model has costs of ({known}) divides {mini_batch:,} samples"
        raise InputError(problem, parameter="batch_size")
    few = [size for size in found if 2 * stages * (mini_batch // size) <= MOST_PASSES]
    if not few or (asked is not None and len(few) < len(found)):
        problem = (
            f"micro-batches of {found[0]:,} sample{'' if found[0] == 1 else 's'} are too small: "
            f"an iteration has more than {MOST_PASSES:,} passes"
        )
        parameter = "batch_size" if asked is None else "micro_batch_sizes"
        raise InputError(problem, parameter=parameter, remedy="give larger micro-batches")
    usable = [size for size in few if mini_batch // size >= least]
    if not usable:
        problem = f"no iteration has {least} micro-batches of the sizes allowed"
        raise InputError(problem, parameter="kfkb", remedy="allow a smaller k, or smaller micro-batches")
    return usable
