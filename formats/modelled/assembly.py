"""Tensors and metadata of a cost graph, from the records of its ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mtpp.formats.modelled.control_notes import assumed_of_control_flow
from mtpp.formats.modelled.op_record import GraphRecord, OpRecord
from mtpp.formats.modelled.weight_notes import counted_weights, told_weights
from mtpp.inference.graph import Op, Tensor


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
