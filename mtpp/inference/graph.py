"""The computation graph: ops, tensors between them, and what each costs.

A tensor is a hyperedge: one producer op and any number of consumer ops. The papers' "one output per op"
(Archer et al. 2024, section 2.1) is the special case of one tensor per op.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from mtpp.array_types import Int32Array as Int32Array
from mtpp.array_types import Int64Array as Int64Array
from mtpp.errors import InputError
from mtpp.graph_summary import GraphSummary
from mtpp.inference.frozen import frozen
from mtpp.inference.graph_columns import OpColumns, TensorColumns, checked_links
from mtpp.inference.results import result_numbers
from mtpp.inference.states import NO_STATES, State, States
from mtpp.inference.topological import cycle_text, find_cycle, first_come_order
from mtpp.inference.weights import NO_WEIGHTS, Weight, Weights
from mtpp.units import Exact, exact_decimal

if TYPE_CHECKING:
    import networkx as nx

T = TypeVar("T")

TIME_UNITS = ("ps", "ns", "us", "ms", "s", "1")
"""Units of time a graph may be written in; ``"1"`` is abstract: costs compare, but are no seconds."""

UNKNOWN_BYTES = -1
"""Stands in ``tensor_bytes`` for a tensor whose size was not given (only its transfer time was)."""


class Op(NamedTuple):
    """One operation, as a reader hands it over; all from *backward* on is for training."""

    name: str
    work: Exact
    kind: str = ""
    param_bytes: int = 0
    backward: Exact | None = None
    kept_bytes: int | None = None
    trainable_bytes: int | None = None
    backward_share: Exact | None = None


class Tensor(NamedTuple):
    """One tensor, as a reader hands it over; *producer* and *consumers* are names of ops."""

    name: str
    producer: str
    consumers: tuple[str, ...]
    bytes: int | None = None
    transfer: Exact | None = None


@dataclass(frozen=True, eq=False)
class CostGraph:
    """A directed acyclic graph of ops and tensors with exact costs. Make one with :meth:`build`.

    Attributes
    ----------
    time_unit
        Unit of *work* and *transfer*, one of :data:`TIME_UNITS`.
    op_names, op_kinds, work
        One entry per op, in file order; work is an exact number of time units.
    param_bytes
        Bytes of parameters that each op reads and no other one does, int64, shape (n,).
    tensor_names
        One entry per tensor, in file order.
    tensor_producer
        Op that makes each tensor, int32, shape (m,).
    consumer_offsets, consumers
        Ops that read each tensor, CSR: tensor t is read by ``consumers[consumer_offsets[t]:
        consumer_offsets[t + 1]]``; int64, shape (m + 1,) and int32.
    tensor_bytes
        Size of each tensor, int64, shape (m,); :data:`UNKNOWN_BYTES` where not given.
    transfer
        Time to move each tensor, in time units; None where it follows from the bytes and the system's bandwidth.
    metadata
        What a reader wants to keep (inputs, outputs, what was folded …); never read by a solver.
    weights
        Weights that several ops read: a stage holds each once.
    inputs
        Inputs of the graph that ops read; they take working memory and no transfer.
    results
        Tensors that are results of the graph, ascending: the stage that makes one keeps it to its end.
    states
        What the model keeps between requests; the inputs that bring them take no working memory besides.
    backward
        Time of each op's backward pass, in time units, None where not given; empty where no op has one.
    kept_bytes
        Bytes of each op kept from its forward to its backward pass, for each micro-batch; as *backward*.
    trainable_bytes
        Bytes of the parameters that are trained, of those that each op reads; as *backward*.
    backward_share
        Part of each op's backward pass that computes a gradient which training needs, from 0 to 1: ½ where only that of
        what it reads, or only that of its parameters; as *backward*.
    """

    name: str
    time_unit: str
    op_names: tuple[str, ...]
    op_kinds: tuple[str, ...]
    work: tuple[Exact, ...]
    param_bytes: Int64Array
    tensor_names: tuple[str, ...]
    tensor_producer: Int32Array
    consumer_offsets: Int64Array
    consumers: Int32Array
    tensor_bytes: Int64Array
    transfer: tuple[Exact | None, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    weights: Weights = NO_WEIGHTS
    inputs: Weights = NO_WEIGHTS
    results: tuple[int, ...] = ()
    states: States = NO_STATES
    backward: tuple[Exact | None, ...] = ()
    kept_bytes: tuple[int | None, ...] = ()
    trainable_bytes: tuple[int | None, ...] = ()
    backward_share: tuple[Exact | None, ...] = ()

    def __repr__(self) -> str:
        """Return name, sizes and the most expensive ops, in a dozen lines."""
        return self._summary.text()

    def _repr_html_(self) -> str:
        return self._summary.html()

    @property
    def _summary(self) -> GraphSummary:
        states, columns = len(self.states.inputs), (self.op_names, self.op_kinds, self.work)
        return GraphSummary(self.name, self.time_unit, *columns, self.tensor_count, self.all_bytes, states)

    @classmethod
    def build(
        cls,
        *,
        name: str,
        time_unit: str,
        ops: Iterable[Op],
        tensors: Iterable[Tensor],
        weights: Iterable[Weight] = (),
        inputs: Iterable[Weight] = (),
        results: Iterable[str] = (),
        states: Iterable[State] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> CostGraph:
        """Check ops and tensors once and lay them out as arrays.

        Raises
        ------
        InputError
            On an empty graph, a duplicate or empty name, a negative or oversized cost, an unknown op, a duplicate
            consumer, a self-loop, a cycle, a tensor without a cost; *where* is a JSON pointer into the graph
            format (``/tensors/3/consumers/0``).

        Notes
        -----
        O(n + pins) time and memory.
        """
        return cls.from_columns(
            name=name,
            time_unit=time_unit,
            ops=OpColumns(*_transposed(ops, len(OpColumns._fields))),
            tensors=TensorColumns(*_transposed(tensors, len(TensorColumns._fields))),
            weights=weights,
            inputs=inputs,
            results=results,
            states=states,
            metadata=metadata,
        )

    @classmethod
    def from_columns(
        cls,
        *,
        name: str,
        time_unit: str,
        ops: OpColumns,
        tensors: TensorColumns,
        weights: Iterable[Weight] = (),
        inputs: Iterable[Weight] = (),
        results: Iterable[str] = (),
        states: Iterable[State] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> CostGraph:
        """Do what :meth:`build` does, with a sequence per field in place of an object per row."""
        if time_unit not in TIME_UNITS:
            units = ", ".join(TIME_UNITS)
            raise InputError(f"unknown time unit {time_unit!r}", where="/time_unit", remedy=f"use one of {units}")
        if not ops.name:
            raise InputError("the graph has no ops", where="/ops", remedy="give at least one")
        read = Weights.build(list(weights), ops.name)
        links = checked_links(
            ops, tensors, read.read_by(len(ops.name)).tolist() if read.names else None, abstract=time_unit == "1"
        )
        graph = cls(
            name=name,
            time_unit=time_unit,
            op_names=tuple(ops.name),
            op_kinds=tuple(ops.kind),
            work=tuple(ops.work),
            param_bytes=np.array(ops.param_bytes, dtype=np.int64),
            tensor_names=tuple(tensors.name),
            tensor_producer=links.producer,
            consumer_offsets=links.offsets,
            consumers=links.consumers,
            tensor_bytes=np.array([UNKNOWN_BYTES if size is None else size for size in tensors.bytes], dtype=np.int64),
            transfer=tuple(tensors.transfer),
            metadata=frozen(metadata or {}),
            weights=read,
            inputs=Weights.build(list(inputs), ops.name, "inputs"),
            results=result_numbers(list(results), tensors.name),
            states=States.build(list(states), ops.name),
            backward=_given(ops.backward),
            kept_bytes=_given(ops.kept_bytes),
            trainable_bytes=_given(ops.trainable_bytes),
            backward_share=_given(ops.backward_share),
        )
        for array in (graph.param_bytes, *links, graph.tensor_bytes):
            array.setflags(write=False)
        _ = graph.order  # raises on a cycle
        return graph

    @property
    def op_count(self) -> int:
        """Number of ops, the papers' n."""
        return len(self.op_names)

    @property
    def tensor_count(self) -> int:
        """Number of tensors."""
        return len(self.tensor_names)

    @cached_property
    def read_bytes(self) -> Int64Array:
        """Bytes of all that is stored and each op reads, shared or not, int64, shape (n,); no states of inputs."""
        states, given = self.states, set(self.inputs.names)
        stored = np.array([name not in given for name in states.inputs], dtype=np.int64)
        kept = replace(states.held, bytes=states.held.bytes * stored)
        return self.param_bytes + self.weights.read_by(self.op_count) + kept.read_by(self.op_count)

    @property
    def all_bytes(self) -> int:
        """Bytes of all parameters, each once."""
        total: int = sum(self.param_bytes.tolist()) + sum(self.weights.bytes.tolist())
        return total

    @property
    def result_names(self) -> list[str]:
        """Names of the tensors that are results of the graph."""
        return [self.tensor_names[t] for t in self.results]

    @property
    def training_columns(self) -> Mapping[str, Sequence[Any]]:
        """Columns of ops that are for training, by their names in files; an empty one where nothing is given."""
        return {
            "backward": self.backward,
            "kept_bytes": self.kept_bytes,
            "trainable_bytes": self.trainable_bytes,
            "backward_share": self.backward_share,
        }

    def tensor_consumers(self, tensor: int) -> Int32Array:
        """Return the ops that read *tensor*, int32."""
        return self.consumers[self.consumer_offsets[tensor] : self.consumer_offsets[tensor + 1]]

    @cached_property
    def edges(self) -> tuple[Int32Array, Int32Array]:
        """Producer and consumer of every pin: two int32 arrays with one entry per (tensor, consumer)."""
        return np.repeat(self.tensor_producer, np.diff(self.consumer_offsets)), self.consumers

    @cached_property
    def order(self) -> Int32Array:
        """The graph's own order: file order where that is topological, else the topological order nearest to it.

        int32, shape (n,): of all ops whose inputs are done, the first in the file comes next (Kahn 1962).
        """
        sources, targets = self.edges
        if bool(np.all(sources < targets)):
            order = np.arange(self.op_count, dtype=np.int32)
        else:
            edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
            found = first_come_order(self.op_count, edges)
            if len(found) < self.op_count:
                cycle = [self.op_names[v] for v in find_cycle(self.op_count, edges, found)]
                raise InputError(f"the graph has a cycle: {cycle_text(cycle)}", where="/tensors")
            order = np.array(found, dtype=np.int32)
        order.setflags(write=False)
        return order

    def to_networkx(self) -> nx.DiGraph:
        """Return the graph as a ``networkx.DiGraph`` on op names.

        Nodes carry ``work``, ``kind`` and ``param_bytes``, and what is given for training (``backward`` …); an edge
        carries ``tensors``, the list of names of the tensors that flow along it. The graph's attributes hold ``name``,
        ``time_unit``, ``metadata`` and ``tensors``: name → ``{"producer", "consumers", "bytes", "transfer"}``, from
        which :meth:`from_networkx` restores the hyperedges; and where several ops read a weight ``weights``: name →
        ``{"bytes", "readers"}``; likewise ``inputs``, and ``results``, a list of names of tensors, and ``states``:
        name → ``{"input", "output", "bytes", "readers"}``, where there are any.
        """
        import networkx as nx

        result: nx.DiGraph = nx.DiGraph(name=self.name, time_unit=self.time_unit, metadata=dict(self.metadata))
        for v, op in enumerate(self.op_names):
            result.add_node(op, work=self.work[v], kind=self.op_kinds[v], param_bytes=int(self.param_bytes[v]))
            for key, column in self.training_columns.items():
                if column and column[v] is not None:
                    result.nodes[op][key] = column[v]
        tensors: dict[str, dict[str, Any]] = {}
        for t, tensor in enumerate(self.tensor_names):
            producer = self.op_names[self.tensor_producer[t]]
            readers = [self.op_names[v] for v in self.tensor_consumers(t)]
            size = int(self.tensor_bytes[t])
            tensors[tensor] = {
                "producer": producer,
                "consumers": readers,
                "bytes": None if size == UNKNOWN_BYTES else size,
                "transfer": self.transfer[t],
            }
            for reader in readers:
                if result.has_edge(producer, reader):
                    result.edges[producer, reader]["tensors"].append(tensor)
                else:
                    result.add_edge(producer, reader, tensors=[tensor])
        result.graph["tensors"] = tensors
        if self.weights.names:
            result.graph["weights"] = self.weights.by_name(self.op_names)
        if self.inputs.names:
            result.graph["inputs"] = self.inputs.by_name(self.op_names)
        if self.results:
            result.graph["results"] = self.result_names
        if self.states.inputs:
            result.graph["states"] = self.states.by_name(self.op_names)
        return result

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph, *, time_unit: str | None = None) -> CostGraph:
        """Make a graph from a ``networkx.DiGraph``.

        Parameters
        ----------
        graph
            Nodes carry ``work`` (required, in time units; floats are read as the decimals they print as), and
            may carry ``kind``, ``size_param`` or ``param_bytes``, ``backward``, ``kept_bytes``, ``trainable_bytes``,
            ``backward_share``, and ``size_out`` or ``bytes`` or ``transfer`` of the one tensor that the node sends
            along all its out-edges. A graph made by :meth:`to_networkx` brings its tensors in
            ``graph.graph["tensors"]`` instead, and ``graph.graph["weights"]`` where several ops read a weight,
            ``graph.graph["inputs"]``, ``graph.graph["results"]`` and ``graph.graph["states"]`` where it has any.
        time_unit
            Unit of the costs; by default the graph's attribute ``time_unit``, else ``"1"``.

        Raises
        ------
        InputError
            As :meth:`build`, and for a node without ``work``.
        """
        unit = time_unit or str(graph.graph.get("time_unit", "1"))
        ops = [_op_of_node(str(node), data) for node, data in graph.nodes(data=True)]
        stored = graph.graph.get("tensors")
        read: dict[str, list[Weight]] = {"weights": [], "inputs": []}
        results: list[str] = []
        states: list[State] = []
        if isinstance(stored, Mapping):
            for key, noun in (("weights", "weight"), ("inputs", "input")):
                read[key] = [_weight(str(name), row, noun) for name, row in (graph.graph.get(key) or {}).items()]
            results = _result_names(graph.graph.get("results"))
            states = [_state(str(name), row) for name, row in (graph.graph.get("states") or {}).items()]
            tensors = [
                _tensor(str(t), d["producer"], tuple(d["consumers"]), d, f"tensor {t!r}") for t, d in stored.items()
            ]
        else:
            tensors = [
                _tensor(str(node), str(node), tuple(str(v) for v in graph.successors(node)), data, f"node {node!r}")
                for node, data in graph.nodes(data=True)
                if graph.out_degree(node) or _first(data, "size_out", "bytes", "transfer") is not None
            ]
        return cls.build(
            name=str(graph.graph.get("name", "") or "graph"),
            time_unit=unit,
            ops=ops,
            tensors=tensors,
            **read,
            results=results,
            states=states,
            metadata=graph.graph.get("metadata"),
        )


