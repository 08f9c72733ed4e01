"""A model to be trained as the exhaustive search over its pipelines takes it; see the kernel of the same name.

Made from what the verifier derives of a file (:mod:`mtpp.checker.training.model`), never from what planners do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any, Protocol

import numpy as np

from mtpp.array_types import Int64Array
from mtpp.checker.training.bounds import usable_data_degrees, usable_degrees, usable_options
from mtpp.checker.training.model import LayerOption, TickModel

MOST_DOWNSETS = 300_000
"""Downsets that a model may have to be searched."""

_MOST_STATES = 150_000_000
_SLICE_S = 0.1

LARGEST = 2**62
"""Limit below which sums of costs have to stay, for no number to wrap."""


class Watcher(Protocol):
    """Listens to a search; its methods have to return quickly, and may raise what ends the search."""

    def alive(self) -> None:
        """Take note that the search goes on."""

    def searched(self, done: int, downsets: int) -> None:
        """Take note of the number of downsets expanded, of all."""


class Unwatched:
    """The watcher that ignores everything."""

    def alive(self) -> None:
        """Ignore it."""

    def searched(self, done: int, downsets: int) -> None:
        """Ignore it."""


class TooLarge(Exception):
    """The search is out of reach; the text says why."""


@dataclass(frozen=True)
class Searched:
    """What a search came to.

    Attributes
    ----------
    found
        Whether there is a pipeline within the limits.
    stages
        How many stages were looked at.
    """

    found: bool
    downsets: int
    stages: int


def search_all(
    model: TickModel, system: dict[str, Any], below: Fraction | None, memory_bytes: int, watcher: Watcher
) -> Searched:
    """Tell whether there is any pipeline all of whose stages take less than *below* ticks; None: whatever they take.

    Parameters
    ----------
    system
        Of the plan; its memory counts for nothing, *memory_bytes* is what devices have.

    Notes
    -----
    Every contiguous set of layers that can be a stage, with all degrees and all numbers of micro-batches in flight.
    """
    if (system.get("topology") or ())[1:]:
        raise TooLarge("it knows one level of devices")
    if below == 0:
        return Searched(False, 0, 0)
    from mtpp.solvers.recheck.kernels.pipelines import Downsets, Rules, search_pipelines
    from mtpp.solvers.recheck.kernels.stages import Choices

    degrees = usable_degrees(model, system)
    options = [[usable_options(model, system, v, t) for v in range(len(model.ids))] for t in degrees]
    if not all(any(by_layer[v] for by_layer in options) for v in range(len(model.ids))):
        return Searched(False, 0, 0)
    _refuse_large(model, system, options)
    masks, grow = all_downsets(model, alive=watcher.alive)
    most = min(system["devices"], system["max_micro_batches"])
    if len(masks) * (most + 1) > _MOST_STATES:
        raise TooLarge(f"{len(masks)} downsets with up to {most} micro-batches in flight are too many")
    rules = Rules(**_rules(system, below, memory_bytes, most, degrees))
    choices = Choices(**choice_arrays(model, options))
    downsets = Downsets(**_downsets(model, masks, grow, options, degrees, below))
    fewest = np.full((len(masks), most + 1), system["devices"] + 1, dtype=np.int32)
    fewest[0, 0] = 0
    seen = np.full(len(masks), -1, dtype=np.int32)
    stages = 0
    for first, last in _slices(len(masks), watcher):
        stages += search_pipelines(first, last, downsets, choices, rules, fewest, seen)
    whole = fewest[-1, system["max_micro_batches"] :] if system["exact_micro_batches"] else fewest[-1, 1:]
    return Searched(bool((whole <= system["devices"]).any()), len(masks), stages)


def all_downsets(
    model: TickModel, most: int | None = None, alive: Callable[[], None] | None = None
) -> tuple[list[int], list[list[int]]]:
    """Return all sets of layers that are closed under successors, as bits, smaller ones first.

    Parameters
    ----------
    most
        How many there may be, :data:`MOST_DOWNSETS` if it is None.
    alive
        Called for each of them; it may raise what ends the search.

    Returns
    -------
    The sets, and for each the positions of those that are larger by one layer.
    """
    most = MOST_DOWNSETS if most is None else most
    after = [0] * len(model.ids)
    for u, v, _ in model.edges:
        after[u] |= 1 << v
    masks, grow = [0], []
    place = {0: 0}
    for mask in masks:  # grows meanwhile
        if alive is not None:
            alive()
        larger = []
        for v, needed in enumerate(after):
            if not mask >> v & 1 and not needed & ~mask:
                other = mask | 1 << v
                if other not in place:
                    place[other] = len(masks)
                    masks.append(other)
                larger.append(place[other])
        grow.append(larger)
        if len(masks) > most:
            raise TooLarge(f"the model has more than {most} downsets")
    return masks, grow


def _slices(count: int, watcher: Watcher) -> Iterator[tuple[int, int]]:
    """Yield downsets a tenth of a second's worth at a time, so that the watcher hears of them and work can be ended."""
    first, size = 0, 1
    while first < count:
        watcher.searched(first, count)
        begun = monotonic()
        yield first, min(first + size, count)
        first += size
        took = monotonic() - begun
        size = max(1, size // 2) if took > _SLICE_S else 2 * size if took < _SLICE_S / 4 else size


def _refuse_large(model: TickModel, system: dict[str, Any], options: Sequence[Sequence[Sequence[LayerOption]]]) -> None:
    most = max(system["devices"], 1 if system["convention"] == "paper" else system["max_micro_batches"])
    in_flight = min(system["devices"], system["max_micro_batches"])
    time = 2 * sum(ticks for _, _, ticks in model.edges)
    memory = 0
    for v in range(len(model.ids)):
        here = [option for by_layer in options for option in by_layer[v]]
        syncs = (sum(option.sync_in.values()) + sum(option.sync_out.values()) for option in here)
        time += max(option.compute + option.weights + sync for option, sync in zip(here, syncs, strict=True))
        memory += max(option.a * (1 + in_flight) + option.b for option in here)
    if max(most * time, memory) >= LARGEST:
        raise TooLarge("its costs do not fit 64 bits")


def less_than(limit: Fraction | None) -> int:
    """Return the largest whole number below *limit*, as far as it fits 64 bits."""
    if limit is None:
        return LARGEST
    return min(-(-limit.numerator // limit.denominator) - 1, LARGEST)


def _rules(
    system: dict[str, Any], below: Fraction | None, memory_bytes: int, most: int, degrees: Sequence[int]
) -> dict[str, Any]:
    allowed = usable_data_degrees(system)
    spread = [d if system["convention"] == "paper" else system["max_micro_batches"] for d in allowed]
    return {
        "devices": system["devices"],
        "memory": min(memory_bytes, LARGEST),
        "most_degrees": most,
        "tensor_degrees": _int64(degrees),
        "data_degrees": _int64(allowed),
        "spread": _int64(spread),
        "most_cost": _int64(
            [less_than(None if below is None else below * d * by) for d, by in zip(allowed, spread, strict=True)]
        ),
        "most_work": _int64([less_than(None if below is None else below * m) for m in range(system["devices"] + 1)]),
        "most_compute": _int64([less_than(None if below is None else below * m) for m in range(most + 1)]),
    }


def choice_arrays(model: TickModel, options: Sequence[Sequence[Sequence[LayerOption]]]) -> dict[str, Any]:
    """Return the fields of the kernels' ``Choices``; *options* are by degree t, then by layer."""
    count = len(model.ids)
    edges: list[list[tuple[int, int, bool]]] = [[] for _ in range(count)]
    for u, v, ticks in model.edges:
        edges[u].append((v, ticks, True))
        edges[v].append((u, ticks, False))
    offsets: list[list[int]] = []
    flat: list[tuple[int, LayerOption]] = []
    for by_layer in options:
        row = [len(flat)]
        for v, found in enumerate(by_layer):
            flat += [(v, option) for option in found]
            row.append(len(flat))
        offsets.append(row)
    widest = max((len(here) for here in edges), default=0)
    sync = np.zeros((len(flat), max(1, widest)), dtype=np.int64)
    for i, (v, option) in enumerate(flat):
        for place, (other, _, leaves) in enumerate(edges[v]):
            sync[i, place] = (option.sync_out if leaves else option.sync_in).get(other, 0)
    return {
        "offsets": np.array(offsets, dtype=np.int64),
        "compute": _int64([option.compute for _, option in flat]),
        "weights": _int64([option.weights for _, option in flat]),
        "a": _int64([option.a for _, option in flat]),
        "b": _int64([option.b for _, option in flat]),
        "edge_offsets": _int64(np.cumsum([0, *(len(here) for here in edges)])),
        "edge_end": np.array([other for here in edges for other, _, _ in here], dtype=np.int32),
        "edge_ticks": _int64([ticks for here in edges for _, ticks, _ in here]),
        "sync": sync,
    }


def _downsets(
    model: TickModel,
    masks: Sequence[int],
    grow: Sequence[Sequence[int]],
    options: Sequence[Sequence[Sequence[LayerOption]]],
    degrees: Sequence[int],
    below: Fraction | None,
) -> dict[str, Any]:
    def least(cost: Callable[[int, LayerOption], int]) -> list[int]:
        return least_of_options(model, degrees, options, cost)

    work = sums_over(masks, grow, least(lambda t, option: t * option.compute))
    compute = sums_over(masks, grow, least(lambda _, option: option.compute))
    words = -(-len(model.ids) // 64)
    return {
        "members": np.array(
            [[mask >> 64 * word & (2**64 - 1) for word in range(words)] for mask in masks], dtype=np.uint64
        ),
        "grow_offsets": _int64(np.cumsum([0, *map(len, grow)])),
        "grow_to": np.array([other for row in grow for other in row], dtype=np.int32),
        "rest_devices": _int64([_needed(work[-1] - inside, below) for inside in work[:-1]] + [0]),
        "rest_degrees": _int64([_needed(compute[-1] - inside, below) for inside in compute[:-1]] + [0]),
        "work": _int64(work),
        "compute": _int64(compute),
        "leanest": _int64(sums_over(masks, grow, least(lambda _, option: option.a + option.b))),
    }


def least_of_options(
    model: TickModel,
    degrees: Sequence[int],
    options: Sequence[Sequence[Sequence[LayerOption]]],
    cost: Callable[[int, LayerOption], int],
) -> list[int]:
    """Return for each layer the least *cost* of any degree t and way."""
    return [
        min(cost(t, option) for t, by_layer in zip(degrees, options, strict=True) for option in by_layer[v])
        for v in range(len(model.ids))
    ]


def sums_over(masks: Sequence[int], grow: Sequence[Sequence[int]], weights: Sequence[int]) -> list[int]:
    """Return the sum of the weights of the layers in each downset."""
    sums = [0] * len(masks)
    for i, row in enumerate(grow):
        for j in row:
            sums[j] = sums[i] + weights[(masks[i] ^ masks[j]).bit_length() - 1]
    return sums


def _needed(outside: int, below: Fraction | None) -> int:
    """Return how many devices, or what sum of degrees, layers outside need if no stage takes as long as *below*.

    m devices do less than m · below of t · compute, the same with degrees and compute; there is one stage at least.
    """
    return 1 if below is None else min(outside * below.denominator // below.numerator + 1, LARGEST)


def _int64(values: Any) -> Int64Array:
    return np.array(values, dtype=np.int64)
