"""Further freedoms of irregular models, drawn on top of :mod:`irregular_models`: sizes, training, keys, units, systems.

What is drawn does not change what the seeds of that module draw.
"""

from __future__ import annotations

import json
import random
from typing import Any

Document = dict[str, Any]


def freed(model: Document, draw: random.Random, *, degrees: bool = False) -> Document:
    """Return a model of layers with some freedoms more.

    Costs that do not grow with the size of micro-batches, layers of which some parameters are trained, or none, and
    with *degrees* layers that have no configuration for the first degree, but for another one.
    """
    model = json.loads(json.dumps(model))
    own = str(model["micro_batch_size"])
    if degrees and draw.random() < 0.3:
        for layer in model["layers"]:
            by_degree = layer["configurations"]
            if len(by_degree) > 1 and draw.random() < 0.5:
                del by_degree[next(iter(by_degree))]
    if draw.random() < 0.3:
        for one in _configurations(model):
            for size, row in one["micro_batches"].items():
                if size != own and draw.random() < 0.7:
                    row["forward"], row["backward"] = draw.randint(0, 40), draw.randint(0, 60)
                    row["memory_bytes"] = draw.choice((0, 1, 20, 90))
    if draw.random() < 0.3:
        for layer in model["layers"]:
            held = max(int(t) * one["parameter_bytes"] for t, ones in layer["configurations"].items() for one in ones)
            if draw.random() < 0.6:
                layer["trainable_bytes"] = draw.choice((0, held, held // 2, held // 3))
    return model


def freed_graph(graph: Document, draw: random.Random) -> Document:
    """Return a graph that says of some ops which parameters are trained, or which part of a backward pass runs."""
    graph = json.loads(json.dumps(graph))
    if draw.random() < 0.4:
        for op in graph["ops"]:
            if draw.random() < 0.5:
                op["trainable_bytes"] = draw.choice((0, op.get("param_bytes", 0), op.get("param_bytes", 0) // 3))
            if draw.random() < 0.2:
                op["backward_share"] = draw.choice((0, 1, 0.5, 0.25))
    return graph


def written_anew(document: Document, draw: random.Random) -> Document:
    """Return the same document as another program would write it: keys in any order, times in another unit."""
    found: Document = json.loads(json.dumps(document))
    if found["format"] == "mtpp-training-model" and draw.random() < 0.5:
        found["time_unit"] = "ns"
        for one in _configurations(found):
            one["time"] /= 1000
            for row in one["micro_batches"].values():
                row["forward"] /= 1000
                row["backward"] /= 1000
    return _shuffled(found, draw) if draw.random() < 0.5 else found  # type: ignore[no-any-return]


def _configurations(model: Document) -> list[Document]:
    return [one for layer in model["layers"] for ones in layer["configurations"].values() for one in ones]


def _shuffled(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list):
        return [_shuffled(one, draw) for one in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    draw.shuffle(keys)
    return {key: _shuffled(value[key], draw) for key in keys}


def freed_split(asked: Document, draw: random.Random) -> Document:
    """Return what a planner of split points is asked, with a transport, buffers, states and a schedule besides.

    Adds ``transport``, ``buffers``, ``backward_ratio``, ``state`` and ``schedule``, a name or None.
    """
    devices = asked["devices"]
    speed = asked["speed"]
    if draw.random() < 0.3:
        speed = [draw.choice(("0.5", "1", "1.5", "3")) for _ in range(devices)]
    return asked | {
        "speed": speed,
        "transport": draw.choice(("neighbours", "direct")),
        "buffers": draw.choice(("in-flight", "in-flight", "torch-pipelining")),
        "backward_ratio": draw.choice((2, 2, 1, "0.5", "0.01")),
        "state": draw.choice((4, 4, 1, "2.5")),
        "schedule": draw.choice((None, None, "gpipe", "1f1b", "interleaved", "bfs", "zero-bubble")),
    }
