"""Cutting a decomposed graph into the fewest stages below a cutoff, each a series-parallel component.

What a stage may be, by the tree: a run of a series, its first and last children whole or in part; of components side by
side, the part that the stage of their tail holds is a beginning of each, the part of their head's stage an end of each,
and all other stages lie in one of them. Inside a core any set of ops is allowed that holds all ops between its ops.

From the leaves up, each component gets a front: the ways to cut it that may be part of the best cut of the whole
(:mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`). Costs are exact: the fewest stages are found for any
cutoff, except where :meth:`Cutter.coverage` says what was left out.

GraphPipe (section 5) takes the same steps up a decomposition, for two parts at a time: there, the open stages at the
terminals have a schedule and a micro-batch size; here, what they have paid so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.solvers.series_parallel.components import Component, Components, bytes_by_op
from mtpp.solvers.series_parallel.compositions import CORE, EDGE, SERIES
from mtpp.solvers.series_parallel.core_items import Core, make_core
from mtpp.solvers.series_parallel.kernels.core_front import core_front
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    CLOSED,
    FLAGS,
    HEAD,
    HEAD_USED,
    MOST_SHARED,
    TAIL,
    TAIL_USED,
    Terms,
    side_by_side,
)
from mtpp.solvers.series_parallel.kernels.series_front import UNCUT, Series, series_front

_MOST_PAIRS = 1 << 24
"""Pairs of points that two components side by side may have before points are left out."""

_MOST_STAGES = 20_000_000
"""Stages between downsets of all cores together, 16 bytes each."""

_LISTED = 3


class _Front(NamedTuple):
    """The front of a component and where its points come from.

    Attributes
    ----------
    points
        Rows of six, see :mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`.
    origins
        Of a series or core, what its kernel says of each point and of cuts or links; of components side by side, pairs
        of rows, one array for each component but the first.
    """

    points: Int64Array
    origins: list[Int64Array]


class Cutter:
    """Finds cuts of one decomposed instance, for one cutoff after the other.

    Parameters
    ----------
    terms
        No cutoff to come is above this one.

    Attributes
    ----------
    cores
        The cores by component, each made when it is first cut.
    thinned
        Whether some front was too large to be kept whole: cuts may have been missed.
    """

    def __init__(self, components: Components, terms: Terms) -> None:
        self.components = components
        self.cores: dict[int, Core] = {}
        self.thinned = False
        self._loosest = terms
        cores = sum(component.kind == CORE for component in components.distinct)
        self._most_states = math.isqrt(2 * _MOST_STAGES // max(1, cores))
        self._series: dict[int, tuple[Series, list[int], Int64Array]] = {}
        for number, component in enumerate(components.distinct):
            if component.kind == SERIES:
                self._series[number] = self._prepared(component)

    def coverage(self) -> str:
        """Return what was left out, for people; empty if all cuts into such components were tried."""
        tree, component_of = self.components.tree, self.components.component_of
        cores = tree.cores()
        ordered = [
            node for node in cores if component_of[node] in self.cores and not self.cores[component_of[node]].exhaustive
        ]
        texts = []
        if ordered:
            sizes = sorted((tree.layout.sizes[node] for node in ordered), reverse=True)
            listed = ", ".join(f"{size:,}" for size in sizes[:_LISTED]) + (", …" if len(sizes) > _LISTED else "")
            which = f"{len(ordered):,} of {len(cores):,} cores" if len(cores) > 1 else "the core"
            texts.append(f"{which} cut along the file's order only ({listed} ops)")
        if self.thinned:
            texts.append("fronts thinned")
        if self.components.approximate:
            texts.append(f"tensors beyond {MOST_SHARED} of one op paid for by each reader")
        return "; ".join(texts)

    def cut(self, terms: Terms, stop: Callable[[], object]) -> list[int] | None:
        """Return a stage for each op such that every stage stays below the cutoff.

        Parameters
        ----------
        stop
            Asked between components; when it says anything, the search ends.

        Returns
        -------
        Labels of stages, at most as many as there may be, in no order; None if there is no such cut, if none was found
        among thinned fronts, or if stopped.
        """
        fronts: list[_Front] = []
        for number, component in enumerate(self.components.distinct):
            if stop():
                return None
            fronts.append(self._front(number, component, fronts, terms))
        points = fronts[-1].points
        if not len(points):
            return None
        best = np.lexsort((points[:, HEAD], points[:, TAIL], points[:, CLOSED]))[0]
        return _Labels(self, fronts).of(int(best)) if points[best, CLOSED] <= terms.stages else None

    def _prepared(self, component: Component) -> tuple[Series, list[int], Int64Array]:
        """Return a series without the fronts of its components, the components that differ, and which each one is."""
        distinct, index = np.unique(component.children, return_inverse=True)
        joints = component.joints
        instance = self.components.instance
        inner = [self.components.distinct[child] for child in component.children]
        empty = np.empty(0, dtype=np.int64)
        series = Series(
            np.empty((0, 6), dtype=np.int64),
            empty,
            empty,
            np.array([child.work for child in inner], dtype=np.int64),
            np.array([child.params for child in inner], dtype=np.int64),
            instance.work[joints],
            bytes_by_op(instance)[joints],
            whole_graph=component.node == self.components.tree.root,
            tail_flag=component.tail_flag,
            head_flag=component.head_flag,
        )
        return series, distinct.tolist(), index

    def _front(self, number: int, component: Component, fronts: list[_Front], terms: Terms) -> _Front:
        charges, ends = component.charge_array, component.ends
        if component.kind == EDGE:
            tail, head, flags = component.edge
            front = _Front(np.array([[0, tail, head, flags, 0, 0]], dtype=np.int64), [])
        elif component.kind == SERIES:
            series, distinct, index = self._series[number]
            parts = [fronts[child].points for child in distinct]
            limits = np.cumsum([0, *map(len, parts)])
            series = series._replace(fronts=np.concatenate(parts), begins=limits[:-1][index], ends=limits[1:][index])
            points, origins, cuts, thinned = series_front(series, charges, ends, terms)
            front = _Front(points, [origins, cuts])
            self.thinned |= thinned
        elif component.kind == CORE:
            if number not in self.cores:
                self.cores[number] = make_core(self.components, component, self._most_states, self._loosest)
            points, last, links, thinned = core_front(self.cores[number].states, charges, ends, terms)
            front = _Front(points, [last, links])
            self.thinned |= thinned
        else:
            front = self._united(component, fronts, terms)
        _settle(front.points, component)
        return front

    def _united(self, component: Component, fronts: list[_Front], terms: Terms) -> _Front:
        """Return the front of components side by side, one joined to those before it after the other."""
        parts = [fronts[child].points for child in component.children]
        if not all(map(len, parts)):
            return _Front(np.empty((0, 6), dtype=np.int64), [])
        least = [part.min(axis=0) for part in parts]
        points = parts[0]
        rest = np.sum(least[1:], axis=0)
        outside = terms.total_work - component.work
        beside = component.work - self.components.distinct[component.children[0]].work
        origins = []
        for child, part, lowest in zip(component.children[1:], parts[1:], least[1:], strict=True):
            rest -= lowest
            beside -= self.components.distinct[child].work
            rows, part_rows = self._few(len(points), len(part)), self._few(len(part), len(points))
            points, pairs, thinned = side_by_side(
                points[rows], part[part_rows], rest, beside, outside, component.charge_array, component.ends, terms
            )
            self.thinned |= thinned
            origins.append(np.stack([rows[pairs[:, 0]], part_rows[pairs[:, 1]]], axis=1))
        return _Front(points, origins)

    def _few(self, size: int, others: int) -> Int64Array:
        """Return which of *size* points to combine with *others*: all, or as many as there is time for."""
        if size * others <= _MOST_PAIRS:
            return np.arange(size)
        self.thinned = True
        return np.unique(np.linspace(0, size - 1, max(2, min(size, math.isqrt(_MOST_PAIRS)))).astype(np.int64))


def _settle(points: Int64Array, component: Component) -> None:
    """Pay for the flags that no other component shares, in place."""
    if not component.settled or not len(points):
        return
    flags = points[:, FLAGS]
    for j, charge in enumerate(component.charges):
        if component.settled >> j & 1:
            points[:, HEAD if j % 2 else TAIL] += charge * (flags >> j & 1)
    for flag in (TAIL_USED, HEAD_USED):
        if component.settled & flag:
            points[:, CLOSED] += (flags & flag) > 0
    points[:, FLAGS] = flags & ~component.settled


class _Labels:
    """Stages of the ops, found from the root down by where each point comes from."""

    def __init__(self, cutter: Cutter, fronts: list[_Front]) -> None:
        self._components, self._cores = cutter.components, cutter.cores
        self._fronts = fronts
        self._labels = [-1] * cutter.components.tree.op_count
        self._used = 0

    def of(self, point: int) -> list[int]:
        """Return the labels of the cut that is *point* of the whole graph."""
        tree = self._components.tree
        stack = [(tree.root, point, self._new(), self._new())]
        while stack:
            node, point, tail, head = stack.pop()
            number = self._components.component_of[node]
            component, front = self._components.distinct[number], self._fronts[number]
            if component.kind == SERIES:
                self._cut_series(node, point, front, tail, head, stack)
            elif component.kind == CORE:
                self._cut_core(node, point, front, self._cores[number], tail, head)
            elif component.kind != EDGE:
                for child, pairs in zip(
                    reversed(self._components.children[node][1:]), reversed(front.origins), strict=True
                ):
                    point, row = pairs[point].tolist()
                    stack.append((child, row, tail, head))
                stack.append((self._components.children[node][0], point, tail, head))
        return self._labels

    def _new(self) -> int:
        self._used += 1
        return self._used - 1

    def _cut_series(
        self, node: int, point: int, front: _Front, tail: int, head: int, stack: list[tuple[int, int, int, int]]
    ) -> None:
        origins, cuts = front.origins
        children = self._components.children[node]
        cut, row = origins[point].tolist()
        made = [] if row == UNCUT else [(len(children) - 1, row)]
        while cut != UNCUT:
            before, position, row = cuts[cut].tolist()
            made.append((position, row))
            cut = before
        made.reverse()
        layout = self._components.tree.layout
        place = layout.begins[node]
        end = place + layout.sizes[node]
        if node == self._components.tree.root:
            tail, head = self._new(), self._new()
        stages = [tail, *(self._new() for _ in made[1:]), head] if made else [tail]
        for (position, row), before, after in zip(made, stages, stages[1:], strict=False):
            child = children[position]
            self._paint(place, layout.begins[child], before)
            place = layout.begins[child] + layout.sizes[child]
            stack.append((child, row, before, after))
        self._paint(place, end, stages[-1])

    def _paint(self, begin: int, end: int, label: int) -> None:
        for v in self._components.tree.layout.ops[begin:end]:
            self._labels[v] = label

    def _cut_core(self, node: int, point: int, front: _Front, core: Core, tail: int, head: int) -> None:
        last, links = front.origins
        ops = self._components.ops_of(node)
        chain = []
        link = int(last[point, 0])
        while link >= 0:
            link, state = links[link].tolist()
            chain.append(core.masks[state])
        chain.reverse()
        stages = [tail, *(self._new() for _ in chain[1:]), head]
        held = 0
        for mask, label in zip([*chain, (1 << len(core.groups)) - 1], stages, strict=True):
            for item, group in enumerate(core.groups):
                if mask & ~held & (1 << item):
                    for place in group:
                        self._labels[ops[place]] = label
            held = mask
