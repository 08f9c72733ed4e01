"""Ways to run the layers of a model, each cost computed once for all layers that cost the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from mtpp.training.model import Configuration, TrainingModel
from mtpp.training.stage_costs import PassCosts, PipelineCosts

Way = tuple[int, PassCosts]
"""A choice of a layer that has costs of some samples on a device, with these costs."""


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
