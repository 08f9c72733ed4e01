"""Tensors and metadata of a cost graph, from the records of its ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mtpp.formats.modelled.control_notes import assumed_of_control_flow
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord
from mtpp.inference.graph import Op, Tensor
from mtpp.inference.weights import Weight
from mtpp.units import format_bytes

_SMALLEST_SHARE = 100


def ops_of(ops: Sequence[OpRecord], names: Sequence[str]) -> list[Op]:
    """Return one op per record."""
    return [_op(name, one) for name, one in zip(names, ops, strict=True)]


def _op(name: str, one: OpRecord) -> Op:
    op = Op(name, one.work_ps, one.kind, sum(one.parameters.values()))
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


def inputs_of(ops: Sequence[OpRecord], names: Sequence[str], described: Iterable[Mapping[str, Any]]) -> list[Weight]:
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


def results_of(tensors: Sequence[Tensor], described: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the tensors that the model returns, each once."""
    made = {tensor.name for tensor in tensors}
    return list(dict.fromkeys(one["name"] for one in described if one["name"] in made))


def summary_of(record: GraphRecord, names: Sequence[str]) -> dict[str, Any]:
    """Return what metadata say of all ops: FLOPs, parameters, shared ones, what has no rule, what is assumed."""
    sizes: dict[str, int] = {}
    readers: dict[str, list[str]] = {}
    not_modelled: Counter[str] = Counter()
    notes: list[dict[str, Any]] = []
    for op, op_name in zip(record.ops, names, strict=True):
        for parameter, size in op.parameters.items():
            sizes[parameter] = max(size, sizes.get(parameter, 0))
            readers.setdefault(parameter, []).append(op_name)
        not_modelled += op.not_modelled
        notes += [{**note, "op": op_name + note["op"], "kind": note["kind"] or op.kind} for note in op.notes]
    shared = [
        {"name": parameter, "bytes": sizes[parameter], "ops": ops} for parameter, ops in readers.items() if len(ops) > 1
    ]
    counted = counted_weights(sizes, readers, record.packed)
    assumed = [*assumed_of_control_flow(notes), *told_weights(counted)]
    return {
        "macs": sum(op.macs for op in record.ops),
        "flops": sum(op.flops for op in record.ops),
        "parameter_bytes": sum(sizes.values()),
        "folded_constants": record.folded,
        "shared_parameters": sorted(shared, key=lambda entry: -int(str(entry["bytes"]))),
        "not_modelled": dict(sorted(not_modelled.items())),
        "control_flow": notes,
        **({"counted_weights": counted} if counted else {}),
        **({"assumptions": assumed} if assumed else {}),
    }


def counted_weights(sizes: Mapping[str, int], readers: Mapping[str, Sequence[str]], stored: Mapping[str, int]) -> Any:
    """Return what weights count as beyond what is stored, as metadata; nothing where that is little.

    A plan counts the weights of an op as its operator reads them, and those of several ops at each of them. A stage may
    hold less; the difference is told where it is a hundredth of the weights or more.

    Parameters
    ----------
    sizes, readers
        Bytes of each weight, and the ops that read it.
    stored
        Bytes in the file of those that count as more.
    """
    smallest = max(1, sum(sizes.values()) // _SMALLEST_SHARE)
    repeated = sum(size * (len(readers[name]) - 1) for name, size in sizes.items())
    unpacked = {name: size for name, size in sizes.items() if name in stored and stored[name] < size}
    found: dict[str, int] = {}
    if repeated >= smallest:
        found["repeated_bytes"] = repeated
    if sum(size - stored[name] for name, size in unpacked.items()) >= smallest:
        found["unpacked_bytes"] = sum(unpacked.values())
        found["packed_bytes"] = sum(stored[name] for name in unpacked)
    return found


def told_weights(counted: Mapping[str, int]) -> list[str]:
    """Return the same for people."""
    texts = []
    if "unpacked_bytes" in counted:
        unpacked, packed = format_bytes(counted["unpacked_bytes"]), format_bytes(counted["packed_bytes"])
        texts.append(f"weights stored in fewer bits count as they are computed with: {unpacked} for {packed}")
    if "repeated_bytes" in counted:
        more = format_bytes(counted["repeated_bytes"])
        texts.append(f"weights that several ops read count at each of them: {more} more than the file holds")
    return texts
