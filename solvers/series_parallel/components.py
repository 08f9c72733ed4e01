"""Components of a decomposition with the costs of cutting them: work, parameters and tensors, equal ones as one.

Costs of ops are tuples by the columns of :mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`, those of tensors
tuples by group of devices.

Every tensor lies at its producer: all ops that read it are within the component behind that op. Where it has one
reader, the edge is what a cut there costs. Where it has several, its edges may be in several components side by side,
and the stages of the terminals pay once: the edges have flags in place of costs, until the component that all of them
are in settles them (see :mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`). Flags also tell whether the stages
of the virtual source and sink hold any op.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np

from mtpp.inference.graph import Int64Array
from mtpp.inference.instance import Instance
from mtpp.solvers.series_parallel.compositions import CORE, EDGE, PARALLEL
from mtpp.solvers.series_parallel.decomposition import Decomposition
from mtpp.solvers.series_parallel.device_groups import DeviceGroups
from mtpp.solvers.series_parallel.kernels.pareto_fronts import HEAD_USED, MOST_SHARED, TAIL_USED

_NO_SLOT = -1  # of a tensor without flags

Costs = tuple[int, ...]


@dataclass(frozen=True)
class Component:
    """What nodes of the tree that cost the same to cut have in common.

    Attributes
    ----------
    kind
        Of the nodes.
    node
        The first of them.
    children
        Components of its children, in the order of :attr:`Components.children`.
    joints
        The ops between its children.
    costs
        Of the ops inside.
    edge
        Of an edge: what the stages at both ends pay where it is cut, flags, and whether it is one of the graph's: those
        of virtual terminals say nothing of the order of stages.
    charges
        Ticks of the flags, those on each group, see :mod:`mtpp.solvers.series_parallel.kernels.pareto_fronts`.
    settled
        Flags that no component beside this one shares: they are paid for here.
    ends
        Costs of the terminals.
    tail_flag, head_flag
        :data:`~mtpp.solvers.series_parallel.kernels.pareto_fronts.TAIL_USED` if the tail is the virtual source and
        components beside this one begin there too, else 0; the same for the head.
    """

    kind: int
    node: int
    children: list[int]
    joints: list[int]
    costs: Costs
    edge: tuple[Costs, int, bool]
    charges: tuple[Costs, ...]
    settled: int
    ends: tuple[Costs, Costs]
    tail_flag: int
    head_flag: int

    @cached_property
    def charge_array(self) -> Int64Array:
        """The charges as kernels take them, by group and flag."""
        return np.array(self.charges, dtype=np.int64).reshape(len(self.charges), len(self.edge[0])).T.copy()

    @cached_property
    def end_costs(self) -> Int64Array:
        """The costs of the terminals as kernels take them, a row each."""
        return np.array(self.ends, dtype=np.int64)


class Components:
    """The components of an instance's decomposition; O(n + pins) expected time to make, apart from sorting.

    Attributes
    ----------
    groups
        The devices of the instance.
    distinct
        One for all nodes that are equal, those inside a component before it; the last one is the whole graph.
    component_of
        Component of each node.
    children
        Children of each node, those side by side in the order of their components, so that equal nodes match.
    shared
        Of each node: tensors of its tail that ops beside it read too, with the number of their edges inside.
    slot
        Number of each tensor among those of its producer that have flags, :data:`_NO_SLOT` if it has none.
    rank
        Place of each op in the graph's own order.
    approximate
        Whether some op makes more tensors with several readers than there are flags for; the others are then paid for
        once per reader, which is too much if several readers share a stage.
    """

    def __init__(self, instance: Instance, tree: Decomposition) -> None:
        self.instance, self.tree, self.groups = instance, tree, DeviceGroups.of(instance)
        self.distinct: list[Component] = []
        self.component_of: list[int] = []
        self.children: list[list[int]] = []
        self.approximate = False
        self.rank: list[int] = np.argsort(instance.order).tolist()
        self._tail, self._head = tree.tail.tolist(), tree.head.tolist()
        costs = self.groups.costs
        self._nothing = (0,) * costs.shape[1]
        self._costs: list[Costs] = [*zip(*costs.T.tolist(), strict=True), self._nothing, self._nothing]
        self._transfer: list[Costs] = list(zip(*self.groups.transfer.tolist(), strict=True))
        self._readers = (np.diff(instance.pin_offsets) - 1).tolist()
        self.tensor_of_edge: list[int] = np.repeat(np.arange(instance.tensor_count), self._readers).tolist()
        self.slot = self._slots()
        leaf_tails, leaf_heads = self._tail[: tree.leaf_count], self._head[: tree.leaf_count]
        self._begins, self._ends = leaf_tails.count(tree.source), leaf_heads.count(tree.sink)
        self.shared: list[dict[int, int]] = []
        self._at_source: list[int] = []
        self._at_sink: list[int] = []
        known: dict[Hashable, int] = {}
        for node, (kind, children) in enumerate(zip(tree.kind.tolist(), tree.child_lists(), strict=True)):
            self._add(node, kind, children, known)

    def _slots(self) -> list[int]:
        """Return :attr:`slot`."""
        slots = [_NO_SLOT] * len(self._transfer)
        next_slots: dict[int, int] = {}
        for t, producer in enumerate(self.instance.producer.tolist()):
            if self._readers[t] > 1 and any(self._transfer[t]):
                slot = next_slots.get(producer, 0)
                if slot < MOST_SHARED:
                    slots[t] = slot
                    next_slots[producer] = slot + 1
                else:
                    self.approximate = True
        return slots

    def _add(self, node: int, kind: int, children: list[int], known: dict[Hashable, int]) -> None:
        tail, head = self._tail[node], self._head[node]
        at_tail = [child for child in children if self._tail[child] == tail]
        at_head = [child for child in children if self._head[child] == head]
        if kind == PARALLEL:
            children = sorted(children, key=self.component_of.__getitem__)
        no_transfer = (0,) * len(self.groups.classes)
        edge, tensors = self._edge(node) if kind == EDGE else ((no_transfer, 0, False), {})
        for child in at_tail:
            for t, count in self.shared[child].items():
                tensors[t] = tensors.get(t, 0) + count
        charges = [no_transfer] * (2 * max((self.slot[t] + 1 for t in tensors), default=0))
        for t in tensors:
            charges[2 * self.slot[t]] = charges[2 * self.slot[t] + 1] = self._transfer[t]
        complete = [t for t, count in tensors.items() if count == self._readers[t]]
        begins = sum(self._at_source[child] for child in at_tail) if children else int(tail == self.tree.source)
        ends = sum(self._at_sink[child] for child in at_head) if children else int(head == self.tree.sink)
        whole_tail, whole_head = begins == self._begins, ends == self._ends
        joints = self.tree.joints[node]
        parts = [self.component_of[child] for child in children]
        component = Component(
            kind=kind,
            node=node,
            children=parts,
            joints=joints,
            costs=self._sum([*(self._costs[v] for v in joints), *(self.distinct[part].costs for part in parts)]),
            edge=edge,
            charges=tuple(charges),
            settled=sum(3 << (2 * self.slot[t]) for t in complete)
            + (TAIL_USED if whole_tail else 0)
            + (HEAD_USED if whole_head else 0),
            ends=(self._costs[tail], self._costs[head]),
            tail_flag=TAIL_USED if tail == self.tree.source and not whole_tail else 0,
            head_flag=HEAD_USED if head == self.tree.sink and not whole_head else 0,
        )
        self.children.append(children)
        self.component_of.append(self._known(component, known))
        self.shared.append({t: count for t, count in tensors.items() if t not in complete})
        self._at_source.append(begins)
        self._at_sink.append(ends)

    def _sum(self, costs: list[Costs]) -> Costs:
        return tuple(map(sum, zip(*costs, strict=True))) if costs else self._nothing

    def _edge(self, leaf: int) -> tuple[tuple[Costs, int, bool], dict[int, int]]:
        """Return what cutting an edge costs, and its tensor if that has flags."""
        nothing = (0,) * len(self.groups.classes)
        if leaf >= self.tree.edge_count:
            return (nothing, 0, False), {}
        t = self.tensor_of_edge[leaf]
        if self.slot[t] == _NO_SLOT:
            return (self._transfer[t], 0, True), {}
        return (nothing, 3 << (2 * self.slot[t]), True), {t: 1}

    def _shape(self, component: Component) -> tuple[int, ...]:
        """Return how the edges of a core lie to each other, nothing for other components."""
        if component.kind != CORE:
            return ()
        place = {v: i for i, v in enumerate(component.joints)}
        place |= {self._tail[component.node]: -1, self._head[component.node]: -2}
        return tuple(place[end[child]] for child in self.children[component.node] for end in (self._tail, self._head))

    def ops_of(self, node: int) -> list[int]:
        """Return the ops inside *node*, in an order in which those of equal nodes match."""
        found: list[int] = []
        stack = [~node]  # complements: nodes that are still to be opened
        while stack:
            item = stack.pop()
            if item >= 0:
                found.append(item)
                continue
            children = self.children[~item]
            joints = self.tree.joints[~item]
            between = joints if len(joints) == len(children) - 1 else []
            if not between:
                stack.extend(joints)
            for child, joint in zip_longest(reversed(children), reversed(between)):
                stack.append(~child)
                if joint is not None:
                    stack.append(joint)
        return found

    def _known(self, component: Component, known: dict[Hashable, int]) -> int:
        """Return the number of the component, that of an equal one if there is any."""
        key: Hashable
        if component.kind == EDGE:
            key = component.edge, component.charges
        elif component.kind == CORE and self.approximate:
            key = component.node  # the tensors without flags may differ
        else:
            costs = tuple(self._costs[v] for v in component.joints)
            flags = component.settled, component.tail_flag, component.head_flag
            key = (
                component.kind,
                tuple(component.children),
                costs,
                component.charges,
                flags,
                component.ends,
                self._shape(component),
            )
        number = known.setdefault(key, len(self.distinct))
        if number == len(self.distinct):
            self.distinct.append(component)
        return number