def _given(column: Sequence[T | None]) -> tuple[T | None, ...]:
    """Return a column, empty if nothing stands in it."""
    return tuple(column) if any(value is not None for value in column) else ()


def _transposed(rows: Iterable[tuple[Any, ...]], width: int) -> Iterable[Sequence[Any]]:
    """Return the columns of *rows*, also where there are none."""
    return list(zip(*rows, strict=True)) or [()] * width


def _first(data: Mapping[str, Any], *keys: str) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _exact(value: Any, where: str) -> Exact:
    if isinstance(value, bool) or value is None:
        raise InputError(f"{value!r} is not a number", where=where)
    if isinstance(value, int | Fraction):
        return value
    try:
        return exact_decimal(str(value))
    except ValueError as error:
        raise InputError(str(error), where=where) from None


def _whole(value: Any, where: str) -> int:
    exact = _exact(value, where)
    if exact.denominator != 1:
        raise InputError(f"{value!r} is not a whole number of bytes", where=where)
    return int(exact)


def _op_of_node(name: str, data: Mapping[str, Any]) -> Op:
    where = f"node {name!r}"
    if "work" not in data:
        raise InputError("the node has no work", where=where, remedy="give it the attribute work")
    size = _first(data, "param_bytes", "size_param")
    params = 0 if size is None else _whole(size, f"{where}, param_bytes")
    backward, share = _first(data, "backward"), _first(data, "backward_share")
    kept, trainable = _first(data, "kept_bytes"), _first(data, "trainable_bytes")
    return Op(
        name,
        _exact(data["work"], f"{where}, work"),
        str(data.get("kind", "")),
        params,
        None if backward is None else _exact(backward, f"{where}, backward"),
        None if kept is None else _whole(kept, f"{where}, kept_bytes"),
        None if trainable is None else _whole(trainable, f"{where}, trainable_bytes"),
        None if share is None else _exact(share, f"{where}, backward_share"),
    )


