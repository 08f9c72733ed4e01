"""A graph without some of its ops, whose optimum is a lower bound, re-derived from what a proof says of it.

Part of the independent verifier (:mod:`mtpp.checker.plan`), written from the rules' statements. The relaxed graph has

* the ops that are not left out, with their parameters, their shares of weights, and their work and what is *charged*
  on them;
* the tensors that they make, read by those of their readers that stay, at a transfer that may be lowered;
* one tensor in place of the input and the output of each op that is *bypassed*, made by the maker of the input, read by
  all that read either, at the smaller transfer and 0 bytes: such an op is left out, reads one tensor, and makes one
  that is read;
* from each op that stays, a tensor without cost to all ops that can be reached from it through left-out ops alone;
* the inputs of the graph that an op that stays reads, and those of its results that remain.

A left-out op u may be charged on one that reads a tensor of it and that stays or is charged itself. Of the tensors of
u that this one reads, let t be the most expensive, the first in file order of several. The amount is the smaller of t's
transfer and of the work of u with all that is charged on u; and where t becomes part of another tensor, it counts with
that much less.

Take any partition of the whole graph and leave the ops out of its stages. The paths between the other ops remain, so
the order of the stages holds. No stage S costs more than before:

* It has paid for the work of its own ops. Of each op that is charged on one of S, it has paid for the work, and so for
  those charged on that in turn; or the op is outside, S cuts its t, and that is no less than the amount. All these ops
  and tensors differ, and none of them remains, unless t becomes part of another tensor.
* A tensor that remains and that it cuts, it has cut before; or it has cut one of those that became part of it: if
  neither the input nor the output of a bypassed op is cut, all their ops are on one side, the bypassed op among them.
  From that one, no more is used for charges than has been taken off.

Nor does a stage hold more bytes at any step of its run in file order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from mtpp.checker.facts import counted
from mtpp.checker.graph import TickGraph
from mtpp.document_shape import Path, array, mapping, record, text, whole

MOST_PATHS = 1_000_000
"""Pairs of ops that left-out ops lead between; a few ops may stand for any number of them."""


class TooManyPaths(Exception):
    """Left-out ops lead between more pairs of ops than :data:`MOST_PATHS`."""


@dataclass(frozen=True)
class Relaxation:
    """What is left out of a graph.

    Attributes
    ----------
    left_out
        Names of ops.
    bypassed
        Those of them whose input and output become one tensor.
    charged
        Names of left-out ops, and of the op that each is charged on.
    lowered
        Transfers in ticks, by names of tensors.
    """

    left_out: list[str]
    bypassed: list[str]
    charged: dict[str, str]
    lowered: dict[str, int]

    def __str__(self) -> str:
        """Say how much is left out."""
        count = len(self.left_out)
        ops = "1 op left out" if count == 1 else f"{count} ops left out"
        if not self.lowered:
            return ops
        return f"{ops} and {len(self.lowered)} transfer{'' if len(self.lowered) == 1 else 's'} lowered"


def relaxation_of(proof: dict[str, Any], path: Path) -> Relaxation | None:
    """Return what the proof at *path* leaves out, None if it speaks of the whole graph."""
    if "relaxed" not in proof:
        return None
    value = proof["relaxed"]
    keys = {"left_out": array(text), "bypassed": array(text), "charged": mapping(text), "lowered": mapping(whole())}
    record(keys)(value, (*path, "relaxed"))
    charged, lowered = dict(value["charged"]), dict(value["lowered"])
    return Relaxation(list(value["left_out"]), list(value["bypassed"]), charged, lowered)


def relaxed_graph(graph: TickGraph, relaxation: Relaxation) -> TickGraph | str:
    """Return the relaxed graph, or which rule is broken; raise TooManyPaths for more than :data:`MOST_PATHS` pairs.

    Notes
    -----
    O(n·pins) at worst, for those paths.
    """
    number = {name: v for v, name in enumerate(graph.op_names)}
    tensor = {name: t for t, name in enumerate(graph.tensor_names)}
    fault = _fault(graph, relaxation, number, tensor)
    if fault is not None:
        return fault
    left_out = {number[name] for name in relaxation.left_out}
    transfer = list(graph.transfer)
    for name, ticks in relaxation.lowered.items():
        transfer[tensor[name]] = ticks
    added = _charge(graph, {number[u]: number[v] for u, v in relaxation.charged.items()}, transfer)
    joined = _Joined(graph, transfer)
    for name in relaxation.bypassed:
        joined.bypass(number[name])
    place = {v: i for i, v in enumerate(v for v in range(graph.op_count) if v not in left_out)}
    names: list[str] = []
    makers, readers, sizes, costs = [], [], [], []
    results: set[int] = set()
    for t in joined.roots():
        if graph.producer[t] not in left_out:
            if t in graph.results:
                results.add(len(names))
            names.append(graph.tensor_names[t])
            makers.append(place[graph.producer[t]])
            readers.append([place[v] for v in sorted(joined.readers[t]) if v in place])
            sizes.append(joined.size[t])
            costs.append(joined.transfer[t])
    for u, reached in _through(graph, left_out):
        names.append(f"paths from {graph.op_names[u]}")
        makers.append(place[u])
        readers.append([place[v] for v in sorted(reached)])
        sizes.append(0)
        costs.append(0)
    held = [graph.param_bytes[v] for v in place]
    inputs = [(name, size, [place[v] for v in ops if v in place]) for name, size, ops in graph.live_inputs]
    return replace(
        graph,
        op_names=[graph.op_names[v] for v in place],
        work=[graph.work[v] + added[v] for v in place],
        param_bytes=held,
        own_bytes=held,
        weights=[],
        inputs=[row for row in inputs if row[2]],
        results=frozenset(results),
        states=[],
        state_ends=[],
        tensor_names=names,
        producer=makers,
        consumers=readers,
        tensor_bytes=sizes,
        transfer=costs,
        order=[place[v] for v in graph.order if v in place],
    )


def _fault(graph: TickGraph, relaxation: Relaxation, number: dict[str, int], tensor: dict[str, int]) -> str | None:
    """Return the first rule that is broken, None if all hold."""
    left_out = set(relaxation.left_out)
    for what, names in (("left out", relaxation.left_out), ("bypassed", relaxation.bypassed)):
        unknown = next((name for name in names if name not in number), None)
        if unknown is not None:
            return f"the graph has no op {unknown!r}, which is said to be {what}"
        if len(set(names)) < len(names):
            return f"an op is said to be {what} twice"
    if len(left_out) == graph.op_count:
        return "all ops are left out"
    inputs = Counter(v for readers in graph.consumers for v in readers)
    outputs = Counter(u for u, readers in zip(graph.producer, graph.consumers, strict=True) if readers)
    for name in relaxation.bypassed:
        if name not in left_out:
            return f"op {name!r} is bypassed but not left out"
        read, made = inputs[number[name]], outputs[number[name]]
        if (read, made) != (1, 1):
            return f"op {name!r} cannot be bypassed: it reads {counted(read, 'tensor')} and makes {made} that are read"
    for name, ticks in relaxation.lowered.items():
        if name not in tensor:
            return f"the graph has no tensor {name!r}, whose transfer is said to be lowered"
        if ticks > graph.transfer[tensor[name]]:
            return f"the transfer of tensor {name!r} was raised from {graph.transfer[tensor[name]]} ticks to {ticks}"
    return _fault_in_charges(graph, relaxation, number)


def _fault_in_charges(graph: TickGraph, relaxation: Relaxation, number: dict[str, int]) -> str | None:
    read = {(graph.producer[t], v) for t, readers in enumerate(graph.consumers) for v in readers}
    left_out = set(relaxation.left_out)
    for name, reader in relaxation.charged.items():
        unknown = next((op for op in (name, reader) if op not in number), None)
        if unknown is not None:
            return f"the graph has no op {unknown!r}, which charges are said to be for"
        if name not in left_out:
            return f"op {name!r} is charged on another but not left out"
        if (number[name], number[reader]) not in read:
            return f"op {name!r} is charged on {reader!r}, which reads nothing from it"
        if reader in left_out and reader not in relaxation.charged:
            return f"op {name!r} is charged on {reader!r}, which is left out and not charged"
    return None


def _charge(graph: TickGraph, reader: dict[int, int], transfer: list[int]) -> list[int]:
    """Return what is charged on each op; what tensors are used for it is taken off their transfers."""
    tensor: dict[int, int] = {}
    for t, (u, readers) in enumerate(zip(graph.producer, graph.consumers, strict=True)):
        if reader.get(u) in readers and (u not in tensor or transfer[t] > transfer[tensor[u]]):
            tensor[u] = t
    added = [0] * graph.op_count
    for u in graph.order:
        if u in reader:
            amount = min(graph.work[u] + added[u], transfer[tensor[u]])
            added[reader[u]] += amount
            transfer[tensor[u]] -= amount
    return added


class _Joined:
    """Tensors, some of which became one; each stands under the number of the first of them on the way.

    Attributes
    ----------
    readers, size, transfer
        Of each tensor.
    """

    def __init__(self, graph: TickGraph, transfer: list[int]) -> None:
        self.readers = [set(readers) for readers in graph.consumers]
        self.size: list[int | None] = list(graph.tensor_bytes)
        self.transfer = transfer
        self._root = list(range(len(transfer)))
        self._input: dict[int, int] = {}
        self._output: dict[int, int] = {}
        for t, u in enumerate(graph.producer):
            if graph.consumers[t]:
                self._output[u] = t
            for v in graph.consumers[t]:
                self._input[v] = t

    def bypass(self, op: int) -> None:
        """Make the input and the output of an op one tensor."""
        first, second = self._find(self._input[op]), self._output[op]
        self._root[second] = first
        self.transfer[first] = min(self.transfer[first], self.transfer[second])
        self.readers[first] |= self.readers[second]
        self.readers[first].discard(op)
        self.readers[second] = set()
        self.size[first] = 0

    def roots(self) -> list[int]:
        """Return the tensors that did not become part of another one."""
        return [t for t, root in enumerate(self._root) if root == t]

    def _find(self, t: int) -> int:
        while self._root[t] != t:
            t = self._root[t]
        return t


def _through(graph: TickGraph, left_out: set[int]) -> list[tuple[int, set[int]]]:
    """Return the ops that stay and lead to others through left-out ops alone, each with those others."""
    after: list[set[int]] = [set() for _ in range(graph.op_count)]
    for _, u, v in graph.edges():
        after[u].add(v)
    found = []
    count = 0
    for u in range(graph.op_count):
        if u in left_out:
            continue
        ahead = [v for v in after[u] if v in left_out]
        seen, reached = set(ahead), set()
        while ahead:
            for v in after[ahead.pop()]:
                if v not in left_out:
                    reached.add(v)
                elif v not in seen:
                    seen.add(v)
                    ahead.append(v)
        if reached:
            found.append((u, reached))
            count += len(reached)
            if count > MOST_PATHS:
                raise TooManyPaths
    return found
