"""One true document of every kind that ``mtpp verify`` takes, small, with the model that it is for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from plans_beside_models import model_file, written

import mtpp
from mtpp.checker.names import BOUNDS
from mtpp.checker.training.graphpipe.document import PLANNER as GRAPHPIPE
from mtpp.checker.training.pfeife.document import PLANNER as PFEIFE
from mtpp.errors import InputError

GRAPH: dict[str, Any] = {
    "format": "mtpp-graph", "version": 1, "name": "small", "time_unit": "ns",
    "ops": [
        {"name": "a", "kind": "Conv", "work": 3.5, "param_bytes": 40},
        {"name": "b", "work": 8, "param_bytes": 10},
        {"name": "c", "work": 6, "param_bytes": 20},
        {"name": "d", "work": 7},
        {"name": "e", "work": 2, "param_bytes": 5},
    ],
    "tensors": [
        {"name": "s", "producer": "a", "consumers": ["b", "c"], "bytes": 25},
        {"name": "t", "producer": "b", "consumers": ["d"], "bytes": 50},
        {"name": "u", "producer": "c", "consumers": ["d", "e"], "bytes": 30},
    ],
}  # fmt: skip
"""Whose bytes make its transfers."""


def _way(name: str, time: float, **more: Any) -> dict[str, Any]:
    sizes = {"parameter_bytes": 60, "memory_bytes_per_micro_batch": 40, "memory_bytes": 100}
    return {"id": name, "time": time, **sizes, **more}


def _layer(name: str, time: float, before: list[str], after: list[str], **more: Any) -> dict[str, Any]:
    lean = _way("lean", time + 2, recompute=True, memory_bytes_per_micro_batch=5, memory_bytes=110)
    shared = {"sync_in": dict.fromkeys(before, 10), "sync_out": dict.fromkeys(after, 20)}
    on_two = _way("halves", time / 2 + 1, **shared)
    return {"name": name, "configurations": {"1": [_way("plain", time, **more), lean], "2": [on_two]}}


LAYERS: dict[str, Any] = {
    "format": "mtpp-training-model", "version": 1, "name": "layers", "time_unit": "ns", "micro_batch_size": 2,
    "layers": [
        _layer("p", 4, [], ["q", "r"]),
        _layer("q", 6, ["p"], ["s"]),
        _layer("r", 5, ["p"], ["s"]),
        _layer("s", 3, ["q", "r"], []),
    ],
    "edges": [
        {"source": "p", "target": "q", "bytes": 30}, {"source": "p", "target": "r", "bytes": 20},
        {"source": "q", "target": "s", "bytes": 40}, {"source": "r", "target": "s", "bytes": 10},
    ],
}  # fmt: skip


TRAINED = {
    **GRAPH,
    "ops": [
        {**op, **more}
        for op, more in zip(
            GRAPH["ops"],
            (
                {"trainable_bytes": 0},
                {"backward": 9},
                {"trainable_bytes": 7},
                {"kept_bytes": 3},
                {"backward_share": 0.5},
            ),
            strict=True,
        )
    ],
}
"""With all that a graph may say of training."""

CHAIN: dict[str, Any] = {
    "format": "mtpp-graph", "version": 1, "name": "chain", "time_unit": "ns",
    "ops": [{"name": name, "work": work} for name, work in zip("abcdef", (9, 1, 8, 1, 1, 7), strict=True)],
    "tensors": [
        {"name": f"t{name}", "producer": name, "consumers": [reader], "transfer": ticks}
        for name, reader, ticks in zip("abcde", "bcdef", (2, 4, 5, 1, 4), strict=True)
    ],
}  # fmt: skip
"""Some of whose ops are merged before anything else."""

SHARED = {**GRAPH, "weights": [{"name": "w", "bytes": 30, "readers": ["a", "d"]}]}
"""With a weight that counts twice in training."""

LISTED = {
    **LAYERS,
    "layers": [
        {
            "name": layer["name"],
            "trainable_bytes": 30,
            "configurations": {
                "1": [
                    {
                        **layer["configurations"]["1"][0],
                        "sync_in": dict.fromkeys(
                            [e["source"] for e in LAYERS["edges"] if e["target"] == layer["name"]], 4
                        ),
                        "micro_batches": {
                            "1": {"forward": 1, "backward": 2.5, "memory_bytes": 18},
                            "2": {
                                "forward": 1,
                                "backward": layer["configurations"]["1"][0]["time"] - 1,
                                "memory_bytes": 40,
                            },
                        },
                    }
                ]
            },
        }
        for layer in LAYERS["layers"]
    ],
}
"""Whose layers list costs of sizes of micro-batches."""


@dataclass(frozen=True)
class Documented:
    """A document as JSON has it, and the model beside it."""

    kind: str
    document: Any
    model: Any


_SYSTEM = """
name = "drawn"
peak_flops = "1TFLOP/s"
memory_bandwidth = "100GB/s"
bandwidth = "10GB/s"
peak = "order"
stage_memory = "400B"
fast_memory = "60B"
"""

_TREE = """
[[levels]]
devices = 2
bandwidth = "10GB/s"

