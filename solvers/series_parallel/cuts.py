"""Cutting a decomposed graph into stages below a cutoff, each a series-parallel component, on the devices there are.

What a stage may be, by the tree: a run of a series, its first and last children whole or in part; of components side by
side, the part that the stage of their tail holds is a beginning of each, the part of their head's stage an end of each,
and all other stages lie in one of them. Inside a core any set of ops is allowed that holds all ops between its ops.

From the leaves up, each component gets a front: the ways to cut it that may be part of the best cut of the whole
(:mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`). Costs are exact: if there is a cut below a cutoff, one is
found, except where :meth:`Cutter.coverage` says what was left out. Where devices differ, ways to cut a component differ
by the groups of devices of the stages at its ends, and by how many devices of each group lie inside.

GraphPipe (section 5) takes the same steps up a decomposition, for two parts at a time: there, the open stages at the
terminals have a schedule and a micro-batch size; here, what they have paid so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.partition import Partition
from mtpp.solvers.series_parallel.components import Component, Components
from mtpp.solvers.series_parallel.compositions import CORE, EDGE, SERIES
from mtpp.solvers.series_parallel.core_items import Core, make_core
from mtpp.solvers.series_parallel.kernels.core_front import core_front
from mtpp.solvers.series_parallel.kernels.pareto_fronts import (
    CLOSED,
    FLAGS,
    HEAD,
    HEAD_SHIFT,
    HEAD_USED,
    LEAST,
    MOST_GROUPS,
    MOST_SHARED,
    TAIL,
    TAIL_SHIFT,
    TAIL_USED,
    UNIT,
    Terms,
    side_by_side,
)
from mtpp.solvers.series_parallel.kernels.series_front import UNCUT, Series, series_front

_MOST_PAIRS = 1 << 24
"""Pairs of points that two components side by side may have before points are left out."""

_MOST_STAGES = 20_000_000
"""Stages between downsets of all cores together, on devices of each group, 24 bytes each."""

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
        groups = len(components.groups.classes)
        self._most_states = math.isqrt(2 * _MOST_STAGES // max(1, cores * groups))
        self._edges: dict[int, _Front] = {}
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

    def cut(self, terms: Terms, stop: Callable[[], object]) -> Partition | None:
        """Return a partition with every stage below the cutoff.

        Parameters
        ----------
        stop
            Asked between components; when it says anything, the search ends.

        Returns
        -------
        It, on devices in an order of its own where they may stand in any; None if there is no such cut, if none was
        found among thinned fronts, or if stopped.
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
        return _Labels(self, fronts).of(int(best))

    def _prepared(self, component: Component) -> tuple[Series, list[int], Int64Array]:
        """Return a series without the fronts of its components, the components that differ, and which each one is."""
        distinct, index = np.unique(component.children, return_inverse=True)
        own = self.components.groups.costs
        joint_costs = np.zeros((len(component.children), own.shape[1]), dtype=np.int64)
        joint_costs[:-1] = own[component.joints]
        empty = np.empty(0, dtype=np.int64)
        series = Series(
            np.empty((0, 6), dtype=np.int64),
            empty,
            empty,
            np.array([self.components.distinct[child].costs for child in component.children], dtype=np.int64),
            joint_costs,
            whole_graph=component.node == self.components.tree.root,
            tail_flag=component.tail_flag,
            head_flag=component.head_flag,
        )
        return series, distinct.tolist(), index

    def _front(self, number: int, component: Component, fronts: list[_Front], terms: Terms) -> _Front:
        if component.kind == EDGE:
            if number not in self._edges:
                self._edges[number] = _settled(self._edge(component), component, terms)
            return self._edges[number]
        charges, ends = component.charge_array, component.end_costs
        if component.kind == SERIES:
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
        return _settled(front, component, terms)

    def _edge(self, component: Component) -> _Front:
        """Return the ways to cut an edge: one for each two groups of devices."""
        paid, flags, real = component.edge
        groups = range(len(paid))
        ordered = real and self._loosest.devices.ordered
        pairs = [(a, b) for a in groups for b in groups if a <= b or not ordered]
        rows = [[0, paid[a], paid[b], flags | a << TAIL_SHIFT | b << HEAD_SHIFT, 0, 0] for a, b in pairs]
        return _Front(np.array(rows, dtype=np.int64), [])

    def _united(self, component: Component, fronts: list[_Front], terms: Terms) -> _Front:
        """Return the front of components side by side, one joined to those before it after the other."""
        parts = [fronts[child].points for child in component.children]
        if not all(map(len, parts)):
            return _Front(np.empty((0, 6), dtype=np.int64), [])
        rests = self._rests(parts)
        points = parts[0]
        outside = terms.total_work - component.costs[LEAST]
        beside = component.costs[LEAST] - self.components.distinct[component.children[0]].costs[LEAST]
        charges, ends = component.charge_array, component.end_costs
        origins = []
        for child, part, rest in zip(component.children[1:], parts[1:], rests, strict=True):
            beside -= self.components.distinct[child].costs[LEAST]
            rows, part_rows = self._few(len(points), len(part)), self._few(len(part), len(points))
            points, pairs, thinned = side_by_side(
                points[rows], part[part_rows], rest, beside, outside, charges, ends, terms
            )
            self.thinned |= thinned
            origins.append(np.stack([rows[pairs[:, 0]], part_rows[pairs[:, 1]]], axis=1))
        return _Front(points, origins)

    def _rests(self, parts: list[Int64Array]) -> list[Int64Array]:
        """Return what the components behind each but the first come to at least."""
        least = np.array([part.min(axis=0) for part in parts[1:]])
        rests: Int64Array = least[::-1].cumsum(axis=0)[::-1] - least
        if not self._loosest.devices.equal:
            groups = self.components.groups
            counts = np.array([groups.least_counts(part[:, CLOSED]) for part in parts[1:]])
            rests[:, CLOSED] = [groups.packed(count) for count in counts[::-1].cumsum(axis=0)[::-1] - counts]
        return list(rests)

    def _few(self, size: int, others: int) -> Int64Array:
        """Return which of *size* points to combine with *others*: all, or as many as there is time for."""
        if size * others <= _MOST_PAIRS:
            return np.arange(size)
        self.thinned = True
        return np.unique(np.linspace(0, size - 1, max(2, min(size, math.isqrt(_MOST_PAIRS)))).astype(np.int64))


