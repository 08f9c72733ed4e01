"""The graph in ticks, re-derived from an mtpp-graph document in plain Python integers.

Part of the independent verifier (:mod:`mtpp.checker.plan`): it repeats on purpose what the solvers' side does with
arrays, so that a mistake has to be made twice to go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from mtpp.checker.document import ABSTRACT, PICOSECONDS_PER_UNIT, check_model_graph
from mtpp.document_shape import Path, refuse

TICKS_PER_S = 10**12
_ABSTRACT_LIMIT = 2**53
_FINEST = 10**18
_FEWEST_TICKS = 10**6
_TICKS_LIMIT = 2**62
_ONE = Fraction(1)


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up; *denominator* is positive."""
    return -(-numerator // denominator)


def _ticks(numerator: int, denominator: int, ticks_per_unit: int, path: Path) -> int:
    ticks = ceil_div(numerator * ticks_per_unit, denominator)
    if ticks >= _TICKS_LIMIT:
        refuse("the cost is too large", path, "in ticks it must stay below 2^62")
    return ticks


Read: TypeAlias = tuple[str, int, list[int]]
"""Name, bytes and readers of a weight or an input."""


@dataclass(frozen=True)
class TickGraph:
    """Ops and tensors by number, with costs in ticks.

    Attributes
    ----------
    param_bytes
        Of each op: its own, and its share of the weights that it reads with others. A stage holds at least the sum.
    own_bytes
        The first alone.
    weights
        Name, bytes and readers of each weight of several ops: a stage that has a reader holds it once.
    inputs
        The same of each input of the graph: live in a stage from its first reader there to its last.
    results
        Tensors that are results of the graph: live to the end of the stage that makes them.
    states
        Name, bytes for one sequence and readers of each state: a stage that has a reader keeps it for each sequence.
    state_ends
        Names of the input and the output of each state.
    order
        The graph's own order: file order if that is topological, else of all ops whose inputs are done the
        first in the file comes next.
    tensor_bytes
        None where the document does not say.
    """

    time_unit: str
    ticks_per_unit: int
    op_names: list[str]
    work: list[int]
    param_bytes: list[int]
    own_bytes: list[int]
    weights: list[Read]
    inputs: list[Read]
    results: frozenset[int]
    states: list[Read]
    state_ends: list[tuple[str, str]]
    tensor_names: list[str]
    producer: list[int]
    consumers: list[list[int]]
    tensor_bytes: list[int | None]
    transfer: list[int]
    order: list[int]

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return len(self.op_names)

    @property
    def live_inputs(self) -> list[Read]:
        """Inputs that bring no state."""
        kept = {name for name, _ in self.state_ends}
        return [row for row in self.inputs if row[0] not in kept]

    @property
    def live_bytes(self) -> int:
        """Bytes of all tensors and live inputs: no stage has more of them live at once."""
        return sum(size or 0 for size in self.tensor_bytes) + sum(size for _, size, _ in self.live_inputs)

    def holding_states(self, systems: Sequence[Mapping[str, Any]]) -> TickGraph:
        """Return the graph with shares of states among the parameters of ops, where they count as these do.

        Parameters
        ----------
        systems
            Of each class of devices.

        Notes
        -----
        They do where a device limits a stage's memory and none has a fast memory. With both, a bound leaves states
        out: stages hold them, and never stream them. Without a limit they cost nothing.
        """
        limited = any(system.get("stage_memory_bytes") is not None for system in systems)
        if not limited or any(system["fast_memory_bytes"] is not None for system in systems) or not self.states:
            return self
        count = systems[0].get("sequences", 1)
        kept = [(name, size * count, readers) for name, size, readers in self.states]
        return replace(self, param_bytes=_with_shares(self.param_bytes, kept))

    def read_bytes(self) -> list[int]:
        """Return the bytes of all that is stored and each op reads, whoever else does: what training keeps of it."""
        total = list(self.own_bytes)
        given = {name for name, _, _ in self.inputs}
        stored = [row for row, (name, _) in zip(self.states, self.state_ends, strict=True) if name not in given]
        for _, size, readers in [*self.weights, *stored]:
            for v in readers:
                total[v] += size
        return total

    def edges(self) -> Iterable[tuple[int, int, int]]:
        """Yield tensor, producer and consumer of every pin."""
        for t, readers in enumerate(self.consumers):
            for v in readers:
                yield t, self.producer[t], v


def model_in_ticks(
    document: Any, bandwidth_bytes_per_s: int | Fraction, k: int, path: Path = (), *,
    times: Sequence[Any] | None = None, whole: bool = True, speed: Fraction = _ONE, link_speed: Fraction = _ONE,
    latency: int = 0,
) -> TickGraph:  # fmt: skip
    """Convert a graph whose costs are in its time unit.

    Parameters
    ----------
    path
        Of the document in another one.
    times
        Of ops, in place of their work.
    whole
        Whether whole costs come to whole ticks on all devices: else an abstract graph has many ticks in a unit.
    speed, link_speed, latency
        Of the device: what work and given transfers are divided by, and the ticks of each message besides.

    Raises
    ------
    InputError
        If the document is no valid graph; *where* is a JSON pointer into it.

    Notes
    -----
    Timed: one tick is a picosecond. Abstract: one tick is a unit if all costs are whole, else as many ticks per
    unit as the largest power of ten p with k·(Σ work + Σ transfer)·p < 2^53, at least one and at most 10^18; there
    costs have to be whole ticks, or a million of them on average.
    """
    check_model_graph(document, path)
    unit = document["time_unit"]
    # int, Decimal and Fraction all give their exact ratio; adding up Fractions is only worth its time where needed.
    works: list[tuple[int, int]] = [op["work"].as_integer_ratio() for op in document["ops"]]
    transfers: list[tuple[int, int] | None] = []
    for t, tensor in enumerate(document["tensors"]):
        if "transfer" not in tensor and "bytes" not in tensor:
            refuse("the tensor has no cost", (*path, "tensors", t), "give bytes or transfer")
        if "transfer" not in tensor and unit == ABSTRACT:
            refuse("bytes without transfer in a graph without a time unit", (*path, "tensors", t), "give transfer")
        transfers.append(tensor["transfer"].as_integer_ratio() if "transfer" in tensor else None)
    if unit == ABSTRACT:
        scale = _abstract_scale([*works, *(cost for cost in transfers if cost is not None)], k, whole)
    else:
        scale = PICOSECONDS_PER_UNIT[unit]
    own = works if times is None else [time.as_integer_ratio() for time in times]
    slow, fast = scale * speed.denominator, speed.numerator
    work_ticks = [_ticks(p, q * fast, slow, (*path, "ops", i, "work")) for i, (p, q) in enumerate(own)]
    rate, per_s = Fraction(bandwidth_bytes_per_s), TICKS_PER_S
    slow, fast = scale * link_speed.denominator, link_speed.numerator
    transfer_ticks = [
        _ticks(tensor["bytes"] * rate.denominator, rate.numerator, per_s, (*path, "tensors", t, "bytes"))
        if cost is None
        else _ticks(cost[0], cost[1] * fast, slow, (*path, "tensors", t, "transfer"))
        for t, (tensor, cost) in enumerate(zip(document["tensors"], transfers, strict=True))
    ]
    return _connect(document, scale, work_ticks, [latency + ticks for ticks in transfer_ticks], path)


def embedded_in_ticks(document: Any) -> TickGraph:
    """Take a graph whose costs are ticks already, as a plan that passed ``check_plan`` embeds it.

    Raises
    ------
    InputError
        If names, edges or their lack of cycles are not in order; *where* is a JSON pointer into the plan.
    """
    works = [op["work"] for op in document["ops"]]
    return _connect(document, 1, works, [tensor["transfer"] for tensor in document["tensors"]], ("graph",))


def _abstract_scale(costs: list[tuple[int, int]], k: int, whole: bool) -> int:
    total = sum(Fraction(*cost) for cost in costs) if any(q != 1 for _, q in costs) else sum(p for p, _ in costs)
    if (whole and all(denominator == 1 for _, denominator in costs)) or not total:
        return 1
    scale = 1
    while scale < _FINEST and k * total * scale * 10 < _ABSTRACT_LIMIT:
        scale *= 10
    if scale == _FINEST and any(numerator * scale % denominator for numerator, denominator in costs):
        above_zero = sum(numerator > 0 for numerator, _ in costs)
        if total * scale < _FEWEST_TICKS * above_zero:
            refuse("the costs are too small", ("ops",), "give them in a larger unit: a tick is at least 10^-18 of one")
    return scale


def _numbered(items: list[dict[str, Any]], path: Path) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for i, item in enumerate(items):
        name = item["name"]
        if not name:
            refuse("empty name", (*path, i, "name"))
        if name in numbers:
            refuse(f"duplicate name {name!r}", (*path, i, "name"))
        numbers[name] = i
    return numbers


def _connect(document: Any, ticks_per_unit: int, work: list[int], transfer: list[int], path: Path) -> TickGraph:
    ops, tensors = document["ops"], document["tensors"]
    if not ops:
        refuse("the graph has no ops", (*path, "ops"))
    number = _numbered(ops, (*path, "ops"))
    tensor_number = _numbered(tensors, (*path, "tensors"))
    producer: list[int] = []
    consumers: list[list[int]] = []
    for t, tensor in enumerate(tensors):
        at = (*path, "tensors", t)
        if tensor["producer"] not in number:
            refuse(f"no op is called {tensor['producer']!r}", (*at, "producer"))
        maker = number[tensor["producer"]]
        readers: dict[int, None] = {}
        for c, name in enumerate(tensor["consumers"]):
            if name not in number:
                refuse(f"no op is called {name!r}", (*at, "consumers", c))
            if number[name] == maker:
                refuse(f"op {name!r} consumes its own output", (*at, "consumers", c))
            if number[name] in readers:
                refuse(f"duplicate consumer {name!r}", (*at, "consumers", c))
            readers[number[name]] = None
        producer.append(maker)
        consumers.append(list(readers))
    order = first_come_order(len(ops), ((u, v) for u, vs in zip(producer, consumers, strict=True) for v in vs))
    if len(order) < len(ops):
        refuse("the graph has a cycle", (*path, "tensors"))
    own = [op.get("param_bytes", 0) for op in ops]
    weights = _read_rows(document, "weights", number, path)
    return TickGraph(
        time_unit=document["time_unit"],
        ticks_per_unit=ticks_per_unit,
        op_names=[op["name"] for op in ops],
        work=work,
        param_bytes=_with_shares(own, weights),
        own_bytes=own,
        weights=weights,
        inputs=_read_rows(document, "inputs", number, path),
        results=_results(document.get("results", []), tensor_number, (*path, "results")),
        states=_read_rows(document, "states", number, path),
        state_ends=_state_ends(document.get("states", []), (*path, "states")),
        tensor_names=[tensor["name"] for tensor in tensors],
        producer=producer,
        consumers=consumers,
        tensor_bytes=[tensor.get("bytes") for tensor in tensors],
        transfer=transfer,
        order=order,
    )


def _read_rows(document: Any, key: str, number: dict[str, int], place: Path) -> list[Read]:
    rows, path = document.get(key, []), (*place, key)
    _numbered(rows, path)
    found = []
    for i, row in enumerate(rows):
        readers: dict[int, None] = {}
        for r, name in enumerate(row["readers"]):
            if name not in number:
                refuse(f"no op is called {name!r}", (*path, i, "readers", r))
            if number[name] in readers:
                refuse(f"duplicate reader {name!r}", (*path, i, "readers", r))
            readers[number[name]] = None
        if not readers:
            refuse(f"no op reads the {key[:-1]}", (*path, i, "readers"))
        found.append((row["name"], row["bytes"], list(readers)))
    return found


def _results(names: list[str], number: dict[str, int], path: Path) -> frozenset[int]:
    for i, name in enumerate(names):
        if name not in number:
            refuse(f"no tensor is called {name!r}", (*path, i))
        if name in names[:i]:
            refuse(f"duplicate result {name!r}", (*path, i))
    return frozenset(number[name] for name in names)


def _state_ends(rows: list[dict[str, Any]], path: Path) -> list[tuple[str, str]]:
    for key in ("input", "output"):
        seen: set[str] = set()
        for i, row in enumerate(rows):
            if not row[key]:
                refuse("empty name", (*path, i, key))
            if row[key] in seen:
                refuse(f"another state has the {key} {row[key]!r}", (*path, i, key))
            seen.add(row[key])
    return [(row["input"], row["output"]) for row in rows]


def _with_shares(own: list[int], weights: list[Read]) -> list[int]:
    """Charge each weight on the last of its readers as the file lists them."""
    total = list(own)
    for _, size, readers in weights:
        total[readers[-1]] += size
    return total


def first_come_order(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the topological order that always takes the earliest node that is ready; shorter for a cycle."""
    successors: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for u, v in edges:
        successors[u].append(v)
        missing[v] += 1
    ready = [v for v in range(count) if missing[v] == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        u = heappop(ready)
        order.append(u)
        for v in successors[u]:
            missing[v] -= 1
            if missing[v] == 0:
                heappush(ready, v)
    return order


def first_difference(embedded: TickGraph, model: TickGraph) -> str | None:
    """Name the first op or tensor in which an embedded graph departs from the model's; None if they agree."""
    for what, ours, theirs in (
        ("op", _op_rows(embedded), _op_rows(model)),
        ("tensor", _tensor_rows(embedded), _tensor_rows(model)),
        ("weight", _read_by_name(embedded, embedded.weights), _read_by_name(model, model.weights)),
        ("input", _read_by_name(embedded, embedded.inputs), _read_by_name(model, model.inputs)),
        ("result", _result_rows(embedded), _result_rows(model)),
        ("state", _state_rows(embedded), _state_rows(model)),
    ):
        if len(ours) != len(theirs):
            return f"{len(ours)} {what}s, the model has {len(theirs)}"
        columns = _COLUMNS[what]
        for mine, given in zip(ours, theirs, strict=True):
            if mine != given:
                c = next(c for c, value in enumerate(mine) if value != given[c])
                return f"{what} {mine[0]!r}: {columns[c]} is {_short(mine[c])}, the model gives {_short(given[c])}"
    return None


_COLUMNS = {
    "op": ("name", "work", "param_bytes"),
    "tensor": ("name", "bytes", "transfer", "producer", "consumers"),
    "weight": ("name", "bytes", "readers"),
    "input": ("name", "bytes", "readers"),
    "result": ("name",),
    "state": ("name", "bytes", "readers", "input", "output"),
}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _op_rows(graph: TickGraph) -> list[tuple[Any, ...]]:
    return list(zip(graph.op_names, graph.work, graph.own_bytes, strict=True))


def _tensor_rows(graph: TickGraph) -> list[tuple[Any, ...]]:
    names = graph.op_names
    producers = [names[u] for u in graph.producer]
    consumers = [sorted(names[v] for v in readers) for readers in graph.consumers]
    return list(zip(graph.tensor_names, graph.tensor_bytes, graph.transfer, producers, consumers, strict=True))


def _read_by_name(graph: TickGraph, rows: list[Read]) -> list[tuple[Any, ...]]:
    return [(name, size, sorted(graph.op_names[v] for v in readers)) for name, size, readers in rows]


def _state_rows(graph: TickGraph) -> list[tuple[Any, ...]]:
    rows = _read_by_name(graph, graph.states)
    return [(*row, *ends) for row, ends in zip(rows, graph.state_ends, strict=True)]


def _result_rows(graph: TickGraph) -> list[tuple[Any, ...]]:
    return [(graph.tensor_names[t],) for t in sorted(graph.results)]
