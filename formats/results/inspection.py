"""Figures of a model, ``mtpp-inspection`` version 1: what it is made of, and what its ops cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtpp.formats.modelled.open_sizes import OpenSize
    from mtpp.inference.graph import CostGraph
    from mtpp.inference.instance import Instance
    from mtpp.inference.weights import Weights

_METADATA_KEYS = (
    "dims", "proposed_dims", "symbolic_dims", "inputs", "outputs", "macs", "flops", "parameter_bytes",
    "folded_constants", "shared_parameters", "control_flow", "not_modelled", "assumptions", "costs",
)  # fmt: skip


def inspection_document(
    graph: CostGraph,
    instance: Instance,
    sha256: str | None,
    structure: Mapping[str, Any] | None,
    *,
    ops: bool,
    modules: tuple[Sequence[str], Sequence[int | None]] | None,
    open_sizes: Sequence[OpenSize] = (),
) -> dict[str, Any]:
    """Return totals, kinds of ops by cost, and what the reader put down, as JSON takes them.

    Work is in ticks (picoseconds for graphs with a time unit), sizes are in bytes.

    Parameters
    ----------
    sha256
        Of the model's file.
    structure
        Composition of the graph in figures; None where it is too large.
    ops
        Whether every op is listed.
    modules
        Modules to be listed, and the number of the one that each op belongs to, where it is known.
    open_sizes
        Sizes that were taken as proposed without being asked for.
    """
    work = instance.work.tolist()
    weights, own = graph.weights, graph.param_bytes.tolist()
    params = (graph.param_bytes + weights.read_by(graph.op_count)).tolist()
    sizes = instance.tensor_bytes.tolist()
    heaviest = max(range(graph.op_count), key=work.__getitem__)
    document: dict[str, Any] = {
        "format": "mtpp-inspection",
        "version": 1,
        "model": {"name": graph.name, "sha256": sha256, "ops": graph.op_count, "tensors": len(sizes)},
        "system": instance.device.to_document(),
        "time_unit": graph.time_unit,
        "ticks_per_unit": instance.ticks_per_unit,
        "work": sum(work),
        "largest_op": {"name": graph.op_names[heaviest], "work": work[heaviest]},
        "param_bytes": graph.all_bytes,
        "states": [
            {"name": row.name, "input": row.input, "output": row.output, "bytes": row.bytes}
            for row in graph.states.rows(graph.op_names)
        ],
        "tensor_bytes": sum(sizes),
        "largest_tensor_bytes": max(sizes, default=0),
        "structure": structure,
        "kinds": _kinds(graph.op_kinds, work, own, weights),
        "reader": {key: graph.metadata[key] for key in _METADATA_KEYS if key in graph.metadata},
    }
    if open_sizes:
        document["open_sizes"] = _open_sizes(open_sizes)
    if ops:
        document["ops"] = [
            {"name": name, "kind": kind, "work": ticks, "param_bytes": size}
            for name, kind, ticks, size in zip(graph.op_names, graph.op_kinds, work, params, strict=True)
        ]
    if modules is not None:
        names, group_of = modules
        listed = [*names, None]
        rows = _totals("module", [listed[-1 if group is None else group] for group in group_of], work, own, weights)
        document["modules"] = sorted(rows, key=lambda row: row["module"] is None)
    return document


def open_inspection_document(
    name: str, inputs: Sequence[Mapping[str, Any]], open_sizes: Sequence[OpenSize], obstacle: str
) -> dict[str, Any]:
    """Return inputs and open sizes of a model whose ops have no costs, with the reason, as JSON takes them."""
    return {
        "format": "mtpp-inspection",
        "version": 1,
        "model": {"name": name},
        "inputs": [dict(one) for one in inputs],
        "open_sizes": _open_sizes(open_sizes),
        "obstacle": obstacle,
    }


def _open_sizes(sizes: Sequence[OpenSize]) -> list[dict[str, Any]]:
    return [{"name": one.key, "meaning": one.meaning(), "proposal": one.proposal} for one in sizes]


def _kinds(kinds: tuple[str, ...], work: list[int], own: list[int], weights: Weights) -> list[dict[str, Any]]:
    return sorted(_totals("kind", kinds, work, own, weights), key=lambda row: (-row["work"], row["kind"]))


def _totals(
    key: str, values: Sequence[str | None], work: list[int], own: list[int], weights: Weights
) -> list[dict[str, Any]]:
    """Return the ops, work and parameters, each once, of each value that ops have, in the order of their first ops."""
    rows: dict[str | None, dict[str, Any]] = {}
    for value, ticks, size in zip(values, work, own, strict=True):
        row = rows.setdefault(value, {key: value, "ops": 0, "work": 0, "param_bytes": 0})
        row["ops"] += 1
        row["work"] += ticks
        row["param_bytes"] += size
    begin, readers = weights.offsets.tolist(), weights.readers.tolist()
    for w, size in enumerate(weights.bytes.tolist()):
        for value in {values[v] for v in readers[begin[w] : begin[w + 1]]}:
            rows[value]["param_bytes"] += size
    return list(rows.values())
