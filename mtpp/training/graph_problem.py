"""The planning problem of GraphPipe: a model, K devices and a mini-batch, with the rules that plans keep to.

Stages run on d devices each, form any acyclic graph, and pass micro-batches of b samples on; every cost is in integer
ticks (1 tick = 1 ps) or bytes. The measure is the time of one iteration, synchronisation included (Jeon et al. 2025,
section 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isqrt

from mtpp.errors import InputError
from mtpp.machine.machine import Machine, OnEqualDevices
from mtpp.names import IN_FLIGHT
from mtpp.ranges import MOST_INTERVALS
from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts

MOST_PASSES = 2**20
"""Of all stages together: smaller micro-batches are not tried."""

MOST_SHOWN = 8
"""Numbers that a message lists one by one."""

LARGEST = 2**60
"""Ticks and bytes that all layers and transfers of an iteration could add up to stay below."""

Way = tuple[int, PassCosts]
"""A choice of a layer that has costs of some samples on a device, with these costs."""


@dataclass(frozen=True)
class GraphRules:
    """Plans that are allowed.

    Attributes
    ----------
    micro_batch_sizes
        Samples of micro-batches to try; None: all that some layer has costs of, or powers of two where there are none
        that divide the mini-batch.
    per_stage
        Whether stages may differ in them.
    intervals
        Numbers k of kFkB orders.
    in_flight
        One of :data:`mtpp.names.IN_FLIGHT`.
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
class GraphProblem(OnEqualDevices):
    """Model × devices × mini-batch. Make one with :meth:`build`.

    Attributes
    ----------
    costs
        Of stages and transfers; it holds the model, the mini-batch B and the link.
    machine
        K equal devices in one network.
    sizes
        Samples b of micro-batches that stages may have, ascending; each divides B and makes at most
        :data:`MOST_PASSES` passes.
    ways
        Configurations of the layers on one device that may be used, and their costs.

    Notes
    -----
    The rules of plans that search and bounds both follow are methods here: :meth:`layer_ways`, :meth:`degrees`,
    :meth:`fewest_in_flight`. The verifier has its own.
    """

    costs: PipelineCosts
    machine: Machine
    rules: GraphRules
    sizes: Sequence[int]
    ways: LayerWays

    @classmethod
    def build(
        cls,
        model: TrainingModel,
        *,
        machine: Machine,
        mini_batch: int,
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
            used, or costs of no number of samples that it could be given, a size that was asked for does not divide the
            mini-batch or makes too many passes, or nobody says what times are of.
        """
        machine.require_uniform()
        rules, link = rules or GraphRules(), machine.device.link
        for value, least, name in (
            (machine.count, 1, "devices"),
            (machine.required_memory_bytes, 1, "memory"),
            (link.bandwidth_bytes_per_s, 1, "bandwidth"),
            (mini_batch, 1, "batch_size"),
            (link.latency_ps, 0, "latency"),
        ):
            if not least <= value < LARGEST:
                raise InputError(f"must be at least {least} and below 2^60, not {value}", parameter=name)
        if not rules.intervals or min(rules.intervals) < 1 or max(rules.intervals) > MOST_INTERVALS:
            raise InputError(f"must be whole numbers from 1 to {MOST_INTERVALS}", parameter="kfkb")
        costs = PipelineCosts(model, mini_batch, link, _times_of(model, micro_batch_size))
        ways = LayerWays(costs, rules.recompute)
        stages = min(machine.count, len(model.layers))
        sizes = _sizes(model, mini_batch, ways.choices, rules, stages)
        problem = cls(costs, machine, rules, sizes, ways)
        problem._check_layers()
        problem._check_range()
        return problem

    @property
    def model(self) -> TrainingModel:
        """The model to be trained."""
        return self.costs.model

    @cached_property
    def choices(self) -> Sequence[Sequence[Configuration]]:
        """By layer: its configurations on one device that may be used."""
        return self.ways.choices

    @property
    def mini_batch(self) -> int:
        """B, in samples."""
        return self.costs.mini_batch

    def degrees(self, size: int) -> Sequence[int]:
        """Return the degrees d of data parallelism for micro-batches of so many samples, ascending.

        Some layer has costs of size / d samples; which of them a stage may have, :meth:`layer_ways` of its layers say.
        """
        if size not in self._known_degrees:
            most = self.devices if self.rules.data_parallel else 1
            low = [d for d in range(1, isqrt(size) + 1) if size % d == 0]
            found = [*low, *(size // d for d in reversed(low) if d * d != size)]
            samples = self.ways.listed_samples
            self._known_degrees[size] = [d for d in found if d <= most and (samples is None or size // d in samples)]
        return self._known_degrees[size]

    @cached_property
    def _known_degrees(self) -> dict[int, list[int]]:
        return {}

    def layer_ways(self, layer: int, samples: int) -> Sequence[Way]:
        """Return the choices of a layer that have costs of so many samples on a device, with these costs.

        A layer can be in a stage only if it has costs of the stage's samples on a device.
        """
        return self.ways.of(samples)[layer]

    def fewest_in_flight(self, size: int, interval: int, behind: Sequence[tuple[int, int, int]]) -> int:
        """Return the fewest micro-batches that a stage has to keep in flight (Jeon et al. 2025, Table 2).

        Parameters
        ----------
        size, interval
            Samples b of its micro-batches, and k of its kFkB order.
        behind
            The same of each stage that reads from it, and the micro-batches that it has in flight.
        """
        needed = interval * size
        for other, theirs, count in behind:
            needed = max(needed, least_before(size, interval, other, theirs, count * other))
        return self.micro_batches_with(size, needed)

    def micro_batches_with(self, size: int, samples: int) -> int:
        """Return the micro-batches of a size in which so many samples are, at most those of an iteration."""
        return min(-(-samples // size), self.costs.mini_batch // size)

    @cached_property
    def most_bytes(self) -> int:
        """Bytes that no device of any plan needs more than; memory beyond does not help."""
        fixed = sum(max(one.memory_b for one in here) for here in self.choices)
        return fixed + self._sum_of_most(lambda size, one: self.mini_batch // size * one.memory_bytes)

    def _sum_of_most(self, cost: Callable[[int, PassCosts], int]) -> int:
        """Return the sum over all layers of the largest cost, given samples of a micro-batch, in any stage."""
        each = [(size, self.ways.of(size // d)) for size in self.sizes for d in self.degrees(size)]
        return self.ways.total(
            lambda layer: max(cost(size, one) for size, by_layer in each for _, one in by_layer[layer])
        )

    def _check_layers(self) -> None:
        """Check that every layer has costs of some number of samples that a stage could give it."""
        together = [self.sizes] if self.rules.per_stage else [[size] for size in self.sizes]
        lacking = [self.lacking(sizes) for sizes in together]
        if any(not layers for layers in lacking):
            return
        model = self.model
        said = []
        for sizes, layers in zip(together, lacking, strict=True):
            known = sorted({samples for one in self.choices[layers[0]] for samples in one.micro_batches})
            said.append(
                f"of {_listed(sizes)}, layer {model.layers[layers[0]].name!r} has costs of {_listed(known)} alone"
            )
        most = self.devices if self.rules.data_parallel else 1
        replicas = f"on at most {most:,} devices" if most > 1 else "on one device"
        raise InputError(
            f"no size of micro-batches can be used {replicas}: {'; '.join(said[:MOST_SHOWN])}",
            source=model.places.source,
            parameter="micro_batch_sizes",
            remedy="give sizes that replicas can share so that each has samples which its layers have costs of",
        )

    def lacking(self, sizes: Sequence[int]) -> list[int]:
        """Return the layers that have no costs of samples that a device could have of micro-batches of such sizes."""
        return self.ways.lacking(sorted({size // d for size in sizes for d in self.degrees(size)}))

    def narrowed(self, rules: GraphRules, sizes: Sequence[int]) -> GraphProblem:
        """Return the same by rules that allow fewer plans, with some of the sizes."""
        return replace(self, rules=rules, sizes=sizes, ways=self.ways.by(rules.recompute))

    def _check_range(self) -> None:
        """Check that all that a plan could add up stays below :data:`LARGEST`: kernels count in 64 bits."""
        model, costs = self.model, self.costs
        ticks, held = self._sum_of_most(lambda size, one: self.mini_batch // size * one.both_ticks), self.most_bytes
        counts = [(self.mini_batch // size, size) for size in self.sizes]
        ones = [one for here in self.choices for one in here]
        shared = [
            size for one in ones for size in (*one.forward_sync_bytes.values(), *one.backward_sync_bytes.values())
        ]
        largest = max(shared, default=0)
        for moved, edges in Counter(edge.communication_bytes for edge in model.edges).items():
            ticks += 2 * edges * max(count * costs.transfer([moved + largest], size, 1) for count, size in counts)
        ticks += 2 * len(model.layers) * costs.link.latency_ps * max(count for count, _ in counts)
        parameters = sum(max(one.gradient_bytes for one in here) for here in self.choices)
        ticks += costs.link.streaming_ps(2 * parameters)
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


def _listed_sizes(model: TrainingModel) -> list[int]:
    """Return the samples that some layer has costs of on one device, ascending.

    Of all its configurations, whether the rules allow them or not: what is tried by default does not depend on rules.
    """
    ones = (one for layer in model.layers for one in layer.configurations.get(1, ()))
    return sorted({samples for one in ones for samples in one.micro_batches})


def _check_any_divides(model: TrainingModel, mini_batch: int, choices: Sequence[Sequence[Configuration]]) -> None:
    """Check that no layer has costs of listed samples alone, none of which divides the mini-batch."""
    for layer, here in zip(model.layers, choices, strict=True):
        if all(one.micro_batches for one in here):
            known = _listed(sorted({samples for one in here for samples in one.micro_batches}))
            problem = f"no size that layer {layer.name!r} has costs of ({known}) divides {mini_batch:,} samples"
            raise InputError(problem, parameter="batch_size", remedy="give a multiple of one of them")


def _listed(numbers: Sequence[int]) -> str:
    shown = [f"{one:,}" for one in numbers]
    return ", ".join(shown if len(shown) <= MOST_SHOWN else [*shown[:3], "…", *shown[-3:]])


def _sizes(
    model: TrainingModel, mini_batch: int, choices: Sequence[Sequence[Configuration]], rules: GraphRules, stages: int
) -> list[int]:
    """Return the samples of micro-batches that plans of so many stages may have."""
    least = min(rules.intervals)
    asked = rules.micro_batch_sizes
    if asked is not None:
        for size in asked:
            if size < 1 or mini_batch % size:
                problem = f"micro-batches of {size:,} samples do not divide the mini-batch of {mini_batch:,}"
                raise InputError(problem, parameter="micro_batch_sizes")
    tried = _listed_sizes(model) if asked is None else asked
    found = [size for size in sorted(set(tried)) if mini_batch % size == 0]
    if not found:
        _check_any_divides(model, mini_batch, choices)
        found = [1 << i for i in range(mini_batch.bit_length()) if mini_batch % (1 << i) == 0]
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


def least_before(size: int, interval: int, later_size: int, later_interval: int, later: int) -> int:
    """Return the samples that a stage has to keep in flight for one stage behind it: Table 2 in one line.

    Parameters
    ----------
    size, interval
        Samples b of its micro-batches, and k of its kFkB order.
    later_size, later_interval, later
        The same of the stage behind, and the samples that it keeps in flight.

    Notes
    -----
    All ten rows of the table. It is exact where forward passes take as long as backward passes, one of the sizes
    divides the other, and transfers are free.
    """
    return later + more_before(size, interval, later_size, later_interval)


@lru_cache(maxsize=1_024)
def more_before(size: int, interval: int, later_size: int, later_interval: int) -> int:
    """Return the samples that a stage has to keep in flight beyond those of a stage behind it."""
    ours, theirs, larger = interval * size, later_interval * later_size, max(size, later_size)
    return max(0, ours - theirs) + larger * (2 if larger < min(ours, theirs) else 1)


class LayerWays:
    """Choices of layers on one device, and their costs by samples.

    Parameters
    ----------
    recompute
        Whether configurations that compute activations twice may be used.

    Attributes
    ----------
    choices
        By layer: its configurations that may be used.

    Raises
    ------
    InputError
        If a layer has none.

    Notes
    -----
    Costs take O(layers) look-ups for each number of samples, and are computed once for each kind of layers: models of
    thousands of layers have a few kinds.
    """

    def __init__(self, costs: PipelineCosts, recompute: bool) -> None:
        self._costs, self._recompute = costs, recompute
        self.choices = [_usable(costs.model, layer, recompute) for layer in range(len(costs.model.layers))]
        self._of_samples: dict[int, Sequence[Sequence[Way]]] = {}
        self._of_choices: dict[int, Sequence[Mapping[int, PassCosts]]] = {}
        self._other: LayerWays | None = None

    def by(self, recompute: bool) -> LayerWays:
        """Return the same with configurations that compute activations twice, or without."""
        if recompute == self._recompute:
            return self
        if self._other is None:
            self._other = LayerWays(self._costs, recompute)
            self._other._other = self
        return self._other

    @cached_property
    def kinds(self) -> Sequence[int]:
        """By layer: a number, the same for layers whose choices cost the same."""
        numbers: dict[object, int] = {}
        return [numbers.setdefault(tuple(map(_costs, here)), len(numbers)) for here in self.choices]

    @cached_property
    def examples(self) -> Sequence[int]:
        """By kind: its first layer."""
        first: dict[int, int] = {}
        for layer, kind in enumerate(self.kinds):
            first.setdefault(kind, layer)
        return list(first.values())

    @cached_property
    def counts(self) -> Sequence[int]:
        """By kind: its number of layers."""
        count = Counter(self.kinds)
        return [count[kind] for kind in range(len(count))]

    @cached_property
    def of_kinds(self) -> Sequence[Sequence[Configuration]]:
        """By kind: configurations of its first layer, which cost what those of the others do."""
        return [self.choices[layer] for layer in self.examples]

    @cached_property
    def shares(self) -> Sequence[bool]:
        """By layer: whether a choice takes bytes more to hand its tensors to several devices."""
        return [any(one.forward_sync_bytes or one.backward_sync_bytes for one in here) for here in self.choices]

    @cached_property
    def listed_samples(self) -> frozenset[int] | None:
        """Samples on a device that some layer has costs of; None: any number."""
        ones = [one for here in self.of_kinds for one in here]
        if not all(one.micro_batches for one in ones):
            return None
        return frozenset(samples for one in ones for samples in one.micro_batches)

    def of(self, samples: int) -> Sequence[Sequence[Way]]:
        """Return the ways to run each layer with so many samples on a device."""
        if samples not in self._of_samples:
            by_kind = [list(self._known(here, samples)) for here in self.of_kinds]
            self._of_samples[samples] = [by_kind[kind] for kind in self.kinds]
        return self._of_samples[samples]

    def of_choices(self, samples: int) -> Sequence[Mapping[int, PassCosts]]:
        """Return the costs of each layer with so many samples on a device, by choice where it has any."""
        if samples not in self._of_choices:
            of = self.of(samples)
            by_kind = [dict(of[layer]) for layer in self.examples]
            self._of_choices[samples] = [by_kind[kind] for kind in self.kinds]
        return self._of_choices[samples]

    def lacking(self, samples: Sequence[int]) -> list[int]:
        """Return the layers that have costs of none of these samples."""
        each = [self.of(count) for count in samples]
        kinds = {kind for kind, layer in enumerate(self.examples) if not any(ways[layer] for ways in each)}
        return [layer for layer, kind in enumerate(self.kinds) if kind in kinds] if kinds else []

    def total(self, cost: Callable[[int], int]) -> int:
        """Return the sum over all layers of a cost that layers of one kind share."""
        return sum(count * cost(layer) for layer, count in zip(self.examples, self.counts, strict=True))

    def _known(self, choices: Sequence[Configuration], samples: int) -> Iterator[Way]:
        for c, one in enumerate(choices):
            if not one.micro_batches or samples in one.micro_batches:
                yield c, self._costs.passes(one, samples)


def _usable(model: TrainingModel, layer: int, recompute: bool) -> list[Configuration]:
    found = [one for one in model.layers[layer].configurations.get(1, ()) if recompute or not one.recomputes]
    if not found:
        problem = f"layer {model.layers[layer].name!r} has no configuration for t = 1 that may be used"
        raise model.fault(problem, model.places.layer(layer, model.places.configurations))
    return found


def _costs(one: Configuration) -> object:
    tables = tuple(sorted(one.micro_batches.items()))
    return one.time_per_sample, one.gradient_bytes, one.memory_a, one.memory_b, tables
