"""An ONNX model as a cost graph: the steps in order, and what goes into the metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from mtpp.errors import InputError
from mtpp.formats.modelled.assembly import graph_of, shared_weights, summary_of, tensors_of
from mtpp.formats.modelled.control_notes import LEFT_OUT
from mtpp.formats.modelled.kept_together import kept_together
from mtpp.formats.modelled.naming import unique_names
from mtpp.formats.modelled.open_sizes import told_estimates
from mtpp.formats.modelled.size_terms import SizeTerms
from mtpp.formats.modelled.states import pairs_of, states_of, told_states
from mtpp.formats.onnx.dimensions import Dimensions
from mtpp.formats.onnx.loading import opset_versions
from mtpp.formats.onnx.open_model import OpenModel
from mtpp.formats.onnx.scope import Scope
from mtpp.formats.onnx.tensor_type import (
    OpaqueType,
    PartialType,
    TensorType,
    ValueType,
    dtype_name,
    partial_type,
)
from mtpp.inference.graph import CostGraph
from mtpp.machine.device import Device


def read_onnx(
    path: Path | None,
    data: bytes,
    *,
    source: str,
    dims: SizeTerms | None = None,
    system: Device,
    name: str | None = None,
    spare_dims: bool = False,
) -> CostGraph:
    """Read a serialized ONNX model as a graph with modelled costs.

    Parameters
    ----------
    path
        Where it came from: its stem names the graph, and external data lies beside it. That is opened only where sizes
        depend on it: weights never are.
    data
        The serialized ``ModelProto``.
    source
        What error messages call it.
    dims
        Sizes of symbolic dimensions by name, or by ``TENSOR:AXIS`` for one without a name; under ``*`` the size of all
        others, or ``auto`` for sizes that are proposed.
    system
        Models the work of each op: max(FLOPs / peak, bytes / memory bandwidth).
    name
        Of the graph; by default the path's stem, else the name in the file.
    spare_dims
        Whether *dims* may name dimensions that the model has not.

    Returns
    -------
    A graph in picoseconds. Everything that depends on no graph input is folded into the ops that read it: the tensors
    that the file holds for it are their ``param_bytes``, or weights where several ops read them. If, Loop and Scan are
    one op each.

    Raises
    ------
    InputError
        If the model is broken, has an unknown shape, or nothing in it depends on an input.

    Notes
    -----
    O(size of the graph) time and memory; weights are not looked at.
    """
    return read_with_nodes(path, data, source=source, dims=dims, system=system, name=name, spare_dims=spare_dims).graph


@dataclass(frozen=True)
class Reading:
    """A graph, and where in the model its ops and tensors are.

    Attributes
    ----------
    graph
        What :func:`read_onnx` returns.
    model
        The model with its local functions inlined; tensors above 64 KiB have no contents
        (:mod:`mtpp.formats.onnx.wire`).
    positions
        Index into ``model.graph.node`` of each op. Nodes that are no op are folded: they depend on no input, or on
        nothing but the shape of one.
    scope
        What is known of each tensor of the main graph: its type with static sizes, whether it depends on an input, and
        its contents where they are small and constant.
    """

    graph: CostGraph
    model: onnx.ModelProto
    positions: tuple[int, ...]
    scope: Scope


def read_with_nodes(
    path: Path | None,
    data: bytes,
    *,
    source: str,
    dims: SizeTerms | None = None,
    system: Device,
    name: str | None = None,
    spare_dims: bool = False,
    propose_sizes: bool = True,
) -> Reading:
    """Read a model as :func:`read_onnx` does, and keep what its ops are made of.

    Parameters
    ----------
    propose_sizes
        Whether sizes that fit are looked for where some are open; else the first open one is an error by itself.
    """
    whole = OpenModel.parsed(data, source, None if path is None else path.parent)
    found = whole.walked(dims or {}, system, spare=spare_dims, propose_sizes=propose_sizes)
    model, dimensions, scope, record = whole.model, found.dimensions, found.scope, found.record
    graph, parameters, opsets = model.graph, whole.parameters, opset_versions(model)
    if not record.ops:
        raise InputError(
            "nothing in the graph depends on an input: every node folds into a constant",
            source=source,
            where="graph",
            remedy="there is nothing to partition",
        )
    from mtpp.formats.onnx.stages.inseparable import inseparable_ops

    names = unique_names((op.label, op.kind, op.index) for op in record.ops)
    weights = shared_weights(record.ops, names)
    metadata = {
        "format": "onnx",
        "producer": " ".join(part for part in (model.producer_name, model.producer_version) if part),
        "ir_version": int(model.ir_version),
        "opsets": {domain or "ai.onnx": version for domain, version in opsets.items()},
        "inputs": [
            _described(value.name, value.type, scope, dimensions)
            for value in graph.input
            if value.name not in parameters
        ],
        "outputs": [_described(value.name, value.type, scope, dimensions) for value in graph.output],
        "dims": dict(dimensions.given),
        "symbolic_dims": list(dimensions.symbols),
        **({"proposed_dims": list(found.proposed)} if found.proposed else {}),
        **summary_of(record, names, weights),
        **kept_together(inseparable_ops(graph, scope, record.ops, names)),
    }
    if found.estimates:
        told = told_estimates(found.estimates, found.proposed)
        metadata["assumptions"] = [*metadata.get("assumptions", ()), *told]
    tensors = tensors_of(record.ops, names)
    pairs, doubtful = pairs_of(metadata["inputs"], metadata["outputs"])
    sizes = {one["name"]: one.get("bytes", 0) for one in (*metadata["outputs"], *metadata["inputs"])}
    states = states_of(pairs, sizes, record.ops, names)
    if told := [*told_states(states), *doubtful]:
        metadata["assumptions"] = [*metadata.get("assumptions", ()), *told]
    called = name or (path.stem if path is not None else "") or graph.name or "model"
    built = graph_of(record.ops, names, weights, tensors, states, metadata, name=called, source=source)
    return Reading(built, model, tuple(op.index for op in record.ops), scope)


def _described(name: str, declared: onnx.TypeProto, scope: Scope, dimensions: Dimensions) -> dict[str, Any]:
    """Describe a graph input or output; ``bytes`` is left out where it is not known."""
    known = scope.find(name)
    kind: ValueType | PartialType = known.type if known is not None else PartialType()
    if known is None:
        partial = partial_type(declared)
        kind = dimensions.applied(name, partial, others=False) if isinstance(partial, PartialType) else partial
    if isinstance(kind, TensorType):
        return {"name": name, "shape": list(kind.shape), "dtype": dtype_name(kind.dtype), "bytes": kind.bytes}
    if isinstance(kind, PartialType):
        shape = ["?" if dim is None else dim for dim in kind.dims or ()]
        return {"name": name, "shape": shape, "dtype": dtype_name(kind.dtype or 0)}
    if isinstance(kind, OpaqueType):
        return {"name": name, "shape": [], "dtype": kind.what}
    return {"name": name, "shape": [len(kind.elements)], "dtype": "sequence", "bytes": kind.bytes}


def only_branches(reading: Reading) -> dict[str, str]:
    """Return the only branch that can run of each If of the main graph with one that cannot, by its first output."""
    place = dict(zip(reading.graph.op_names, reading.positions, strict=True))
    nodes = reading.model.graph.node
    found = {}
    for entry in reading.graph.metadata.get("control_flow", ()):
        if entry["kind"] == "If" and LEFT_OUT in entry["note"] and entry["op"] in place:
            branch = entry["note"].rpartition(": ")[2].partition(" ")[0]
            found[nodes[place[entry["op"]]].output[0]] = branch
    return found