def _weight(name: str, row: Any, noun: str) -> Weight:
    where = f"{noun} {name!r}"
    if not isinstance(row, Mapping) or row.keys() != {"bytes", "readers"}:
        raise InputError(f"{'an' if noun == 'input' else 'a'} {noun} is {{'bytes': …, 'readers': […]}}", where=where)
    if not isinstance(row["readers"], list | tuple):
        raise InputError("readers must be a list", where=where)
    return Weight(name, _whole(row["bytes"], f"{where}, bytes"), [str(v) for v in row["readers"]])


def _state(name: str, row: Any) -> State:
    if not isinstance(row, Mapping) or row.keys() != {"input", "output", "bytes", "readers"}:
        problem = "a state is {'input': …, 'output': …, 'bytes': …, 'readers': […]}"
        raise InputError(problem, where=f"state {name!r}")
    held = _weight(name, {"bytes": row["bytes"], "readers": row["readers"]}, "state")
    return State(name, str(row["input"]), str(row["output"]), held.bytes, held.readers)


def _result_names(names: Any) -> list[str]:
    if not isinstance(names or (), list | tuple):
        raise InputError("must be a list of names of tensors", where="results")
    return [str(name) for name in names or ()]


def _tensor(name: str, producer: str, consumers: tuple[str, ...], data: Mapping[str, Any], where: str) -> Tensor:
    size = _first(data, "bytes", "size_out")
    transfer = _first(data, "transfer")
    return Tensor(
        name,
        producer,
        consumers,
        None if size is None else _whole(size, f"{where}, bytes"),
        None if transfer is None else _exact(transfer, f"{where}, transfer"),
    )
