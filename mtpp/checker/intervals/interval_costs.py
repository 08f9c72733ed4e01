"""Cost of every interval of a graph's order on a device, added up op by op in plain Python integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mtpp.checker.graph import TICKS_PER_S, TickGraph
from mtpp.checker.machine import STAGE_TIMES, overflow_ticks

Costs: TypeAlias = list[list[int | None]]
"""Ticks by begin and end of an interval; None where the device cannot have it as a stage."""


def cuts_allowed(graph: TickGraph, groups: Sequence[Sequence[str]]) -> list[bool]:
    """Return for each position from 0 to n whether a stage may begin or end there: no group is cut."""
    place = {graph.op_names[v]: i for i, v in enumerate(graph.order)}
    allowed = [True] * (graph.op_count + 1)
    for group in groups:
        places = [place[name] for name in group if name in place]
        for position in range(min(places, default=0) + 1, max(places, default=0) + 1):
            allowed[position] = False
    return allowed


def interval_costs(graph: TickGraph, device: Mapping[str, Any], sequences: int, allowed: Sequence[bool]) -> Costs:
    """Return f(S) of all intervals S that the device holds and that begin and end where they may.

    Notes
    -----
    O(n · pins), and where working memory counts the positions that tensors from outside are live at.
    """
    walk = _Walk(graph, device, sequences)
    costs: Costs = []
    for begin in range(graph.op_count):
        row: list[int | None] = [None] * (graph.op_count + 1)
        if allowed[begin]:
            for end, cost in enumerate(walk.stages_from(begin), begin + 1):
                row[end] = cost if allowed[end] else None
        costs.append(row)
    return costs


class _Walk:
    """Stages that begin at a position, op after op."""

    def __init__(self, graph: TickGraph, device: Mapping[str, Any], sequences: int) -> None:
        n = graph.op_count
        place = [0] * n
        for i, v in enumerate(graph.order):
            place[v] = i
        self._graph, self._device, self._n = graph, device, n
        self._work = [graph.work[v] for v in graph.order]
        self._own = [graph.own_bytes[v] for v in graph.order]
        self._weights = _by_place(place, [(size, readers) for _, size, readers in graph.weights], n)
        self._states = _by_place(place, [(size * sequences, readers) for _, size, readers in graph.states], n)
        self._touched: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]  # tensor, ticks, number of its ops
        self._made = [0] * n  # bytes
        self._ending: list[list[tuple[int, int]]] = [[] for _ in range(n)]  # bytes last used here, and their maker
        self._read: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]  # tensor, bytes, position of its maker
        for t, readers in enumerate(graph.consumers):
            maker, size = place[graph.producer[t]], graph.tensor_bytes[t] or 0
            last = max((place[v] for v in readers), default=maker)
            self._made[maker] += size
            if t not in graph.results:
                self._ending[last].append((size, maker))
            for p in (maker, *(place[v] for v in readers)):
                self._touched[p].append((t, graph.transfer[t], 1 + len(readers)))
            for v in readers:
                self._read[place[v]].append((t, size, maker))
        for i, (_, size, readers) in enumerate(graph.live_inputs):
            for v in readers:
                self._read[place[v]].append((len(graph.consumers) + i, size, -1))

    def stages_from(self, begin: int) -> list[int | None]:
        """Return the costs of the stages from *begin* to every later end; None where the device does not hold one."""
        device = self._device
        reserve = device["activation_reserve_bytes"] if device["peak"] == "reserve" else None
        fast, limit, times = device["fast_memory_bytes"], device["stage_memory_bytes"], device.get(STAGE_TIMES)
        work = params = states = moved = peak = made = 0
        seen: dict[int, int] = {}  # ops so far of each tensor
        weights, kept = set[int](), set[int]()
        live: list[int] = []  # bytes at each step
        used: dict[int, int] = {}  # last use so far of each tensor from outside
        costs: list[int | None] = []
        for p in range(begin, self._n):
            work += self._work[p]
            params += self._own[p]
            for w, size in self._weights[p]:
                params += 0 if w in weights else size
                weights.add(w)
            for s, size in self._states[p]:
                states += 0 if s in kept else size
                kept.add(s)
            for t, ticks, ops in self._touched[p]:
                seen[t] = seen.get(t, 0) + 1
                if ops > 1:  # cut as soon as one of its ops is inside, and until the last one is
                    moved += (ticks if seen[t] == 1 else 0) - (ticks if seen[t] == ops else 0)
            if reserve is None:
                made += self._made[p]
                live.append(made)
                for t, size, maker in self._read[p]:
                    if maker < begin:
                        for q in range(used.get(t, p - 1) + 1, p + 1):
                            live[q - begin] += size
                            peak = max(peak, live[q - begin])
                        used[t] = p
                peak = max(peak, live[-1])
                made -= sum(size for size, maker in self._ending[p] if maker >= begin)
            held = params + (peak if reserve is None else reserve)
            if limit is not None and held + states > limit:
                costs.append(None)
                continue
            if times is not None:
                ops_inside = p - begin + 1
                costs.append(times[ops_inside - 1] if ops_inside <= len(times) else None)
                continue
            excess = 0 if fast is None else max(0, held - fast)
            costs.append(work + moved + (overflow_ticks(excess, device, TICKS_PER_S) if excess else 0))
        return costs


def _by_place(
    place: Sequence[int], rows: Sequence[tuple[int, Sequence[int]]], op_count: int
) -> list[list[tuple[int, int]]]:
    """Return number and bytes of all that the op at each position reads."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(op_count)]
    for i, (size, readers) in enumerate(rows):
        for v in readers:
            found[place[v]].append((i, size))
    return found
