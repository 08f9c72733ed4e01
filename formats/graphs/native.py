"""The native graph format, ``mtpp-graph`` version 1: ops and tensors with exact decimal costs, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mtpp.document_shape import anything, text
from mtpp.errors import InputError
from mtpp.formats.io.json_shape import attributed, exact_number, headed, names, shaped, table, whole_number
from mtpp.formats.io.json_text import dump_lines, no_garbage_collection, parse_json, plain_number
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.graph_columns import OpColumns, TensorColumns
from mtpp.inference.states import State
from mtpp.inference.weights import Weight
from mtpp.units import Exact

FORMAT = "mtpp-graph"
VERSION = 1

ROWS = ("ops", "tensors", "weights", "inputs", "states")
"""Keys whose items get one line each, so that two versions of a file compare line by line."""

_OPS = table(
    {"name": text, "work": exact_number},
    {
        "kind": text,
        "param_bytes": whole_number,
        "backward": exact_number,
        "kept_bytes": whole_number,
        "trainable_bytes": whole_number,
        "backward_share": exact_number,
    },
)
_TENSORS = table(
    {"name": text, "producer": text, "consumers": names}, {"bytes": whole_number, "transfer": exact_number}
)
_READ = table({"name": text, "bytes": whole_number, "readers": names}, {})
_STATES = table({"name": text, "input": text, "output": text, "bytes": whole_number, "readers": names}, {})
_GRAPH = headed(
    FORMAT,
    VERSION,
    {"name": text, "time_unit": text, "ops": _OPS, "tensors": _TENSORS},
    {"weights": _READ, "inputs": _READ, "results": names, "states": _STATES, "metadata": anything},
)


def read_native(data: bytes, source: str) -> CostGraph:
    """Read an ``mtpp-graph`` file; *source* is what messages call it.

    Raises
    ------
    InputError
        As :func:`graph_from_document`, and if *data* is not strict JSON.
    """
    return graph_from_document(parse_json(data, source), source)


def graph_from_document(document: Any, source: str) -> CostGraph:
    """Make a graph from a parsed ``mtpp-graph`` document, such as the ``graph`` of a plan.

    Parameters
    ----------
    document
        As :func:`mtpp.formats.io.json_text.parse_json` returns it: numbers are ``int`` or ``Fraction``.

    Raises
    ------
    InputError
        On an unknown or missing key, a value of the wrong type, and whatever :meth:`CostGraph.build` refuses.

    Notes
    -----
    O(n + pins) time and memory.
    """
    with attributed(source), no_garbage_collection():
        shaped(_GRAPH, document)
        return CostGraph.from_columns(
            name=document["name"],
            time_unit=document["time_unit"],
            ops=_op_columns(document["ops"]),
            tensors=_tensor_columns(document["tensors"]),
            weights=[Weight(row["name"], row["bytes"], row["readers"]) for row in document.get("weights", ())],
            inputs=[Weight(row["name"], row["bytes"], row["readers"]) for row in document.get("inputs", ())],
            results=document.get("results", ()),
            states=[State(**row) for row in document.get("states", ())],
            metadata=plain_metadata(document.get("metadata", {})),
        )


def _op_columns(rows: list[Any]) -> OpColumns:
    return OpColumns(
        name=[row["name"] for row in rows],
        work=[row["work"] for row in rows],
        kind=[row.get("kind", "") for row in rows],
        param_bytes=[row.get("param_bytes", 0) for row in rows],
        backward=_optional(rows, "backward"),
        kept_bytes=_optional(rows, "kept_bytes"),
        trainable_bytes=_optional(rows, "trainable_bytes"),
        backward_share=_optional(rows, "backward_share"),
    )


def _optional(rows: list[Any], key: str) -> list[Any]:
    """Return a column of values that few graphs have, empty where there are none."""
    return [row.get(key) for row in rows] if any(key in row for row in rows) else []


def _tensor_columns(rows: list[Any]) -> TensorColumns:
    return TensorColumns(
        name=[row["name"] for row in rows],
        producer=[row["producer"] for row in rows],
        consumers=[row["consumers"] for row in rows],
        bytes=[row.get("bytes") for row in rows],
        transfer=[row.get("transfer") for row in rows],
    )


def plain_metadata(metadata: Any) -> dict[str, Any]:
    """Check that metadata is an object, and turn its exact decimals into floats: nothing is computed from it."""
    try:
        result: dict[str, Any] = _plain(shaped(anything, metadata, "metadata"))
    except RecursionError:
        raise InputError("nested too deeply", where="/metadata", remedy="flatten it") from None
    except OverflowError:
        raise InputError("a number is out of range", where="/metadata") from None
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def to_document(graph: CostGraph) -> dict[str, Any]:
    """Return the ``mtpp-graph`` document of a graph; keys with nothing to say are left out.

    Costs are exact (``int`` or ``Fraction``); :func:`mtpp.formats.io.json_text.dump_json` can write it.
    """
    document = _header(graph, graph.time_unit) | {
        "ops": _with_training_keys(graph, _op_rows(graph, graph.work)),
        "tensors": _tensor_rows(graph, graph.transfer),
        **_weights_and_ends(graph),
    }
    if graph.metadata:
        document["metadata"] = dict(graph.metadata)
    return document


def ticks_document(graph: CostGraph, work_ticks: Sequence[int], transfer_ticks: Sequence[int]) -> dict[str, Any]:
    """Return the document that a plan embeds: *graph* with its costs in ticks, without metadata and keys for training.

    Parameters
    ----------
    work_ticks, transfer_ticks
        Ticks per op and per tensor, in the graph's order (any sequence of integers, numpy arrays included).

    Returns
    -------
    An ``mtpp-graph`` document whose costs are integers: picoseconds, or units of an abstract graph's ticks. Every
    tensor has its transfer, so no bandwidth is needed to read it; bytes are kept.
    """
    return _header(graph, "1" if graph.time_unit == "1" else "ps") | {
        "ops": _op_rows(graph, [int(ticks) for ticks in work_ticks]),
        "tensors": _tensor_rows(graph, [int(ticks) for ticks in transfer_ticks]),
        **_weights_and_ends(graph),
    }


def plain_document(graph: CostGraph) -> dict[str, Any]:
    """Return the document that a plan for a machine embeds: the same with the graph's own costs in its own unit."""
    return _header(graph, graph.time_unit) | {
        "ops": _op_rows(graph, [plain_number(time) for time in graph.work]),
        "tensors": _tensor_rows(graph, [None if cost is None else plain_number(cost) for cost in graph.transfer]),
        **_weights_and_ends(graph),
    }


