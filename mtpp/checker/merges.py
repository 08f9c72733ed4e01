"""Merges of ops that leave the optimum as it is, re-checked one after the other.

Part of the independent verifier (:mod:`mtpp.checker.plan`), written from the rules' statements. Let f(S) be the work of
a set of ops and the transfers c(S) of the tensors that it cuts. Under any of these conditions, moving some ops to the
stage of another one, v, makes no stage of any partition more expensive, so that merging them with v is no loss:

``pull-down``, ``pull-up``
    one op u moves, v is the only op that reads from it (that it reads from), and f({u, v}) ≤ f({v});
``first-reader``, ``last-producer``
    the same, and all else that reads from u can be reached from v (all else that u reads from reaches v);
``region-up``
    several ops move. Let X be they and v. Each is reached from v inside X; whatever else outside X they read from
    reaches v; f(X) ≤ f(A) for every A ⊆ X with v that has, with an op, the ops of X that it reads from; and
    c(Q) ≤ w(B) + c(B ∪ Q) for every B ⊆ X ∖ v, Q being all ops outside X but those that X ∖ v reads from;
``region-down``
    the same with all edges reversed.

With a fast memory that not everything fits into, what moves is charged the time to stream its parameters, rounded up;
with a limit on a stage's memory it must have none; and where activations depend on the order of the ops nothing holds.
Where stages hold *whole* what several ops read, all that it reads counts as its parameters, and so do its states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mtpp.checker.graph import TICKS_PER_S, Read, TickGraph, ceil_div
from mtpp.checker.merged import MergedGraph, Merging
from mtpp.document_shape import Path, any_array, array, refuse, text, whole

PAIR_RULES = ("pull-down", "pull-up", "first-reader", "last-producer")
REGION_RULES = ("region-down", "region-up")

LARGEST_REGION = 256
"""Ops of a region that is looked at: checking one takes more than linear time."""

Capacities = dict[Hashable, dict[Hashable, int]]
_SOURCE, _SINK = "source", "sink"


def check_merges(value: Any, path: Path) -> None:
    """Take a list of merges, each of which is a list of a rule, the ops that move, and the op they move to."""
    array(any_array)(value, path)
    for i, merge in enumerate(value):
        if len(merge) < 3:
            refuse("a merge needs a rule, an op that moves and an op it moves to", (*path, i))
        text(merge[0], (*path, i, 0))
        for j, op in enumerate(merge[1:], start=1):
            whole()(op, (*path, i, j))


def replay_merges(
    graph: TickGraph,
    classes: list[int],
    system: dict[str, Any],
    merges: list[list[Any]],
    *,
    whole: bool = False,
    known: bool = False,
) -> MergedGraph | str:
    """Merge what must share a stage, then along a list of merges, checking each on the graph as merged so far.

    Parameters
    ----------
    classes
        Ops with the same number must share a stage (:func:`mtpp.checker.claim.together_classes`).
    merges
        As :func:`check_merges` takes them; an op stands for its group.
    whole
        Whether stages hold whole what several ops read, and else their ops' shares of it.
    known
        Whether the merges are known to hold, of other figures of the same ops: their conditions are left aside.

    Returns
    -------
    The graph as merged in the end, or what is wrong with the first merge that does not hold.

    Notes
    -----
    O(pins·log pins) and, for each merge that asks for paths, a search that ends where the path is found.
    """
    merging = Merging(graph)
    merging.merge_classes(classes)
    memory = _Memory.of(graph, system, whole=whole)
    for i, (rule, *ops) in enumerate(merges):
        outside = next((op for op in ops if op >= graph.op_count), None)
        if outside is not None:
            return f"merge {i} ({rule[:20]!r}): there is no op {outside}"
        groups = [merging.find(op) for op in ops]
        fault = "its ops are one already" if len(set(groups)) < len(groups) else None
        if fault is None and not known:
            fault = _fault(merging, memory, rule, groups)
        if fault is not None:
            return f"merge {i} ({rule[:20]!r} of op {graph.op_names[ops[0]]!r} to {graph.op_names[ops[-1]]!r}): {fault}"
        leader = groups[-1]
        for group in groups[:-1]:
            leader = merging.merge(leader, group)
    return merging.result(graph.op_count)


@dataclass(frozen=True)
class _Memory:
    """What it costs to move parameters.

    Attributes
    ----------
    streamed
        Bytes that a stage streams per second where they do not fit; None if they always do.
    limited
        Whether there is a limit that not everything fits into.
    counted
        Whether activations depend on what else a stage runs.
    weights, states
        What counts whole of all that several ops read, and of states.
    """

    streamed: int | None
    limited: bool
    counted: bool
    weights: list[Read]
    states: list[Read]

    @classmethod
    def of(cls, graph: TickGraph, system: dict[str, Any], *, whole: bool) -> _Memory:
        in_order = system["peak"] == "order"
        activations = graph.live_bytes if in_order else system["activation_reserve_bytes"]
        most = sum(graph.param_bytes) + activations
        if whole:
            most += system.get("sequences", 1) * sum(size for _, size, _ in graph.states)
        fast, limit = system["fast_memory_bytes"], system.get("stage_memory_bytes")
        streams = fast is not None and fast < most
        limited = limit is not None and limit < most
        return cls(
            system["bandwidth_bytes_per_s"] if streams else None,
            limited,
            in_order and (streams or limited),
            graph.weights if whole else [],
            graph.states if whole else [],
        )

    def charge(self, merging: Merging, group: int) -> int:
        """Return what a stage pays at most for a group that joins it, without transfers."""
        stream = ceil_div(self.brought(merging, group) * TICKS_PER_S, self.streamed) if self.streamed else 0
        return merging.work[group] + stream

    def brought(self, merging: Merging, group: int) -> int:
        """Return the parameters that a group brings to a stage at most, in bytes."""
        held = merging.param_bytes[group]
        for _, size, readers in self.weights:  # which the parameters of their last reader have in them
            if merging.find(readers[-1]) != group and any(merging.find(v) == group for v in readers):
                held += size
        return held

    def holds(self, merging: Merging, group: int) -> bool:
        """Tell whether a group has parameters, or states that count."""
        return self.brought(merging, group) > 0 or any(
            size and any(merging.find(v) == group for v in readers) for _, size, readers in self.states
        )


def _fault(merging: Merging, memory: _Memory, rule: str, groups: list[int]) -> str | None:
    """Return why a merge does not hold, None if it does."""
    if rule not in PAIR_RULES + REGION_RULES:
        return "no such rule"
    if memory.counted:
        return "nothing may move where activations depend on the order of the ops"
    if memory.limited and any(memory.holds(merging, group) for group in groups[:-1]):
        return "what has parameters may not move where a stage's memory is limited"
    if rule in REGION_RULES:
        return _region_fault(merging, memory, groups[:-1], groups[-1], up=rule == "region-up")
    if len(groups) > 2:
        return "this rule moves one op"
    return _pair_fault(merging, memory, rule, groups[0], groups[1])


def _pair_fault(merging: Merging, memory: _Memory, rule: str, mover: int, leader: int) -> str | None:
    down = rule in ("pull-down", "first-reader")
    neighbours = merging.after(mover) if down else merging.before(mover)
    if leader not in neighbours:
        return "no edge that way joins them"
    others = neighbours - {leader}
    if others and rule in ("pull-down", "pull-up"):
        return f"the op that moves has another {'reader' if down else 'producer'}"
    for other in others:
        first, last = (leader, other) if down else (other, leader)
        if not merging.leads(first, last):
            return "another neighbour of the op that moves does not lie beyond"
    alone, joined = merging.cut[leader], merging.cut[leader] + merging.cut[mover] - merging.shared(leader, mover)
    charge = memory.charge(merging, mover)
    if charge + joined > alone:
        return f"together they cost {charge + joined} ticks beside the other's work, that one alone {alone}"
    return None


def _region_fault(merging: Merging, memory: _Memory, movers: list[int], leader: int, *, up: bool) -> str | None:
    if len(movers) >= LARGEST_REGION:
        return f"a region of more than {LARGEST_REGION} ops is not checked"
    region = {*movers, leader}
    behind = {op: merging.before(op) if up else merging.after(op) for op in movers}
    needs = [(op, other) for op in movers for other in behind[op] if other in region]
    if _reached(leader, needs) != region:
        return "not every op of the region lies on the far side of the one they move to"
    beside = set().union(*behind.values()) - region
    for op in beside:
        first, last = (op, leader) if up else (leader, op)
        if not merging.leads(first, last):
            return "the region has a neighbour that does not lie beyond the op they move to"

    inside: dict[int, list[int]] = {}
    for op in region:
        for t in merging.made[op] | merging.read[op]:
            inside.setdefault(t, []).append(op)
    joining: list[Hyperedge] = []
    leaving: list[Hyperedge] = []
    for t, ends in inside.items():
        free = [op for op in ends if op != leader]
        led = len(free) < len(ends)
        outside = 1 + len(merging.readers[t]) - len(ends)
        beyond = sum(1 for op in beside if op == merging.producer[t] or op in merging.readers[t])
        joining.append(Hyperedge(merging.transfer[t], free, led, outside > 0))
        leaving.append(Hyperedge(merging.transfer[t], free, outside > beyond, led or beyond > 0))

    charge = {op: memory.charge(merging, op) for op in movers}
    whole = sum(charge.values()) + sum(edge.cost for edge in joining if edge.never and not edge.always)
    if least_cost(charge, joining, [(op, other) for op, other in needs if other != leader]) < whole:
        return "a part of the region costs a stage less than all of it"
    missed = sum(edge.cost for edge in leaving if edge.always and not edge.never)
    if least_cost({op: merging.work[op] for op in movers}, leaving, []) < missed:
        return "a stage without an op of the region might miss it"
    return None


def _reached(leader: int, needs: list[tuple[int, int]]) -> set[int]:
    """Return the leader and all ops that need one another, back to the leader."""
    ahead: dict[int, list[int]] = {}
    for op, other in needs:
        ahead.setdefault(other, []).append(op)
    reached = {leader}
    queue = [leader]
    for here in queue:
        for op in ahead.get(here, ()):
            if op not in reached:
                reached.add(op)
                queue.append(op)
    return reached


class Hyperedge(NamedTuple):
    """What costs *cost* if it has ends both among the chosen and elsewhere.

    Attributes
    ----------
    ends
        Those of its ends that may be chosen or not.
    always, never
        Whether it has an end that is chosen in any case, and one that is not in any case.
    """

    cost: int
    ends: Sequence[int]
    always: bool
    never: bool


def least_cost(weight: Mapping[int, int], edges: Iterable[Hyperedge], needs: Iterable[tuple[int, int]]) -> int:
    """Return the least cost of any choice of ops: the weight of those chosen, and the hyperedges that the choice cuts.

    Parameters
    ----------
    weight
        Of each op that may be chosen, at least 0.
    needs
        Pairs of ops: the first may be chosen only with the second.

    Notes
    -----
    A minimum cut (Picard 1976, Lawler 1973): chosen ops are on the source's side. Hyperedges that are cut by every
    choice are left out.
    """
    edges = list(edges)
    unlimited = sum(weight.values()) + sum(edge.cost for edge in edges) + 1
    capacity: Capacities = {_SOURCE: {}, _SINK: {}}

    def connect(tail: Hashable, head: Hashable, amount: int) -> None:
        capacity.setdefault(tail, {})[head] = capacity.setdefault(tail, {}).get(head, 0) + amount
        capacity.setdefault(head, {}).setdefault(tail, 0)

    for op, cost in weight.items():
        connect(op, _SINK, cost)
    for op, other in needs:
        connect(op, other, unlimited)
    for number, edge in enumerate(edges):
        if edge.always and edge.never:
            continue
        some_chosen: Hashable = _SOURCE if edge.always else ("some", number)
        some_left: Hashable = _SINK if edge.never else ("not all", number)
        connect(some_chosen, some_left, edge.cost)
        for op in edge.ends:
            if not edge.always:
                connect(op, some_chosen, unlimited)
            if not edge.never:
                connect(some_left, op, unlimited)
    return _maximum_flow(capacity)


def _maximum_flow(capacity: Capacities) -> int:
    """Return the maximum flow by shortest augmenting paths (Edmonds and Karp 1972); *capacity* is used up."""
    total = 0
    while True:
        came_from: dict[Hashable, Hashable] = {_SOURCE: _SOURCE}
        queue: deque[Hashable] = deque([_SOURCE])
        while queue and _SINK not in came_from:
            tail = queue.popleft()
            for head, left in capacity[tail].items():
                if left > 0 and head not in came_from:
                    came_from[head] = tail
                    queue.append(head)
        if _SINK not in came_from:
            return total
        steps: list[tuple[Hashable, Hashable]] = []
        node: Hashable = _SINK
        while node != _SOURCE:
            steps.append((came_from[node], node))
            node = came_from[node]
        amount = min(capacity[a][b] for a, b in steps)
        for tail, head in steps:
            capacity[tail][head] -= amount
            capacity[head][tail] += amount
        total += amount