def _settled(front: _Front, component: Component, terms: Terms) -> _Front:
    """Pay for the flags that no other component shares, and leave out points for which there are no devices."""
    points, origins = front
    if not component.settled or not len(points):
        return front
    flags = points[:, FLAGS]
    groups = [flags >> shift & (MOST_GROUPS - 1) for shift in (TAIL_SHIFT, HEAD_SHIFT)]
    for j, charge in enumerate(component.charges):
        if component.settled >> j & 1:
            points[:, HEAD if j % 2 else TAIL] += np.array(charge)[groups[j % 2]] * (flags >> j & 1)
    devices = terms.devices
    if component.settled & (TAIL_USED | HEAD_USED):
        for flag, group in zip((TAIL_USED, HEAD_USED), groups, strict=True):
            if component.settled & flag:
                points[:, CLOSED] += devices.groups[group, UNIT] * ((flags & flag) > 0)
        points[:, FLAGS] = flags & ~component.settled
        kept = (devices.allowed - points[:, CLOSED]) & devices.guards == devices.guards
        if component.kind == SERIES or component.kind == CORE:
            origins = [origins[0][kept], origins[1]]
        elif origins:
            origins = [*origins[:-1], origins[-1][kept]]
        return _Front(points[kept], origins)
    points[:, FLAGS] = flags & ~component.settled
    return front


class _Labels:
    """Stages of the ops, found from the root down by where each point comes from."""

    def __init__(self, cutter: Cutter, fronts: list[_Front]) -> None:
        self._components, self._cores = cutter.components, cutter.cores
        self._fronts = fronts
        self._labels = [-1] * cutter.components.tree.op_count
        self._groups: list[int] = []

    def of(self, point: int) -> Partition:
        """Return the cut that is *point* of the whole graph."""
        tree = self._components.tree
        tail, head = self._ends(int(self._fronts[-1].points[point, FLAGS]))
        stack = [(tree.root, point, self._new(tail), self._new(head))]
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
        return self._components.groups.placed(self._labels, self._groups)

    def _ends(self, flags: int) -> tuple[int, int]:
        """Return the groups of devices of the two stages of a point."""
        return flags >> TAIL_SHIFT & (MOST_GROUPS - 1), flags >> HEAD_SHIFT & (MOST_GROUPS - 1)

    def _new(self, group: int) -> int:
        """Return the label of a stage on a device of a group."""
        self._groups.append(group)
        return len(self._groups) - 1

    def _cut_series(
        self, node: int, point: int, front: _Front, tail: int, head: int, stack: list[tuple[int, int, int, int]]
    ) -> None:
        components = self._components
        origins, cuts = front.origins
        children = components.children[node]
        cut, row = origins[point].tolist()
        made = [] if row == UNCUT else [(len(children) - 1, row)]
        while cut != UNCUT:
            before, position, row = cuts[cut].tolist()
            made.append((position, row))
            cut = before
        made.reverse()
        ends = [
            self._ends(int(self._fronts[components.component_of[children[position]]].points[row, FLAGS]))
            for position, row in made
        ]
        layout = components.tree.layout
        place = layout.begins[node]
        end = place + layout.sizes[node]
        if node == components.tree.root:  # points do not tell on which devices the first and the last stage are
            only = 0 if made else components.groups.group_of(int(front.points[point, CLOSED]))
            tail, head = self._new(ends[0][0] if made else only), self._new(ends[-1][1] if made else only)
        stages = [tail, *(self._new(a) for a, _ in ends[1:]), head] if made else [tail]
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
            link, state, group = links[link].tolist()
            chain.append((core.masks[state], group))
        chain.reverse()
        masks = [*(mask for mask, _ in chain), (1 << len(core.groups)) - 1]
        stages = [tail, *(self._new(group) for _, group in chain[1:]), head]
        held = 0
        for mask, label in zip(masks, stages, strict=True):
            for item, group in enumerate(core.groups):
                if mask & ~held & (1 << item):
                    for place in group:
                        self._labels[ops[place]] = label
            held = mask
