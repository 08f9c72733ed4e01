"""Keys of cells: everything that tells the result of one from that of another, wherever the graph was read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mtpp import __version__
from mtpp.inference.graph import UNKNOWN_BYTES, CostGraph
from mtpp.inference.instance import Instance
from mtpp.solvers.bounds.limits import DEFAULT_PROOF_BYTES
from mtpp.solvers.certify.cell_state import CellLimits


@dataclass(frozen=True)
class CellKey:
    """Cells with the same key have results that may stand for each other.

    Attributes
    ----------
    graph
        Its :func:`graph_digest`.
    system
        As in a plan, as JSON.
    parameters
        How the cell was to be worked at, as JSON.
    version
        Of this program.
    """

    graph: str
    k: int
    system: str
    parameters: str
    version: str


def graph_digest(graph: CostGraph) -> str:
    """Return the SHA-256 of what solvers see of a graph: ops by name, costs and tensors, in order, as a hex string.

    The names of the graph and of its tensors, the kinds of ops and how the file is written have no part in it.

    Notes
    -----
    O(n + pins).
    """
    digest = hashlib.sha256()
    for line in _lines(graph):
        digest.update(json.dumps(line, separators=(",", ":")).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _lines(graph: CostGraph) -> Iterator[list[Any]]:
    yield ["graph", graph.time_unit, graph.op_count, graph.tensor_count]
    for name, work, param_bytes in zip(graph.op_names, graph.work, graph.param_bytes.tolist(), strict=True):
        yield [name, str(work), param_bytes]
    sizes = graph.tensor_bytes.tolist()
    for t, (producer, transfer) in enumerate(zip(graph.tensor_producer.tolist(), graph.transfer, strict=True)):
        size = None if sizes[t] == UNKNOWN_BYTES else sizes[t]
        yield [producer, graph.tensor_consumers(t).tolist(), size, None if transfer is None else str(transfer)]
    for size, ops in zip(graph.weights.bytes.tolist(), graph.weights.reader_lists(), strict=True):
        yield ["weight", size, ops]
    for size, ops in zip(graph.inputs.bytes.tolist(), graph.inputs.reader_lists(), strict=True):
        yield ["input", size, ops]
    held, place = graph.states.held, {name: i for i, name in enumerate(graph.inputs.names)}
    for size, name, ops in zip(held.bytes.tolist(), graph.states.inputs, held.reader_lists(), strict=True):
        yield ["state", size, place.get(name), ops]
    if graph.results:
        yield ["results", *graph.results]


_CLAIMS = 2
"""Of the rules by which bounds are claimed: rows made by others must not stand for those made by these."""


def cell_key(
    digest: str,
    instance: Instance,
    limits: CellLimits,
    *,
    memory_bytes: int | None,
    machine: Mapping[str, Any] | None = None,
) -> CellKey:
    """Return the key of an instance of the graph with that digest.

    Threads are none of it: they follow from how many cells and cores a run has, which is no reason to work anew.

    Parameters
    ----------
    memory_bytes
        That the user allowed a cell; None where it depends on what was free, which is no reason to work anew.
    machine
        Devices in order, as documents have them, on which the stages of the row are listed; None: none are.
    """
    parameters: dict[str, Any] = {
        "algorithm": limits.algorithm,
        "bounds": list(limits.bounds),
        "claims": _CLAIMS,
        "memory_bytes": memory_bytes,
        "seed": limits.seed,
        "target_ratio": str(limits.target_ratio),
        "time_limit_s": limits.time_limit_s,
        **({"proofs_only": True} if limits.proofs_only else {}),
        **({} if limits.goal.plain else {"goal": limits.goal.to_document()}),
        **({"replicas": True} if instance.replicas else {}),
        **({"proof_bytes": limits.proof_bytes} if limits.proof_bytes != DEFAULT_PROOF_BYTES else {}),
    }
    system = instance.device.to_document()
    if machine is not None:
        parameters["devices"] = [len(machine["devices"]), machine["order"]]
    if not instance.equal_devices:
        times = hashlib.sha256(instance.cost.work.tobytes()).hexdigest()
        system = {"machine": instance.machine.to_document(), "used": instance.most_used, "times": times}
    return CellKey(digest, instance.k, _json(system), _json(parameters), __version__)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