def write_native(graph: CostGraph) -> str:
    """Return the text of an ``mtpp-graph`` file, one op and one tensor per line."""
    with no_garbage_collection():
        return dump_lines(to_document(graph), ROWS) + "\n"


def _header(graph: CostGraph, time_unit: str) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "name": graph.name, "time_unit": time_unit}


def _op_rows(graph: CostGraph, work: Sequence[Exact | float]) -> list[dict[str, Any]]:
    rows = []
    param_bytes = graph.param_bytes.tolist()
    for name, kind, cost, size in zip(graph.op_names, graph.op_kinds, work, param_bytes, strict=True):
        row: dict[str, Any] = {"name": name}
        if kind:
            row["kind"] = kind
        row["work"] = cost
        if size:
            row["param_bytes"] = size
        rows.append(row)
    return rows


def _with_training_keys(graph: CostGraph, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add what is given of training to rows of ops."""
    for key, column in graph.training_columns.items():
        for row, value in zip(rows, column, strict=False):
            if value is not None:
                row[key] = value
    return rows


def _tensor_rows(graph: CostGraph, transfer: Sequence[Exact | float | None]) -> list[dict[str, Any]]:
    rows = []
    names, consumers, offsets = graph.op_names, graph.consumers.tolist(), graph.consumer_offsets.tolist()
    columns = zip(
        graph.tensor_names,
        graph.tensor_producer.tolist(),
        offsets[:-1],
        offsets[1:],
        graph.tensor_bytes.tolist(),
        transfer,
        strict=True,
    )
    for name, producer, start, stop, size, cost in columns:
        readers = [names[v] for v in consumers[start:stop]]
        row: dict[str, Any] = {"name": name, "producer": names[producer], "consumers": readers}
        if size != UNKNOWN_BYTES:
            row["bytes"] = size
        if cost is not None:
            row["transfer"] = cost
        rows.append(row)
    return rows


def _weights_and_ends(graph: CostGraph) -> dict[str, Any]:
    """Return weights, inputs, results and states, where there are any."""
    weights, inputs = ([row._asdict() for row in rows.rows(graph.op_names)] for rows in (graph.weights, graph.inputs))
    states = [row._asdict() for row in graph.states.rows(graph.op_names)]
    found = {"weights": weights, "inputs": inputs, "results": graph.result_names, "states": states}
    return {key: rows for key, rows in found.items() if rows}
