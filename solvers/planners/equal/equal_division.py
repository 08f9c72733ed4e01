"""Layers divided into groups of equal size: what the simple planners of training pipelines look at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtpp.solvers.planners.topological_orders import topological_orders
from mtpp.training.model import TrainingModel

LEAST_REPEATS = 3
"""So many layers of one kind make a model that consists of repetitions."""


@dataclass(frozen=True)
class RepeatedLayers:
    """Layers of one kind, each of which needs the one before it, and where the others stand towards them.

    Attributes
    ----------
    kind
        Their name without numbers.
    layers
        Positions in the model, in the order in which they follow each other.
    place
        For each layer of the model: the number of the last repeated layer that it is or needs; -1 for those before all.
    feeds
        Layers that need nothing themselves and are needed only by repeated layers and what comes after them: masks and
        the like.
    """

    kind: str
    layers: Sequence[int]
    place: Sequence[int]
    feeds: Sequence[int]


def kind_of(name: str) -> str:
    """Return what a layer's name says without its numbers: ``h.3.mlp`` is ``h.#.mlp``, ``Layer #5`` is ``Layer``."""
    return re.sub(r"\d+", "#", name).rstrip("# ._-/:()[]'")


def repeated_layers(model: TrainingModel) -> RepeatedLayers | None:
    """Return the layers of the kind that comes up most often, if they follow one another; None if they do not.

    There have to be :data:`LEAST_REPEATS` of them, and each needs the one before it, directly or by way of others.
    Where several kinds come up equally often, the first that does counts. O(layers + edges) for each of these.
    """
    by_kind: dict[str, list[int]] = {}
    for v in model.order:
        by_kind.setdefault(kind_of(model.layers[v].name), []).append(v)
    before: list[list[int]] = [[] for _ in model.layers]
    after: list[list[int]] = [[] for _ in model.layers]
    for source, target in model.ends:
        before[target].append(source)
        after[source].append(target)
    most = max(map(len, by_kind.values()))
    if most < LEAST_REPEATS:
        return None
    for kind, layers in by_kind.items():
        if len(layers) < most:
            continue
        number = {v: i for i, v in enumerate(layers)}
        place = [-1] * len(model.layers)
        for v in model.order:
            needed = max((place[u] for u in before[v]), default=-1)
            # Of a chain each layer needs the one before it; any other is reached from an earlier one, or from none.
            if v in number and needed != number[v] - 1:
                break
            place[v] = number.get(v, needed)
        else:
            feeds = [
                v
                for v in range(len(model.layers))
                if place[v] < 0 and not before[v] and after[v] and all(place[w] >= 0 for w in after[v])
            ]
            return RepeatedLayers(kind, layers, place, feeds)
    return None


@dataclass(frozen=True, eq=False)
class Division:
    """A stage for each layer of the model, int64, shape (layers,), and their number; edges lead on."""

    stage_of: NDArray[np.int64]
    stages: int


def divisions(model: TrainingModel, most: int, counts: Iterable[int] | None = None) -> Iterator[Division]:
    """Yield the divisions of the layers into equal groups that have at most *most* stages, all different.

    They come by number of groups, as in *counts* if given, else from 1 on.

    If the model has :func:`repeated_layers`, these are divided. What comes before goes with the first group and what
    comes after with the last (Tarnawski et al. 2021, section 5); or both become stages of their own, where there is
    anything; and the same once more with those that feed repeated layers left with the first group. Otherwise all
    layers are divided, along each of several topological orders.

    Groups of n layers divided by w have n // w of them, the last n mod w groups one more: stages farther on have fewer
    micro-batches in flight, so that their devices have more room.
    """
    seen: set[bytes] = set()
    repeated = repeated_layers(model)
    bases = list(_orders(model)) if repeated is None else list(_around(repeated))
    for groups in range(1, most + 1) if counts is None else counts:
        for base in bases:
            division = base.divided(groups)
            if division is None or division.stages > most:
                continue
            key = division.stage_of.tobytes()
            if key not in seen:
                seen.add(key)
                yield division


@dataclass(frozen=True, eq=False)
class _Base:
    """Layers by number 0 … count - 1 of what is divided; -1 and count: stages of their own before and after that."""

    number: NDArray[np.int64]
    count: int

    def divided(self, groups: int) -> Division | None:
        if groups > self.count:
            return None
        size, longer = divmod(self.count, groups)
        shorter = groups - longer
        sizes = [size] * shorter + [size + 1] * longer
        first, last = bool((self.number < 0).any()), bool((self.number >= self.count).any())
        group_of = np.concatenate(([-1], np.repeat(np.arange(groups), sizes), [groups])).astype(np.int64)
        return Division(group_of[self.number + 1] + first, groups + first + last)


def _orders(model: TrainingModel) -> Iterator[_Base]:
    for order in topological_orders(model):
        number = np.empty(len(order), dtype=np.int64)
        number[list(order)] = np.arange(len(order))
        yield _Base(number, len(order))


def _around(repeated: RepeatedLayers) -> Iterator[_Base]:
    count = len(repeated.layers)
    place = np.array(repeated.place, dtype=np.int64)
    yield _Base(np.maximum(place, 0), count)
    # What needs the last repeated layer comes after all of them; the last itself does not.
    apart = place.copy()
    apart[place == count - 1] = count
    apart[repeated.layers[-1]] = count - 1
    yield _Base(apart, count)
    if repeated.feeds:
        fed = apart.copy()
        fed[list(repeated.feeds)] = 0
        yield _Base(fed, count)
