"""Ways to run a group of layers as a stage, without those that another one is at least as good as in every respect.

Both passes, the synchronisation and memory are sums over layers, what an edge to another stage moves besides its own
bytes is its layer's, and with orders of passes fixed an iteration never gets shorter when one of them grows. So of two
choices of configurations with the same b, d and k, one that is nowhere below the other need not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mtpp.checker.training.graphpipe.bounds import usable_passes
from mtpp.checker.training.graphpipe.costs import GraphModel, LayerChoice, synchronisation_ticks
from mtpp.checker.training.graphpipe.setting import Setting
from mtpp.solvers.recheck.pipelines import TooLarge

MOST_WAYS = 2_000
"""To choose configurations for a group, of which none is better than another."""


class StageWay(NamedTuple):
    """b, d and k of a stage with what its layers cost in sum.

    Attributes
    ----------
    extra
        Bytes besides those of each of :func:`dearer_edges`: of the forward pass where it leads into the stage, of the
        backward pass where it leads out of it; and last 0, for all other edges.
    """

    b: int
    d: int
    k: int
    forward: int
    backward: int
    synchronisation: int
    fixed_bytes: int
    kept_bytes: int
    extra: tuple[int, ...]

    @property
    def both(self) -> int:
        """Ticks of the two passes."""
        return self.forward + self.backward

    def memory(self, in_flight: int) -> int:
        """Return the bytes on each device with so many micro-batches in flight."""
        return self.fixed_bytes + in_flight * self.kept_bytes


_Costs = tuple[int, ...]
_SUMS = 5
"""Costs that are not of an edge."""


def dearer_edges(model: GraphModel, layers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the edges with one end among some layers that may move more than their own bytes, in the model's order."""
    inside = set(layers)
    return [
        (u, v)
        for u, v, _ in model.edges
        if (u in inside) != (v in inside)
        and any(_extra(one, layer, u, v) for layer in (u, v) for one in model.choices[layer])
    ]


def stage_ways(model: GraphModel, setting: Setting, layers: Sequence[int]) -> list[StageWay]:
    """Return all ways to run some layers as a stage, whatever time and memory they take."""
    found = []
    edges = dearer_edges(model, layers)
    for b, d in setting.ways():
        sums: list[_Costs] = [(0,) * (_SUMS + len(edges))]
        for layer in layers:
            costs = [
                (
                    *(passes.forward, passes.backward, one.parameter_bytes, one.fixed_bytes, passes.kept_bytes),
                    *(_extra(one, layer, u, v) for u, v in edges),
                )
                for one, passes in usable_passes(model, layer, b // d)
            ]
            sums = _undominated(tuple(map(sum, zip(one, more, strict=True))) for one in sums for more in costs)
        intervals = [k for k in setting.intervals if k <= setting.batches(b)]
        found += [
            StageWay(
                b, d, k, forward, backward, synchronisation_ticks(parameters, d, setting), fixed, kept, (*extra, 0)
            )
            for forward, backward, parameters, fixed, kept, *extra in sums
            for k in intervals
        ]
    return found


def _extra(one: LayerChoice, layer: int, u: int, v: int) -> int:
    """Return the bytes that a layer run so adds to an edge from u to v."""
    return one.forward_extra.get(u, 0) if layer == v else one.backward_extra.get(v, 0) if layer == u else 0


def _undominated(all_costs: Iterable[_Costs]) -> list[_Costs]:
    found: list[_Costs] = []
    for costs in sorted(set(all_costs)):  # a better one comes first
        if not any(all(a <= b for a, b in zip(other, costs, strict=True)) for other in found):
            found.append(costs)
            if len(found) > MOST_WAYS:
                raise TooLarge(f"a stage can be run in more than {MOST_WAYS} ways")
    return found
