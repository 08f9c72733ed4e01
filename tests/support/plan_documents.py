"""Graph and plan documents put together from the oracles alone: what a correct program has to write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import oracles

from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.machine.device import Device

SHA256 = hashlib.sha256(b"the model").hexdigest()


def graph_document(graph: CostGraph) -> dict[str, Any]:
    """Return *graph* as an mtpp-graph in its time unit, with exact costs."""
    return _document(graph, graph.time_unit, list(graph.work), list(graph.transfer))


def embedded_document(graph: CostGraph, system: Device, k: int) -> dict[str, Any]:
    """Return *graph* as an mtpp-graph in ticks."""
    ticks = oracles.to_ticks(graph, system, k)
    unit = "1" if graph.time_unit == "1" else "ps"
    return _document(graph, unit, list(ticks.work), list(ticks.transfer))


def _document(graph: CostGraph, unit: str, work: list[Any], transfer: list[Any]) -> dict[str, Any]:
    tensors: list[dict[str, Any]] = []
    for t, (producer, consumers) in enumerate(oracles.tensors_of(graph)):
        tensor: dict[str, Any] = {"name": graph.tensor_names[t], "producer": graph.op_names[producer]}
        tensor["consumers"] = [graph.op_names[v] for v in sorted(consumers)]
        if graph.tensor_bytes[t] != UNKNOWN_BYTES:
            tensor["bytes"] = int(graph.tensor_bytes[t])
        if transfer[t] is not None:
            tensor["transfer"] = transfer[t]
        tensors.append(tensor)
    ops = [
        {"name": name, "kind": graph.op_kinds[v], "work": work[v], "param_bytes": int(graph.param_bytes[v])}
        for v, name in enumerate(graph.op_names)
    ]
    return {
        "format": "mtpp-graph",
        "version": 1,
        "name": graph.name,
        "time_unit": unit,
        "ops": ops,
        "tensors": tensors,
        "metadata": {},
    }


def simple_bound(work: Sequence[int], names: Sequence[str], k: int) -> dict[str, Any]:
    """Return the better of the two simple bounds with its proof."""
    average = oracles.ceil(Fraction(sum(work), k))
    largest = max(range(len(work)), key=lambda v: work[v])
    if work[largest] >= average:
        proof = {"rule": "largest-op", "ops": [names[largest]], "work": work[largest]}
        return {"value": work[largest], "method": "simple", "tier": "exact", "proof": proof}
    proof = {"rule": "average-work", "total_work": sum(work), "k": k}
    return {"value": average, "method": "simple", "tier": "exact", "proof": proof}


def plan_document(
    graph: CostGraph,
    system: Device,
    k: int,
    assignment: Sequence[int],
    *,
    together: Sequence[Sequence[str]] = (),
    embed: bool = False,
) -> dict[str, Any]:
    """Return the plan of an assignment op → stage, as read back from JSON."""
    stages: list[dict[str, Any]] = []
    for s in range(k):
        ops = [v for v in oracles.own_order(graph) if assignment[v] == s]
        ends = {"first": graph.op_names[ops[0]], "last": graph.op_names[ops[-1]]} if ops else dict.fromkeys(_ENDS)
        stages.append({"index": s, "ops": len(ops), **ends, **oracles.stage_figures(graph, system, ops, k)})
    ticks = oracles.to_ticks(graph, system, k)
    bottleneck = max(stage["cost"] for stage in stages)
    bound = simple_bound(ticks.work, graph.op_names, k)
    no_bound = 1.0 if bottleneck == 0 else None
    plan: dict[str, Any] = {
        "format": "mtpp-plan",
        "version": 1,
        "model": {
            "name": graph.name,
            "sha256": SHA256,
            "ops": graph.op_count,
            "tensors": graph.tensor_count,
            "dims": {"batch": 1},
        },
        "system": system.to_document(),
        "k": k,
        "algorithm": "anneal",
        "seed": 0,
        "ticks_per_unit": ticks.per_unit,
        "time_unit": graph.time_unit,
        "bottleneck": bottleneck,
        "lower_bound": bound,
        "ratio": bottleneck / bound["value"] if bound["value"] else no_bound,
        "optimal": bottleneck == bound["value"],
        "together": [list(group) for group in together],
        "stages": stages,
        "assignment": {name: assignment[v] for v, name in enumerate(graph.op_names)},
        "elapsed_s": 0.25,
    }
    if embed:
        plan["graph"] = embedded_document(graph, system, k)
    return reread(plan)


_ENDS = ("first", "last")


def reread(document: Any) -> Any:
    """Return *document* after a trip through JSON text, non-integer numbers as decimals."""
    return json.loads(json.dumps(document), parse_float=Decimal)
