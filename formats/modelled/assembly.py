"""Tensors and metadata of a cost graph, from the records of its ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mtpp.errors import InputError
from mtpp.formats.modelled.control_notes import assumed_of_control_flow
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord
from mtpp.inference.graph import CostGraph, Op, Tensor
from mtpp.inference.states import State
from mtpp.inference.weights import Weight


def shared_weights(ops: Sequence[OpRecord], names: Sequence[str]) -> list[Weight]:
    """Return the stored tensors that several ops read, in the order of their first readers."""
    sizes: dict[str, int] = {}
    readers: dict[str, list[str]] = {}
    for op, op_name in zip(ops, names, strict=True):
        for weight, size in op.parameters.items():
            if size:
                sizes[weight] = size
                readers.setdefault(weight, []).append(op_name)
    return [Weight(weight, sizes[weight], read) for weight, read in readers.items() if len(read) > 1]


def ops_of(ops: Sequence[OpRecord], names: Sequence[str], shared: Iterable[Weight]) -> list[Op]:
    """Return one op per record, each with the stored tensors that no other reads."""
    others = {weight.name for weight in shared}
    return [_op(name, one, others) for name, one in zip(names, ops, strict=True)]


def _op(name: str, one: OpRecord, others: Collection[str]) -> Op:
    own = sum(size for weight, size in one.parameters.items() if weight not in others)
    op = Op(name, one.work_ps, one.kind, own)
    if one.training is None:
        return op
    return op._replace(trainable_bytes=sum(one.training.trained.values()), backward_share=one.training.share)


def tensors_of(ops: Sequence[OpRecord], names: Sequence[str]) -> list[Tensor]:
    """Return one tensor per output; what nobody reads and has no static size is left out."""
    consumers: dict[str, list[str]] = {}
    for op, op_name in zip(ops, names, strict=True):
        for tensor in op.inputs:
            consumers.setdefault(tensor, []).append(op_name)
    return [
        Tensor(tensor, op_name, tuple(consumers.get(tensor, ())), size)
        for op, op_name in zip(ops, names, strict=True)
        for tensor, size in op.outputs
        if size is not None
    ]


def graph_of(
    ops: Sequence[OpRecord],
    names: Sequence[str],
    weights: Sequence[Weight],
    tensors: Sequence[Tensor],
    states: Sequence[State],
    metadata: dict[str, Any],
    *,
    name: str,
    source: str,
) -> CostGraph:
    """Return the graph of a model in picoseconds: its inputs and results are those that *metadata* describe.

    Raises
    ------
    InputError
        If the parts are no graph; *source* is what is wrong.
    """
    try:
        return CostGraph.build(
            name=name,
            time_unit="ps",
            ops=ops_of(ops, names, weights),
            tensors=tensors,
            weights=weights,
            inputs=_inputs_of(ops, names, metadata["inputs"]),
            results=_results_of(tensors, metadata["outputs"]),
            states=states,
            metadata=metadata,
        )
    except InputError as error:
        raise InputError(error.problem, source=source, where=error.where, remedy=error.remedy) from None


def _inputs_of(ops: Sequence[OpRecord], names: Sequence[str], described: Iterable[Mapping[str, Any]]) -> list[Weight]:
    """Return the inputs that ops read, with their bytes and readers.

    Parameters
    ----------
    described
        Inputs of the model as metadata describe them; one without bytes is left out.
    """
    readers: dict[str, list[str]] = {one["name"]: [] for one in described if one.get("bytes")}
    for op, op_name in zip(ops, names, strict=True):
        for tensor in op.inputs:
            if tensor in readers:
                readers[tensor].append(op_name)
    return [Weight(one["name"], one["bytes"], found) for one in described if (found := readers.get(one["name"]))]


def _results_of(tensors: Sequence[Tensor], described: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the tensors that the model returns, each once."""
    made = {tensor.name for tensor in tensors}
    return list(dict.fromkeys(one["name"] for one in described if one["name"] in made))


def summary_of(record: GraphRecord, names: Sequence[str], weights: Iterable[Weight]) -> dict[str, Any]:
    """Return what metadata say of all ops: FLOPs, parameters, shared ones, what has no rule, what is assumed."""
    sizes: dict[str, int] = {}
    not_modelled: Counter[str] = Counter()
    notes: list[dict[str, Any]] = []
    for op, op_name in zip(record.ops, names, strict=True):
        sizes |= op.parameters
        not_modelled += op.not_modelled
        notes += [{**note, "op": op_name + note["op"], "kind": note["kind"] or op.kind} for note in op.notes]
    shared = [{"name": weight.name, "bytes": weight.bytes, "ops": weight.readers} for weight in weights]
    computed = sum(one.bytes for one in record.read)
    assumed = assumed_of_control_flow(notes)
    return {
        "macs": sum(op.macs for op in record.ops),
        "flops": sum(op.flops for op in record.ops),
        "parameter_bytes": sum(sizes.values()),
        **({"computed_bytes": computed} if computed > sum(sizes.values()) else {}),
        "folded_constants": record.folded,
        "shared_parameters": sorted(shared, key=lambda entry: -int(str(entry["bytes"]))),
        "not_modelled": dict(sorted(not_modelled.items())),
        "control_flow": notes,
        **({"assumptions": assumed} if assumed else {}),
    }