[[levels]]
devices = 2
bandwidth = "5GB/s"
"""

_PLAN = ("partition", "-k", "3")
_TRAINING = ("--devices", "3", "--memory", "400B", "--bandwidth", "10GB/s")
_LINE = ("plan", "--max-micro-batches", "4", *_TRAINING)
_GRAPHS = ("plan", "--planner", GRAPHPIPE, "--batch-size", "4", "--micro-batch-sizes", "1,2", *_TRAINING)
_SPLITS = ("plan", "--planner", PFEIFE, "--devices", "2", "--micro-batches", "3", "--bandwidth", "10GB/s")

COMMANDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "plan": (GRAPH, (*_PLAN, "--algorithm", "slice")),
    "plan of a drawn system": (GRAPH, (*_PLAN, "--system", "SYSTEM", "--embed")),
    "plan of groups": (GRAPH, (*_PLAN, "--together", "b,d")),
    "range of plans": (GRAPH, ("partition", "-k", "1,3-5", "--algorithm", "slice", "--stage-memory", "60B")),
    "plan of merged ops": (CHAIN, ("partition", "-k", "2")),
    "table of merged ops": (CHAIN, ("certify", "-k", "2,3", "--bounds", ",".join(BOUNDS))),
    "plan of few stages": (GRAPH, ("partition", "--max-bottleneck", "20ns", "--stage-memory", "200B")),
    "plan of a given assignment": (GRAPH, ("evaluate", "--cuts", "a,c")),
    "table": (GRAPH, ("certify", "-k", "2,3", "--bounds", "simple,node,crossings,fraction,configuration")),
    "table of bounds": (GRAPH, ("bound", "-k", "3", "--bounds", "simple,node,crossings")),
    "training plan": (LAYERS, _LINE),
    "training plan of levels": (
        LAYERS,
        ("plan", "--max-micro-batches", "4", "--memory", "400B", "--topology", "TREE"),
    ),
    "training plan of equal stages": (LAYERS, (*_LINE, "--planner", "equi")),
    "training plan of equal stages without tensor parallelism": (LAYERS, (*_LINE, "--planner", "pipedream-2bw")),
    "training plan by the program's rule": (
        LAYERS,
        (*_LINE, "--max-micro-batches", "3", "--convention", "program", "--exact-micro-batches"),
    ),
    "training plan by the heuristic": (LAYERS, (*_LINE, "--knapsack", "heuristic")),
    "no training plan of levels": (
        LAYERS,
        ("plan", "--max-micro-batches", "4", "--memory", "100B", "--topology", "TREE"),
    ),
    "no training plan": (LAYERS, (*_LINE, "--memory", "120B")),
    "graphpipe": (LAYERS, _GRAPHS),
    "graphpipe of a line": (
        LAYERS,
        (
            *_GRAPHS,
            "--sequential",
            "--kfkb",
            "1,2",
            "--per-stage-micro-batch",
            "--in-flight",
            "least",
            "--latency",
            "1ns",
        ),
    ),
    "graphpipe of listed sizes": (LISTED, (*_GRAPHS, "--no-data-parallel")),
    "no graphpipe": (LAYERS, (*_GRAPHS, "--memory", "110B")),
    "pfeife": (GRAPH, (*_SPLITS, "--loops", "1,2")),
    "pfeife under a schedule": (GRAPH, (*_SPLITS, "--schedule", "1f1b", "--memory", "1kB")),
    "pfeife by direct transport": (
        GRAPH,
        (*_SPLITS, "--transport", "direct", "--memory", "1kB,2kB", "--speed", "1,0.5", "--loops", "1"),
    ),
    "pfeife of layers": (LAYERS, (*_SPLITS, "--loops", "1", "--prefetch", "1,0")),
    "pfeife of halves": (GRAPH, (*_SPLITS, "--schedule", "zero-bubble", "--transport", "direct")),
    "pfeife of trained parts": (
        TRAINED,
        (*_SPLITS, "--loops", "1", "--buffers", "torch-pipelining", "--memory", "3kB", "--backward-ratio", "1.5"),
    ),
    "pfeife by beam search": (GRAPH, (*_SPLITS, "--search", "beam", "--loops", "1,2", "--loop-batch", "any")),
    "pfeife in an order": (GRAPH, (*_SPLITS, "--order", "search", "--loops", "1", "--latency", "2ns")),
    "no pfeife of layers": (LAYERS, (*_SPLITS, "--memory", "150B,120B", "--loops", "1")),
    "no pfeife of a weight of two ops": (SHARED, (*_SPLITS, "--memory", "50B", "--loops", "1")),
    "no pfeife": (GRAPH, (*_SPLITS, "--memory", "50B", "--loops", "1")),
}
"""Kind of document → model, and the command that writes it."""


@cache
def documented(kind: str) -> Documented:
    """Return a document of that kind."""
    model, (command, *options) = COMMANDS[kind]
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in (("SYSTEM", _SYSTEM), ("TREE", _TREE)):
            (folder / name).write_text(text)
        options = [str(folder / one) if one in ("SYSTEM", "TREE") else one for one in options]
        path = model_file(folder, model)
        if command in ("certify", "bound"):  # whose commands count time from the start of the process
            counts, bounds = ([int(one) for one in options[1].split(",")], options[3])
            table = (
                mtpp.certify(path, counts, bounds=bounds)
                if command == "certify"
                else mtpp.bound(path, counts, bounds=bounds)
            )
            return Documented(kind, json.loads(table.to_json()), path.read_bytes())
        written(folder, command, path, *options)
        return Documented(kind, json.loads((folder / "result.json").read_text()), path.read_bytes())


def passes(document: Any, model: bytes) -> bool:
    """Tell whether ``mtpp verify`` ends with exit code 0; searches are run again only where nothing else is false."""
    try:
        without_searches = mtpp.verify(document, _read(model), shallow=True)
        return without_searches.verdict != "false" and mtpp.verify(document, _read(model)).exit_code == 0
    except InputError:
        return False


@cache
def _read(model: bytes) -> Any:
    return json.loads(model)
